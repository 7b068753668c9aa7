"""Flows: what is to be moved from where to where, and the one-line notation users write them in."""

from __future__ import annotations

import math
import re
from collections import deque
from dataclasses import dataclass

from lanewise import units
from lanewise.errors import FormatError, shorten
from lanewise.topology.ranges import expand

_END = r"[\w.:\-]+(?:\[[\d,\-]+\][\w.:\-]*)*"
_FLOW = re.compile(rf"^\s*(?P<src>{_END}?)\s*(?P<arrow><->|->|<-)\s*(?P<dst>{_END})(?P<rest>(?:\s(?s:.*))?)$")
# Commas of a range, gpu[0,2], part no names; what stands between two others.
_PIECE = re.compile(r"(?:^|,)((?:[^,\[]|\[[^\[\]]*+\]?)*+)")
_ALL = "all-to-all"
_WORDS = "use words after the flow: all-to-all, read, sm, 1 GiB, @0.5 ms (start), x2 (weight), cap 5 GB/s, every 10 s"


@dataclass(frozen=True, slots=True)
class Flow:
    """Bytes from `src` to `dst`: endless if `size` (B) is None, from `start` (s) on, at most at `cap` (B/s).

    Flows that compete share by `weight`. With `every` (s) a sized flow begins again and again; only background traffic
    of a service may.

    `read` makes the destination GPU pull peer data instead of the source pushing it; without `p2p` two GPUs exchange
    data through host memory. `sm` has a kernel copy instead of a copy engine: measured, not modelled.
    """

    src: str
    dst: str
    size: float | None = None
    start: float = 0.0
    weight: float = 1.0
    cap: float = math.inf
    cap_name: str = ""
    cap_basis: str = "physics"
    cap_rests_on: str = "stated with the flow"
    read: bool = False
    sm: bool = False
    p2p: bool = True
    every: float = 0.0

    @property
    def name(self) -> str:
        """The flow as users write it."""
        return f"{self.src}->{self.dst}"


def pieces_of(text: str) -> list[str]:
    """What commas part, without blanks around; commas within [ ] belong to a range."""
    return [piece.strip() for piece in _PIECE.findall(text)]


def names_of(text: str) -> list[str]:
    """'gpu[0-3], ssd0' as names, each once."""
    return list(dict.fromkeys(name for piece in pieces_of(text) if piece for name in expand(piece)))


def parse_flows(text: str, p2p: bool = True) -> tuple[Flow, ...]:
    """Read 'gpu0->gpu4, host0->gpu[0-3] 1 GiB @2 ms'; FormatError names the piece it cannot read.

    `<->` makes two flows. One end and a range make a star, two ranges of equal length make pairs; with the word
    all-to-all after them every end on the left sends to every other end on the right.
    """
    flows: list[Flow] = []
    for piece in pieces_of(text):
        if piece:
            flows.extend(_parse_one(piece, p2p))
    if not flows:
        raise FormatError("no flow given", hint="write flows as 'gpu0->gpu4, host0->gpu1'")
    return tuple(flows)


def _parse_one(piece: str, p2p: bool) -> list[Flow]:
    match = _FLOW.match(piece)
    if not match:
        raise FormatError(
            f"'{shorten(piece)}' is not a flow", hint="write source->destination, such as gpu0->gpu4 or host0->gpu1"
        )
    options = _options(piece, match["rest"])
    sources, targets = expand(match["src"]), expand(match["dst"])
    if options.pop(_ALL, False):
        pairs = [(a, b) for a in sources for b in targets if a != b]
    else:
        pairs = _pairs(piece, sources, targets)
    if not pairs or any(a == b for a, b in pairs):
        hint = f"name two different ends, or all pairs: {match['src']}->{match['dst']} {_ALL}"
        if max(len(sources), len(targets)) == 1:
            hint = "name two different ends"
        raise FormatError(f"'{piece.strip()}' goes nowhere: both ends are the same", hint=hint)
    forward, back = match["arrow"] != "<-", match["arrow"] != "->"
    ends = dict.fromkeys(end for a, b in pairs for end in ([(a, b)] * forward + [(b, a)] * back))
    return [Flow(a, b, p2p=p2p, **options) for a, b in ends]  # type: ignore[arg-type]


def _pairs(piece: str, sources: list[str], targets: list[str]) -> list[tuple[str, str]]:
    if len(sources) == len(targets):
        return list(zip(sources, targets, strict=True))
    if 1 in (len(sources), len(targets)):
        return [(a, b) for a in sources for b in targets]
    cause = f"'{piece.strip()}' joins {len(sources)} ends to {len(targets)}"
    hint = f"use ranges of equal length (pairs), a single end on one side (a star), or the word {_ALL} after them"
    raise FormatError(cause, hint=hint)


def _options(piece: str, rest: str) -> dict[str, float | bool]:
    options: dict[str, float | bool] = {}
    words = deque(rest.replace("@", " @ ").split())
    try:
        while words:
            word = words[0]
            name, value = _option(words.popleft(), words)
            if name in options:
                raise FormatError(f"'{word}' says a second time what its {name} is")
            options[name] = value
    except FormatError as error:
        raise FormatError(f"'{piece.strip()}': {error.cause}", hint=_WORDS) from None
    return options


def _option(word: str, rest: deque[str]) -> tuple[str, float | bool]:
    if word in ("read", "sm", _ALL):
        return word, True
    if word == "@":
        return "start", _quantity("", rest, "s", zero=True)
    if word == "cap":
        return "cap", _quantity("", rest, "B/s")
    if word == "every":
        return "every", _quantity("", rest, "s")
    if word.startswith("x") and len(word) > 1:
        return "weight", _positive(units.parse(word[1:], "1"), word)
    return "size", _quantity(word, rest, "B", zero=True)


def _quantity(word: str, rest: deque[str], expect: str, zero: bool = False) -> float:
    """A number and its unit, with or without a blank between them."""
    text = word or (rest.popleft() if rest else "")
    unit = rest[0] if rest else ""
    if (
        text[-1:].isdigit()
        and unit[:1].isalpha()
        and unit not in ("read", "sm", "cap", "every", _ALL)
        and unit[0] != "x"
    ):
        text += f" {rest.popleft()}"
    return _positive(units.parse(text, expect), text, zero=zero)


def _positive(value: float, word: str, zero: bool = False) -> float:
    if value < 0 or (value == 0 and not zero) or not math.isfinite(value):
        raise FormatError(f"'{word}' must be {'zero or more' if zero else 'above zero'}")
    return value
