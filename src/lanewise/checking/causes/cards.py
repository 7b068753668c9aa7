"""Causes of slow rows of PCIe cards: what the row says of its link, and of cards that are no GPUs the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise import units
from lanewise.checking.cause import Cause, speed
from lanewise.checking.named.abilities import raw_rate
from lanewise.checking.named.links import stated_links
from lanewise.checking.references.cards import of_card
from lanewise.checking.symptom import RowSymptom, row_devices, value_text

# Payload of a link's wires: from TCP's packets of 1500 B to reads of a drive (0.74 to 0.93, `network_causes`).
_OF_WIRES = (0.7, 1.0)
_STEP = "while it runs: sudo lspci -vv -s CARD | grep -E 'LnkCap:|LnkSta:|MaxPayload'; another slot, cable or port"
# Larger transfers (B) take longer than it takes to start them, whatever the card: 8 us at Gen3 x16.
_SMALL = 128 * 2**10
# Words that say when, not how: rows that differ in them alone are of one program.
_WHEN = re.compile(
    r"\b(?:at first|at the start|initially|fresh|afterwards|after (?:\w+ ){0,3}(?:activity|use|writes|writing|minutes)|"
    r"before|after|now|then|old|new|earlier|later|first|second|today|was|is|ago|"
    r"(?:an?|one|two|three|four|six|\d{1,3}) (?:hour|day|week|month|year)s?)\b", re.IGNORECASE,
)  # fmt: skip


def stated_link(symptom: RowSymptom) -> Iterator[Cause]:
    """A network card, drive or other card whose link, as the row states it, carries no more than was measured."""
    row = symptom.row
    card = of_card(row) or row.path in ("network", "storage")
    for gen, lanes in stated_links(row) if card and "gpu" not in row.flow else ():
        wires = raw_rate(gen, lanes)
        low, high = _OF_WIRES
        if low * wires <= (row.value or 0.0) <= high * wires:
            what = f"the card's link runs at {speed(gen, lanes)}, which carries no more"
            evidence = f"the row says {speed(gen, lanes)}"
            yield Cause(("link",), what, _STEP, evidence=evidence, predicted=row.value, explains=True)


def small_transfers(symptom: RowSymptom) -> Iterator[Cause]:
    """Transfers of a card that is no GPU which are so small that starting each costs more than carrying it."""
    row, size = symptom.row, symptom.row.settings.get("bytes", 0)
    if not of_card(row) or not 0 < size < _SMALL or not row.value:
        return
    flight = row.settings.get("depth", 1) * row.settings.get("threads", 1)
    each = units.readable(flight * size / row.value, "s", 3)
    what = f"transfers of {size:,} B: {row.value / size:,.0f} of them a second, {each} each with {flight} in flight"
    step = "transfers of 64 KiB and more, or more of them in flight, until the rate no longer grows"
    yield Cause(("requests",), what, step, evidence="size and number of transfers of the row")


def slow_card(symptom: RowSymptom) -> Iterator[Cause]:
    """The driver or its transfers, or the link of a card that is no GPU."""
    row = symptom.row
    if not of_card(row):
        return
    better = [other for other in symptom.better(same_flow=True) if other.scenario != row.scenario]
    evidence = f"'{better[0].scenario}' reached {value_text(better[0])}" if better else ""
    card = next((end for end in sorted(row_devices(row)) if not end.startswith("host")), "the card")
    what = f"the link of {card}: its slot, cable or port came up with fewer lanes or at a lower rate"
    link = Cause(("link",), what, _STEP, evidence=evidence)
    what = "the driver or the program: short transfers, each waited for, or pages that are pinned for each of them"
    step = "transfers of 4 MiB and more, several at once or by poll mode; perf top while they run"
    program = Cause(("software",), what, step, evidence=evidence)
    later = bool(better) and without_time(row.scenario) == without_time(better[0].scenario)
    yield from (link, program) if later else (program, link)


def without_time(name: str) -> list[str]:
    """The words of a row's name but those that say when it was measured."""
    return _WHEN.sub("", name).split()


def differ_in_time(name: str, other: str) -> bool:
    """Whether two rows' names say that one program was run at two times, and differ in nothing else."""
    return name != other and without_time(name) == without_time(other)


CARD_CAUSES = (stated_link, small_transfers, slow_card)
