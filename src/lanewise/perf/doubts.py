"""What a prediction is not sure of: one sentence for all links that it holds for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lanewise.perf.link_capacity import NETWORK_DOUBT, SPEED_DOUBT
from lanewise.topology.ranges import fold

_OF_A_LINK = {text: re.compile(re.escape(text).replace(r"\{\}", r"(\S+)")) for text in (SPEED_DOUBT, NETWORK_DOUBT)}


def merge_doubts(doubts: Iterable[str]) -> str:
    """The doubts in their order, joined by semicolons; one that is the same of several links names them together."""
    names: dict[str, list[str]] = {}
    for doubt in dict.fromkeys(filter(None, doubts)):
        text, link = next(
            ((text, found[1]) for text, pattern in _OF_A_LINK.items() if (found := pattern.fullmatch(doubt))),
            (doubt, ""),
        )
        names.setdefault(text, []).append(link)
    sentences = (text.format(", ".join(fold(links))) if text in _OF_A_LINK else text for text, links in names.items())
    return "; ".join(sentences)
