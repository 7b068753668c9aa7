"""Flows: what is to be moved from where to where, and the one-line notation users write them in."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lanewise import units
from lanewise.errors import FormatError, shorten
from lanewise.topology.ranges import expand

_END = r"[\w.:\-]+(?:\[[\d,\-]+\][\w.:\-]*)*"
_FLOW = re.compile(rf"^\s*(?P<src>{_END}?)\s*(?P<arrow><->|->|<-)\s*(?P<dst>{_END})(?P<rest>(?:\s(?s:.*))?)$")
# Commas of a range, gpu[0,2], part no names; what stands between two others.
_PIECE = re.compile(r"(?:^|,)((?:[^,\[]|\[[^\[\]]*+\]?)*+)")
_Value: TypeAlias = float | bool | str | tuple[str, ...]
_ALL = "all-to-all"
# Of one all-to-all: those of 316 GPUs. More take minutes to predict, and no table shows them.
MOST_PAIRS = 100_000
_TWO_ENDS = "write source->destination, such as gpu0->gpu4 or host0->gpu1"
_ONE_ARROW = "name its two ends; what lies between follows from the cabling: lanewise route SYSTEM gpu0 gpu1 shows it"
_RESERVED = ("read", "sm", "interleaved", "cap", "every", "as", "after", _ALL)  # words that are no units
_NAME = re.compile(r"[A-Za-z]\w*")
_WORDS = (
    "use words after the flow: all-to-all, read, sm, interleaved, 1 GiB, @0.5 ms (start), as a, after a+b, "
    "x2 (weight), cap 5 GB/s, every 10 s"
)


@dataclass(frozen=True, slots=True)
class Flow:
    """Bytes from `src` to `dst`: endless if `size` (B) is None, from `start` (s) on, at most at `cap` (B/s).

    With `after` it begins `start` seconds after all flows of these labels have ended; `label` is its own.
    Flows that compete share by `weight`. With `every` (s) a sized flow begins again and again; only background traffic
    of a service may.

    `read` makes the destination GPU pull peer data instead of the source pushing it; without `p2p` two GPUs exchange
    data through host memory. `sm` has a kernel copy instead of a copy engine: measured, not modelled. Flows of a
    GPU that are `interleaved` are one copy whose pages alternate between their ends, as numactl --interleave has them.
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
    interleaved: bool = False
    p2p: bool = True
    every: float = 0.0
    label: str = ""
    after: tuple[str, ...] = ()

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
            flows.extend(_after_known(piece, _parse_one(piece, p2p), flows))
    if not flows:
        raise FormatError("no flow given", hint="write flows as 'gpu0->gpu4, host0->gpu1'")
    return tuple(flows)


def _parse_one(piece: str, p2p: bool) -> list[Flow]:
    match = _FLOW.match(piece)
    if not match:
        raise FormatError(f"'{shorten(piece)}' is not a flow", hint=_ONE_ARROW if piece.count("->") > 1 else _TWO_ENDS)
    options = _options(piece, match["rest"])
    sources, targets = expand(match["src"]), expand(match["dst"])
    if options.pop(_ALL, False):
        if len(sources) * len(targets) > MOST_PAIRS:
            cause = f"'{shorten(piece.strip())}' is {len(sources) * len(targets):,} flows, more than {MOST_PAIRS:,}"
            raise FormatError(cause, hint="name fewer ends, or a collective (predict --collective all_to_all)")
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


def _after_known(piece: str, flows: list[Flow], earlier: Sequence[Flow]) -> list[Flow]:
    if not flows[0].after:
        return flows
    labels = {flow.label for flow in earlier if flow.label}
    unknown = next((label for label in flows[0].after if label not in labels), None)
    if unknown is not None:
        hint = "name an earlier flow, and wait for that: 'gpu0->gpu1 1 GiB as a, gpu1->gpu2 1 GiB after a'"
        raise FormatError(f"'{piece}' is after '{unknown}', and no flow before it has that name", hint=hint)
    return flows


def _pairs(piece: str, sources: list[str], targets: list[str]) -> list[tuple[str, str]]:
    if len(sources) == len(targets):
        return list(zip(sources, targets, strict=True))
    if 1 in (len(sources), len(targets)):
        return [(a, b) for a in sources for b in targets]
    cause = f"'{piece.strip()}' joins {len(sources)} ends to {len(targets)}"
    hint = f"use ranges of equal length (pairs), a single end on one side (a star), or the word {_ALL} after them"
    raise FormatError(cause, hint=hint)


def _options(piece: str, rest: str) -> dict[str, _Value]:
    options: dict[str, _Value] = {}
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


def _option(word: str, rest: deque[str]) -> tuple[str, _Value]:
    if word in ("read", "sm", "interleaved", _ALL):
        return word, True
    if word == "as":
        return "label", _label(rest.popleft() if rest else "")
    if word == "after":
        return "after", tuple(_label(name) for name in (rest.popleft() if rest else "").split("+"))
    if word == "@":
        return "start", _quantity("", rest, "s", zero=True)
    if word == "cap":
        return "cap", _quantity("", rest, "B/s")
    if word == "every":
        return "every", _quantity("", rest, "s")
    if word.startswith("x") and len(word) > 1:
        return "weight", _positive(units.parse(word[1:], "1"), word)
    return "size", _quantity(word, rest, "B", zero=True)


def _label(word: str) -> str:
    if not _NAME.fullmatch(word):
        raise FormatError(f"'{word}' is not a name of a flow: a letter, then letters and digits")
    return word


def _quantity(word: str, rest: deque[str], expect: str, zero: bool = False) -> float:
    """A number and its unit, with or without a blank between them."""
    text = word or (rest.popleft() if rest else "")
    unit = rest[0] if rest else ""
    if text[-1:].isdigit() and unit[:1].isalpha() and unit not in _RESERVED and unit[0] != "x":
        text += f" {rest.popleft()}"
    return _positive(units.parse(text, expect), text, zero=zero)


def _positive(value: float, word: str, zero: bool = False) -> float:
    if value < 0 or (value == 0 and not zero) or not math.isfinite(value):
        raise FormatError(f"'{word}' must be {'zero or more' if zero else 'above zero'}")
    return value
