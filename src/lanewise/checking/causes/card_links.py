"""Causes of slow rows over a network in the PCIe link of its card."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lanewise.checking.cause import Cause, speed, speeds
from lanewise.checking.named.abilities import link_rate, raw_rate
from lanewise.checking.symptom import RowSymptom, far_ends, line_of, quantity_in, value_text
from lanewise.results.observation import Observation
from lanewise.results.posted import slot_link

# Cards for lines up to this (B/s) are put into narrow slots; what TCP gets of their wires: 3.3 of 4, 6.0 of 7.9 Gb/s.
SMALL_LINE, _OF_WIRES = 5.1e9, (0.74, 0.93)
# Less than half of a stated slot is hardly its limit.
_OF_STATED = 0.5
# How much rates of both ways differ that one link limits.
_EVEN = 0.03
# How far apart rates of one network card from two kinds of memory may be that its link limits.
_ALIKE = 0.15


def link_of_card(symptom: RowSymptom) -> Iterator[Cause]:
    """The network card's own PCIe link carries less than its lines: a slot of an older generation or of fewer lanes."""
    row = symptom.row
    if row.path != "network" or not row.value or row.metric != "goodput":
        return
    alike = _other_memory_alike(symptom)
    if "gpu" in row.flow and alike is None:
        return
    links = [(gen, lanes) for gen in (3, 4, 5, 6) for lanes in (16, 8, 4, 2, 1) if lanes > 4 or alike is not None]
    near = [link for link in links if 0.8 < row.value / link_rate(*link, False) < 1.05]
    if near and symptom.share < 0.8:
        what = f"the network card's link runs at {speeds(near)}, or both its ports share one: it carries no more"
        step = "sudo lspci -vv -d 15b3: | grep -E 'LnkCap:|LnkSta:'; a card for 400 Gb/s needs Gen5 x16"
        evidence = f"{alike.flow} is no faster ({value_text(alike)})" if alike is not None else ""
        ports = [] if alike is not None else symptom.posted.stated("port rate")
        if any(quantity_in(port.value, "B/s") == symptom.result.expected.value for port in ports):
            evidence = f"the port itself came up at {ports[0].value} ({ports[0].source})"
        yield Cause(("link", "network card"), what, step, evidence=evidence)


def narrow_link_of_card(symptom: RowSymptom) -> Iterator[Cause]:
    """A card for up to 40 Gb/s that carries as much both ways as one to four lanes do: a program is not as even."""
    row, line = symptom.row, symptom.result.expected.value or math.inf
    if row.path != "network" or row.metric != "goodput" or line > SMALL_LINE or "gpu" in row.flow or not row.value:
        return
    back = [
        other.row for other in symptom.results
        if other.row.path == "network" and other.row.metric == row.metric and line_of(other.row) == line_of(row)
        and [end.strip() for end in other.row.flow.split("->")] == [end.strip() for end in row.flow.split("->")][::-1]
        and abs((other.row.value or 0.0) / row.value - 1) < _EVEN
    ]  # fmt: skip
    links = [(gen, lanes) for gen in (2, 3, 4) for lanes in (1, 2, 4) if raw_rate(gen, lanes) < line]
    near = [link for link in links if _OF_WIRES[0] < row.value / raw_rate(*link) < _OF_WIRES[1]]
    if back and near:
        what = f"the network card's link runs at {speeds(near)}: it carries no more"
        step = "sudo lspci -vv | grep -A40 Ethernet | grep -E 'LnkCap:|LnkSta:'; a slot with more lanes"
        evidence = f"as much the other way ({value_text(back[0])})"
        yield Cause(("link", "network card"), what, step, evidence=evidence)


def stated_slot_of_card(symptom: RowSymptom) -> Iterator[Cause]:
    """The slot that the text states carries less than the card's line, and the rate is what such a slot gives."""
    row, line = symptom.row, symptom.result.expected.value or 0.0
    if row.path != "network" or row.metric != "goodput" or not row.value:
        return
    for statement in symptom.posted.stated("slot"):
        if (link := slot_link(statement.value)) is not None and link.whole:
            gen, lanes = link.whole
            # A slot that is stated to carry less than the line limits whatever it is that takes more away.
            if raw_rate(gen, lanes) < line and _OF_STATED < row.value / raw_rate(gen, lanes) < 1:
                what = f"the network card's slot is {speed(gen, lanes)}, which carries less than its line"
                step = "a slot of more lanes or of a later generation: sudo lspci -vv | grep -E 'LnkCap:|LnkSta:'"
                yield Cause(("link", "network card"), what, step, evidence=f"{statement.source} states the slot")


def shared_card(symptom: RowSymptom) -> Iterator[Cause]:
    """Flows from or to one host that get less each at once than one of them alone: they share its card's link."""
    row = symptom.row
    flows = [flow.split("->") for flow in row.how.get("flows", "").replace(" ", "").split(",")]
    one_host = len({flow[0] for flow in flows}) == 1 or len({flow[-1] for flow in flows}) == 1
    if row.path != "network" or row.metric != "goodput" or len(flows) < 2 or not one_host or "gpu" in row.flow:
        return
    alone = [other for other in symptom.better_rates() if other.how.get("flows", other.flow).count("->") == 1]
    if alone:
        what = f"the network card's link, or another that all {len(flows)} flows share, carries no more"
        step = "sudo lspci -vv | grep -A40 Ethernet | grep -E 'LnkCap:|LnkSta:'; add up the rates of all flows"
        yield Cause(("shared", "network card"), what, step, evidence=f"one alone reached {value_text(alone[0])}")


def _other_memory_alike(symptom: RowSymptom) -> Observation | None:
    """A row over the same network from or to the other kind of memory, GPU or host, that is as fast or slow."""
    row = symptom.row
    others = [other.row for other in symptom.results if other.row.path == "network" and other.row.metric == row.metric]
    return next(
        (other for other in others
         if ("gpu" in other.flow) != ("gpu" in row.flow) and far_ends(other) == far_ends(row)
         and line_of(other) == line_of(row) and abs((other.value or 0.0) / (row.value or 1.0) - 1) < _ALIKE), None,
    )  # fmt: skip
