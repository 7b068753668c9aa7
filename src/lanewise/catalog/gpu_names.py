"""GPUs as people call them in a hurry by the names that drivers print: 4090, A100 80G SXM4, RTX6000 Ada.

A name that leaves open which of several parts is meant (A100, V100, RTX 6000) stays as it is.
"""

from __future__ import annotations

from functools import lru_cache

from lanewise import late_re as re

# Not the memory of a part of a GPU (1g.10gb), nor a name (5700G).
_MEMORY = re.compile(r",?[ -]?\(?(?<![.\w])(\d{2,3} ?GB?|\d{4,6} ?Mi?B)\b\)?", re.IGNORECASE)
# Several parts of one name differ by their memory; elsewhere it says nothing that a path depends on.
_BY_MEMORY = re.compile(r"\b(?:[AH]100|A800|[VP]100|GH200(?=[ -]480))\b", re.IGNORECASE)
_ADDED = re.compile(r"[ -](?:OAM|GCD|NVL ?\d{2,3}|AC)\b(?! \d)|[ ,]+(?:GPUs?|cards?)$", re.IGNORECASE)
_MODULE = re.compile(
    r"(?:NVIDIA[ -]|Tesla[ -]){0,2}\b(?P<gpu>[AH]\d{3}|H20|B[23]00)[ -](?:(?P<memory>\d{2,3})GB[ -])?SXM\d?\b",
    re.IGNORECASE,
)
# Cards whose series people leave out, with or without what stands behind the number.
_SERIES = (
    (r"(?:NVIDIA |GeForce )*(?:RTX ?)?([2345]0[5-9]0)(?: ?(Ti))?(?: ?(Super))?( ?D)?"
     r"(?: ((?:Laptop|Mobile|Max-Q)(?: GPU)?))?", "NVIDIA GeForce RTX {}"),
    (r"(?:NVIDIA |GeForce )*(?:GTX ?)?(9[5-8]0|10[5-8]0|16[56]0)(?: ?(Ti))?(?: ?(Super))?()", "NVIDIA GeForce GTX {}"),
    (r"(?:AMD |Radeon )*(?:RX ?)?([56-79]\d00|90\d0)(?: ?(XTX?|GRE|M))?()()", "AMD Radeon RX {}"),
    (r"(?:Intel )?(?:Arc )?(A3[18]0|A580|A7[57]0|B5[78]0)()()()", "Intel Arc {}"),
    (r"(?:Intel )?(?:Arc )?(?:Pro )?(B[67][05])()()()", "Intel Arc Pro {}"),
    (r"(?:Intel )?(?:Data Center GPU )?(Max 1[15]\d0)()()()", "Intel Data Center GPU {}"),
    (r"(?:NVIDIA )?(?:RTX ?)?([2456]000) ?(Ada)(?: Generation)?()()", "NVIDIA RTX {} Generation"),
)  # fmt: skip
_BLACKWELL = re.compile(
    r"(?:NVIDIA )?(?:RTX ?)?(?:PRO ?6000(?: Blackwell)?|6000 ?PRO(?: Blackwell)?|6000 ?Blackwell)"
    r"(?P<edition>(?:[ (-]+(?:server|SE|BSE|workstation|WS|WE|max-?q|edition|generation)\b\)?)+)?",
    re.IGNORECASE,
)
LONGEST = 100  # characters of a name
_NOISE = re.compile(r"\b(?:nvidia|geforce|tesla|amd|instinct|generation|corporation)\b|\((?:r|tm)\)")
_SERVER = re.compile(r"\b(?:server|SE|BSE)\b", re.IGNORECASE)


@lru_cache(maxsize=4096)
def driver_name(text: str) -> str:
    """The name of a GPU as its driver prints it, as far as the words tell; other words as they are.

    >>> driver_name("A100 80G SXM4")
    'NVIDIA A100 SXM 80GB'
    """
    if len(text) > LONGEST:
        return text
    name = " ".join(text.split())
    name = _MEMORY.sub(lambda size: f" {re.sub('[^0-9]', '', size[1])}GB" if _BY_MEMORY.search(name) else "", name)
    name = _ADDED.sub("", name).strip()
    if (module := _MODULE.match(name)) is not None:
        size = f" {module['memory']}GB" if module["memory"] else ""
        return f"NVIDIA {module['gpu'].upper()} SXM{size}{name[module.end() :]}"
    return _of_a_series(name)


@lru_cache(maxsize=4096)
def words_of(name: str) -> frozenset[str]:
    """The words of a GPU's name that tell it from others, in any order: no maker, and one word for all SXM sockets."""
    plain = re.sub(r"(\d) gb\b", r"\1gb", _NOISE.sub(" ", name[:LONGEST].lower()))
    return frozenset(re.sub(r"^sxm\d$", "sxm", word) for word in re.findall(r"[a-z0-9]+", plain))


def _of_a_series(name: str) -> str:
    if (card := _BLACKWELL.fullmatch(name)) is not None:
        edition = "Server" if _SERVER.search(card["edition"] or "") else "Workstation"
        return f"NVIDIA RTX PRO 6000 Blackwell {edition} Edition" if card["edition"] else "RTX PRO 6000"
    for pattern, ours in _SERIES:
        if (match := re.compile(pattern, re.IGNORECASE).fullmatch(name)) is not None:
            return ours.format(" ".join(part.strip() for part in match.groups() if part and part.strip()))
    return name
