"""Work that one GPU does in a second beside the same work on others of its name: slot, power or clocks differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from lanewise.checking.references.parts import Reference, best_of, of_other_rows
from lanewise.checking.references.side_by_side import COUNTS
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

OF_ONE_NAME = "the same work of another GPU of its name"
# Cards of one name differ by a few per cent; power limits and coolers of their makers take up to a fifth.
_OF_LIKE = 0.75
_LONE = re.compile(r"(gpu\d+)\s*->\s*\1")
# What a row's name says of the card's slot or of which card it is: the work is the same.
_SLOT_WORDS = re.compile(
    r"(?<!\w)x ?(?:16|8|4|2|1)\b|\b(?:pci-?e(?: ?gen)?|gen) ?[1-6](?:\.0)?\b|\b(?:slots?|risers?|lanes?|electrical\w*|"
    r"chipset|gpu ?\d?|card ?\d?)\b", re.IGNORECASE,
)  # fmt: skip


def of_gpus_of_a_name(row: Observation, rows: Sequence[Observation], posted: PostedFacts) -> Iterator[Reference]:
    """The fastest other GPU of this name that did the same work, as the rows' names say."""
    gpu = _lone_gpu(row)
    if row.metric != COUNTS or not gpu or not posted.title(gpu):
        return
    like = [
        each for each in rows
        if each.metric == COUNTS and (other := _lone_gpu(each)) not in ("", gpu)
        and posted.title(other) == posted.title(gpu) and each.settings == row.settings
        and each.how.get("tool") == row.how.get("tool") and without_slot(each.scenario) == without_slot(row.scenario)
    ]  # fmt: skip
    if (best := best_of(like)) is not None:
        yield of_other_rows(best.value or 0.0, _OF_LIKE, f"{OF_ONE_NAME}, '{best.scenario}' on {_lone_gpu(best)}")


@lru_cache(maxsize=2**12)
def without_slot(name: str) -> str:
    """What a row is called, without words of a slot."""
    return " ".join(_SLOT_WORDS.sub(" ", name).lower().split())


def _lone_gpu(row: Observation) -> str:
    """The GPU of a row that works within its memory, empty for others."""
    match = _LONE.fullmatch(row.how.get("flows", row.flow))
    return match[1] if match else ""
