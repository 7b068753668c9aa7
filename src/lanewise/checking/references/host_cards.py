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


# What the plugin aws-ofi-nccl logs: 'Selected provider is cxi, fabric is cxi (found 4 nics)'.
_FOUND = re.compile(r"\bfound (\d{1,2}) nics\b|^NICs (?:found|in use|used)(?: by NCCL)?: (\d{1,2})$", re.IGNORECASE)
# '8 x 400 Gb/s', '8', and of those that NCCL uses '1: mlx5_0'.
_CARDS = re.compile(r"(?P<count>\d{1,2})(?: ?x (?P<rate>\d.*)|: (?P<names>.+))?")


def host_cards(posted: PostedFacts) -> HostCards | None:
    """The network cards of each host; None where nobody states them, or texts differ."""
    return _only(posted, "network cards")


def used_cards(posted: PostedFacts) -> HostCards | None:
    """The cards that NCCL's log lists as used, else those that a setting chooses; None where neither does."""
    return _only(posted, "cards in use") or _only(posted, "cards chosen")


def are_all_cards_used(posted: PostedFacts) -> bool:
    """Whether NCCL uses as many cards as each host has, by its log or by the line of it that somebody typed in."""
    cards, used = host_cards(posted), used_cards(posted)
    if cards is None or used is not None:
        return cards is not None and used is not None and used.count == cards.count
    words = (f"{each.key}: {each.value}" for each in (*posted.statements, *posted.unused))
    return {int(match[1] or match[2]) for each in words for match in _FOUND.finditer(each)} == {cards.count}


def _only(posted: PostedFacts, key: str) -> HostCards | None:
    found = posted.stated(key)
    values = {statement.value.strip() for statement in found}
    match = _CARDS.fullmatch(values.pop()) if len(values) == 1 else None
    if match is None:
        return None
    return HostCards(
        int(match["count"]), quantity_in(match["rate"] or "", "B/s"), match["names"] or "", found[0].source
    )
