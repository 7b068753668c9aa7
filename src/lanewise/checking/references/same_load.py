"""Reports of a service under one and the same load, side by side in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lanewise.checking.references.parts import Reference, of_another_row
from lanewise.checking.symptom import name_of_test
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

# What a text shows that slows collectives of a service: transports turned off, lesser links, lost packets.
_TAKES_LINKS = re.compile(
    r"NCCL_(?:P2P|SHM|IB)_DISABLE=1|NCCL_NET=Socket|network transport=Socket|peer transport=SHM|"
    r"(?:link width|link now|lost packets|network plugin)=.+", re.IGNORECASE,
)  # fmt: skip
# As of rows that differ in more than one thing (`paths._OF_FEWER`).
_OF_SAME_LOAD = 0.5


def of_same_load(row: Observation, rows: Sequence[Observation], posted: PostedFacts) -> Iterator[Reference]:
    """The better of two reports of one load, where the text shows what takes GPUs their links or the network.

    Machines differ by far more than that in health: without such a sign a lower report says nothing.
    """
    signs = [each for each in posted.statements if _TAKES_LINKS.fullmatch(f"{each.key}={each.value}")]
    if row.metric != "completed" or not row.settings.get("requests") or not signs:
        return
    like = [
        each.value for each in rows
        if each.metric == row.metric and each.settings == row.settings and each.display_unit == row.display_unit
        and name_of_test(each) == name_of_test(row) and each.value
    ]  # fmt: skip
    best = max(like, default=0.0)
    if (row.value or 0.0) < _OF_SAME_LOAD * best:
        yield of_another_row(best, _OF_SAME_LOAD, "the same load in the other report")
