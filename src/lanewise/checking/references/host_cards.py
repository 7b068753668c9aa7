"""The network cards of each host that a text states, and those of them that NCCL uses."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise import units
from lanewise.results.posted import PostedFacts


@dataclass(frozen=True, slots=True)
class HostCards:
    """How many network cards, the data rate of each in B/s (0 if nobody says it), as who says it calls them."""

    count: int
    rate: float
    text: str
    source: str


def host_cards(posted: PostedFacts) -> HostCards | None:
    """The network cards of each host; None where nobody states them, or texts differ."""
    return _only(posted, "network cards", " x ")


def used_cards(posted: PostedFacts) -> HostCards | None:
    """The cards that NCCL's log lists as used, else those that a setting chooses; None where neither does."""
    return _only(posted, "cards in use", ": ") or _only(posted, "cards chosen", ": ")


def _only(posted: PostedFacts, key: str, between: str) -> HostCards | None:
    found = posted.stated(key)
    if len({statement.value for statement in found}) != 1:
        return None
    count, _, behind = found[0].value.partition(between)
    rate = units.parse(behind, "B/s") if behind and between == " x " else 0.0
    return HostCards(int(count), rate, behind, found[0].source)
