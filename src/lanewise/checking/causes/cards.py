"""Causes of slow rows of PCIe cards: what the row says of its link, and of cards that are no GPUs the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise.checking.cause import Cause, speed
from lanewise.checking.named.abilities import raw_rate
from lanewise.checking.named.links import stated_links
from lanewise.checking.references.cards import of_card
from lanewise.checking.symptom import RowSymptom, row_devices, value_text

# Payload of a link's wires: from TCP's packets of 1500 B to reads of a drive (0.74 to 0.93, `network_causes`).
_OF_WIRES = (0.7, 1.0)
_STEP = "while it runs: sudo lspci -vv -s CARD | grep -E 'LnkCap:|LnkSta:|MaxPayload'; another slot, cable or port"
# Words that say when, not how: rows that differ in them alone are of one program.
_WHEN = re.compile(
    r"\b(?:before|after|now|then|old|new|earlier|later|first|second|today|was|is|ago|"
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


CARD_CAUSES = (stated_link, slow_card)
