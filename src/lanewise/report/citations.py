"""Texts that say what a value rests on, made shorter where figures of one part share their condition and source."""

from __future__ import annotations

import re
from itertools import groupby

# 'part key = value, condition (source)': a comma inside a number is followed by a digit.
_FIGURE = re.compile(r"(?P<part>\S+) (?P<figure>[\w.]+ = .+?)(?P<rest>(?:,(?= )| \().*)", re.DOTALL)
_START = re.compile(r"; (?=\S+ [\w.]+ = )")


def shortened(text: str) -> str:
    """'p a = 1, so (s); p b = 2, so (s)' as 'p a = 1 and b = 2, so (s)'; anything else as it is."""
    matches = [_FIGURE.fullmatch(piece) for piece in _START.split(text)]
    pieces = list(zip(_START.split(text), matches, strict=True))
    texts = []
    for _, group in groupby(pieces, key=lambda piece: (piece[1]["part"], piece[1]["rest"]) if piece[1] else piece[0]):
        members = list(group)
        first = members[0][1]
        if first is None or len(members) == 1:
            texts += [piece for piece, _ in members]
            continue
        names = [match["figure"] for _, match in members if match]
        texts.append(f"{first['part']} {', '.join(names[:-1])} and {names[-1]}{first['rest']}")
    return "; ".join(texts)
