"""Links and ports as causes, judged by the model: read under load, in captures, or supposed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise import units
from lanewise.checking import changes
from lanewise.checking.cause import Cause, slow_link, speed
from lanewise.checking.causes.modelled_symptom import Symptom, weigh
from lanewise.checking.named.abilities import lesser_links
from lanewise.checking.verdict import Verdict
from lanewise.topology.model import Kind
from lanewise.topology.speeds import NETWORKS

LEAST_SHARING = 3
# How near the rate of a row must be to the payload that a port of a lower rate carries.
PORT_NEARNESS = 0.03
_LINK = re.compile(r"(?:(?<![\w.:-])(?P<device>[\w.:-]++)\s++)?Gen(?P<gen>\d)\s+x(?P<lanes>\d+)")


def link_under_load(symptom: Symptom) -> Iterator[Cause]:
    """The probe read the link while it copied, and it ran below what is described."""
    for device, gen, lanes in _measured_links(symptom):
        link = changes.link_above(symptom.model.system, device)
        if link is not None and (gen < (link.gen or 0) or lanes < (link.lanes or 0)):
            state = symptom.conditions.link(device)
            evidence = f"read while {symptom.row.scenario} ran"
            described = f"described as {speed(link.gen, link.lanes)}"
            yield slow_link(device, gen, lanes, described, evidence, state.port if state else "")


def idle_link(symptom: Symptom) -> Iterator[Cause]:
    """The capture shows a lower generation, which idle GPUs have: a cause only if the value fits it."""
    for link in symptom.conditions.links:
        if link.slow and not link.under_load:
            best = f"both ends support {speed(link.gen, link.lanes)}"
            lanes = link.lanes_now or link.lanes
            weighed = weigh(symptom, slow_link(link.device, link.gen_now, lanes, best, link.source, link.port))
            if weighed is not None and weighed.explains:
                yield weighed


def shared_uplink(symptom: Symptom) -> Iterator[Cause]:
    """A switch or adapter that all slow rows cross and no fine row: of three slow rows and more, of several devices."""
    model, metric = symptom.model, symptom.row.metric
    like = [result for result in symptom.results if result.row.metric == metric]
    slow = [model.route_devices(result.row) for result in like if result.verdict is Verdict.SLOW]
    fine = [model.route_devices(result.row) for result in like if result.verdict is Verdict.OK]
    if len(slow) < LEAST_SHARING or not fine or not all(slow):
        return
    shared = frozenset.intersection(*slow) & set(model.system.of_kind(Kind.SWITCH)) - frozenset().union(*fine)
    for name in sorted(shared)[:1]:
        what = f"all {len(slow)} slow rows cross {name} and no fine row does: its uplink, its slot or its cable"
        step = "sudo lspci -vv | grep -E '^[0-9a-f]|LnkSta:' while copies run; look at the port above it first"
        yield Cause(("common", name), what, step, evidence="the other rows", devices=frozenset({name}))


def slower_link(symptom: Symptom) -> Iterator[Cause]:
    """A link on the way trained at a lower generation or fewer lanes: the likeliest of those of the measured rate."""
    fine = {device for device, *_ in _measured_links(symptom)}
    for device in sorted(symptom.model.route_devices(symptom.row) - fine):
        link = changes.link_above(symptom.model.system, device)
        if link is None or link.gen is None or link.lanes is None:
            continue
        matching: list[tuple[float, int, Cause]] = []
        for same_rate in lesser_links(link.gen, link.lanes):
            for gen, lanes in same_rate:
                predicted = symptom.model.value(symptom.row, changes.link_speed(device, gen, lanes))
                if predicted is not None and symptom.result.reached_by(predicted):
                    described = f"described as {speed(link.gen, link.lanes)}"
                    cause = slow_link(device, gen, lanes, described, "", same_rate=same_rate)
                    matching.append((abs(predicted - (symptom.row.value or 0.0)), len(matching), cause))
                    break
        yield from [min(matching)[2]] if matching else []


def slower_port(symptom: Symptom) -> Iterator[Cause]:
    """The port of a network card that came up at a lower rate of its kind, if the row is just what that carries."""
    system, row = symptom.model.system, symptom.row
    names = sorted(symptom.model.route_devices(row) & set(system.of_kind(Kind.NIC))) if row.path == "network" else []
    for part in {part.name: part for name in names if (part := system.part(name)) is not None}.values():
        rates = sorted({units.to_si(rate, "Gb/s") for rate in NETWORKS.values()})
        for rate in (rate for rate in rates if rate < (part.number("net.rate") or 0.0)):
            change = changes.port_rate(part, rate)
            predicted = symptom.model.value(row, change)
            if predicted is not None and abs(predicted / (row.value or 1.0) - 1) < PORT_NEARNESS:
                cards = [name for name in names if system.part(name) == part]
                what = f"the port of {' or '.join(cards)} runs at {units.show(rate, 'Gb/s')}"
                step = "ibstat, or ethtool DEVICE: the rate of the port; then its cable and the switch's port"
                yield Cause(("port", *cards), what, step, change=change, devices=frozenset(cards))


def better_link(symptom: Symptom) -> Iterator[Cause]:
    """The link is faster than the description says."""
    for device in sorted(symptom.model.route_devices(symptom.row)):
        link = changes.link_above(symptom.model.system, device)
        if link is None or link.gen is None or link.lanes is None:
            continue
        for gen, lanes in ((link.gen + 1, link.lanes), (link.gen, 2 * link.lanes)):
            change = changes.link_speed(device, gen, lanes)
            predicted = symptom.model.value(symptom.row, change) if gen <= 6 and lanes <= 16 else None
            if predicted is not None and symptom.result.reached_by(predicted):
                what = f"the link of {device} is {speed(gen, lanes)}, not {speed(link.gen, link.lanes)} as described"
                step = "correct the description: sudo lspci -vv | grep LnkCap"
                yield Cause(("described", device), what, step, change=change, predicted=predicted, explains=True)


def _measured_links(symptom: Symptom) -> list[tuple[str, int, int]]:
    """Device, generation and lanes of every link that the row says was read under load."""
    return [
        (device, int(matches["gen"]), int(matches["lanes"]))
        for matches in _LINK.finditer(symptom.row.how.get("link under load", ""))
        for device in ([matches["device"]] if matches["device"] else symptom.devices[:1])
    ]
