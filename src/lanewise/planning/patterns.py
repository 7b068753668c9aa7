"""Named patterns of communication over the GPUs of any system, so that one text fits every layout."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

from lanewise.errors import InputError, unknown_name
from lanewise.perf.flow import Flow
from lanewise.planning.pins import nearest_cards
from lanewise.routes.endpoints import ANY_HOST
from lanewise.topology.model import Kind, System

Pairs = list[tuple[str, str]]
_SIZED = re.compile(r"^(?P<name>[a-z\-]+?)-(?P<size>\d+)$")


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a pattern is for, whether its slowest flow or its total counts, and the pairs it makes of GPUs."""

    name: str
    title: str
    by: str
    pairs: Callable[[Sequence[str]], Pairs] | None


def _ring(gpus: Sequence[str]) -> Pairs:
    return [(gpu, gpus[(i + 1) % len(gpus)]) for i, gpu in enumerate(gpus)]


def _neighbours(gpus: Sequence[str]) -> Pairs:
    both = zip(gpus[::2], gpus[1::2], strict=False)
    return [pair for a, b in both for pair in ((a, b), (b, a))]


def _halves(gpus: Sequence[str]) -> Pairs:
    half = len(gpus) // 2
    both = zip(gpus[:half], gpus[half:], strict=False)
    return [pair for a, b in both for pair in ((a, b), (b, a))]


PATTERNS = {
    each.name: each
    for each in (
        Pattern("scatter", "the host to each GPU: embarrassingly parallel work", "total", lambda g: _host(g, True)),
        Pattern("gather", "each GPU to the host", "total", lambda g: _host(g, False)),
        Pattern("ring", "each GPU to the next; ring-4: in groups of four", "slowest", _ring),
        Pattern("all-to-all", "each GPU to every other; all-to-all-4: in groups of four", "slowest",
                lambda gpus: list(permutations(gpus, 2))),
        Pattern("pairs", "neighbours, both ways", "slowest", _neighbours),
        Pattern("halves", "each GPU of the first half with one of the second, both ways", "slowest", _halves),
        Pattern("off-box", "each GPU to its network card", "total", None),
        Pattern("into-box", "each network card to its GPUs", "total", None),
    )
}  # fmt: skip


def pattern(name: str) -> tuple[Pattern, int | None]:
    """The pattern of that name and the size of its groups, None for one group; UnknownName otherwise."""
    if name in PATTERNS:
        return PATTERNS[name], None
    sized = _SIZED.match(name)
    base = PATTERNS.get(sized["name"]) if sized else None
    if sized is None or base is None or base.pairs is None:
        raise unknown_name("pattern", name, PATTERNS)
    if int(sized["size"]) < 2:
        raise InputError(f"groups of {sized['size']} have no pairs", hint=f"write {base.name}-2 or more")
    return base, int(sized["size"])


def pattern_flows(system: System, name: str, p2p: bool = True) -> tuple[Flow, ...]:
    """The flows of a pattern over all GPUs that are bound to a host; InputError if there are too few."""
    chosen, size = pattern(name)
    gpus = [gpu for gpu in system.of_kind(Kind.GPU) if system.device(gpu).host is not None]
    if not gpus:
        raise InputError(f"no GPU of {system.name} is bound to a host", hint="attach some: lanewise system attach")
    if chosen.pairs is None:
        cards = nearest_cards(system, gpus)
        both = [(gpu, card) if name == "off-box" else (card, gpu) for gpu, card in cards.items()]
    else:
        groups = [gpus[i : i + (size or len(gpus))] for i in range(0, len(gpus), size or len(gpus))]
        both = [pair for group in groups for pair in chosen.pairs(group) if pair[0] != pair[1]]
    if not both:
        raise InputError(f"{system.name} has too few GPUs for the pattern '{name}'", hint="set the parameter for them")
    return tuple(Flow(a, b, p2p=p2p) for a, b in both)


def _host(gpus: Sequence[str], down: bool) -> Pairs:
    return [(ANY_HOST, gpu) if down else (gpu, ANY_HOST) for gpu in gpus]
