"""Why one of two figures is slower on a sound machine, as their words say: an older link, another medium, no cache."""

from __future__ import annotations

import re

_GENERATION = re.compile(r"\b(?:gen ?|pcie ?)([1-6])\b", re.IGNORECASE)
_DUPLEX = re.compile(r"\b(?:both (?:ways|directions)|bi-?dir\w*|duplex)\b", re.IGNORECASE)
_ONE_WAY = re.compile(r"\buni-?dir\w*|\bone[ -]way|\beach way|\balone\b|\bsingle direction", re.IGNORECASE)
_MEDIA = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bhdds?\b|\bhard (?:disk|drive)", r"\bssds?\b(?!.*nvme)", r"\bnvme", r"\bram ?disk|\btmpfs|\bddr\d|\bdram\b",
        r"\b(?:gpu|device|video) memory\b(?! over)|\bhbm|\bvram", r"\bsd ?card|\bemmc",
    )
)  # fmt: skip
# A cache serves what fits into it; what passes it by or must reach the medium takes longer.
_BEYOND = re.compile(
    r"\b(?:larger than|beyond|exceed\w*|bypass\w*|outside|without|no|drop\w*) (?:the )?(?:\w+ )?caches?\b|\bcold\b|"
    r"\buncached|(?<!gpu)(?<!without o.lag=)[ _=]direct\b|\bo_direct|\bfsync|\bsync\b", re.IGNORECASE,
)  # fmt: skip
_CACHED = re.compile(
    r"\b(?:cached|warm|page ?cache|from (?:the )?cache|buffered|without o.lag=direct)\b", re.IGNORECASE
)
_ONE = re.compile(
    r"\b(?:one|single|1) (?:\w+ )?(?:streams?|threads?|flows?|connections?|clients?|jobs?|cores?|process)\b", re.I
)
_MANY = re.compile(r"\b(?:many|several|multiple|parallel|all|more)\b", re.IGNORECASE)


def explained(slower: str, faster: str) -> bool:
    """Whether the words of two figures say why the first is less than the second on a sound machine."""
    links = [[int(gen) for gen in _GENERATION.findall(words)] for words in (slower, faster)]
    if all(links) and links[0][0] < links[1][0]:
        return True
    media = [{at for at, pattern in enumerate(_MEDIA) if pattern.search(words)} for words in (slower, faster)]
    if all(media) and not media[0] & media[1]:
        return True
    if (_BEYOND.search(slower) and not _BEYOND.search(faster)) or (
        _CACHED.search(faster) and not _CACHED.search(slower)
    ):
        return True
    if _ONE.search(slower) and _MANY.search(faster):
        return True
    if _DUPLEX.search(slower):
        return _DUPLEX.search(faster) is None
    return _DUPLEX.search(faster) is not None and _ONE_WAY.search(slower) is not None
