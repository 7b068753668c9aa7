"""The network cards of each host that a text states, and those of them that NCCL uses."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lanewise.checking.symptom import quantity_in
from lanewise.results.posted import PostedFacts


@dataclass(frozen=True, slots=True)
class HostCards:
    """How many network cards, the data rate of each in B/s (0 if nobody says it), and their `names` if any."""

    count: int
    rate: float
    names: str
    source: str


# '8 x 400 Gb/s', '8', and of those that NCCL uses '1: mlx5_0'.
_CARDS = re.compile(r"(?P<count>\d{1,2})(?: ?x (?P<rate>\d.*)|: (?P<names>.+))?")


def host_cards(posted: PostedFacts) -> HostCards | None:
    """The network cards of each host; None where nobody states them, or texts differ."""
    return _only(posted, "network cards")


def used_cards(posted: PostedFacts) -> HostCards | None:
    """The cards that NCCL's log lists as used, else those that a setting chooses; None where neither does."""
    return _only(posted, "cards in use") or _only(posted, "cards chosen")


def _only(posted: PostedFacts, key: str) -> HostCards | None:
    found = posted.stated(key)
    values = {statement.value.strip() for statement in found}
    match = _CARDS.fullmatch(values.pop()) if len(values) == 1 else None
    if match is None:
        return None
    return HostCards(
        int(match["count"]), quantity_in(match["rate"] or "", "B/s"), match["names"] or "", found[0].source
    )
