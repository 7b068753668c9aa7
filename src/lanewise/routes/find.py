"""Finds routes: the one that data takes by default, and every sensible one between two ends."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from lanewise.errors import Unreachable
from lanewise.routes.classify import LOCAL, NET, class_of, rank, seen_class
from lanewise.routes.endpoints import ends
from lanewise.routes.memo import remembered
from lanewise.routes.model import Route, Via
from lanewise.routes.network import Cards, pairs
from lanewise.routes.rules import domain_key, peer_way, refusal, why_not_below_root
from lanewise.routes.ways import (
    FABRIC,
    NVLINKS,
    SOCKETS,
    Way,
    every,
    over_roots,
    root_of,
    shortest,
    turns_at_cpu,
)
from lanewise.topology.model import Kind, LinkKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lanewise.topology.model import System

OFF = "P2P is off"
MOST_CARDS = 4


def route(system: System, src: str, dst: str, p2p: bool = True) -> Route:
    """The route that data takes by default from `src` to `dst`; without `p2p` devices go through memory.

    UnknownName or InputError for a name that is no end, Unreachable with the line of `src` if nothing joins the two.
    """
    with _at_line_of(system, src):
        return _route(system, *ends(system, src, dst), p2p)


def routes(system: System, src: str, dst: str) -> tuple[Route, ...]:
    """Every sensible route: the default, then others that are allowed, then those that are not, and why."""
    first = route(system, src, dst)
    a, b = first.src, first.dst
    if a == b:
        return (first,)
    found: dict[tuple[object, ...], Route] = {}
    for each in (first, *_candidates(system, a, b)):
        found.setdefault((each.hops, each.via, *(stage.dst for stage in each.stages)), each)
    rest = [each for each in found.values() if each is not first]
    return (first, *sorted(rest, key=_preference))


@contextmanager
def _at_line_of(system: System, name: str) -> Iterator[None]:
    """Gives an Unreachable the place where the description has the source."""
    try:
        yield
    except Unreachable as error:
        if error.location is None and name in system.devices:
            error.location = system.devices[name].location
        raise


@remembered
def _route(system: System, a: str, b: str, p2p: bool) -> Route:
    one, other = system.device(a), system.device(b)
    if a == b:
        return Route(a, b, Via.LOCAL, LOCAL, ())
    for name in (a, b):
        root_of(system, name)
    nvlink = next(_nvlinks(system, a, b), None) if p2p else None
    if nvlink is not None:
        return nvlink
    if one.host != other.host:
        return _by_network(system, a, b, p2p)
    if Kind.CPU in (one.kind, other.kind):
        return _made(system, a, b, over_roots(system, a, b))
    direct = _peer(system, a, b)
    if direct.allowed and p2p:
        return direct
    return _staged(system, a, b, (root_of(system, a)[0],), direct.cls, direct.reason or OFF)


def _preference(each: Route) -> tuple[bool, int, int, int]:
    """Allowed before not; fewer copies, nearer classes, fewer hops first."""
    return (not each.allowed, len(each.stages), rank(each.cls), len(each.hops))


def _made(system: System, a: str, b: str, hops: Way, why: str = "", note: str = "") -> Route:
    nvlink = any(hop.link.kind is LinkKind.NVLINK for hop in hops)
    via = Via.NVLINK if nvlink else Via.PCIE
    return Route(a, b, via, class_of(system, hops), hops, not why, why, (), note)


def _peer(system: System, a: str, b: str) -> Route:
    """Straight from device to device over PCIe, allowed or not."""
    hops, note = peer_way(system, a, b)
    if note:
        shown = seen_class(system, a, b)
        if shown != class_of(system, hops):
            note += f"; nvidia-smi shows {shown}"
    return _made(system, a, b, hops, refusal(system, a, b, hops), note)


def _nvlinks(system: System, a: str, b: str) -> Iterator[Route]:
    """Every NVLink of two GPUs' own, and the way through every NVSwitch that joins them."""
    if {system.device(a).kind, system.device(b).kind} != {Kind.GPU}:
        return
    least = shortest(system, a, b, NVLINKS)
    for way in every(system, a, b, NVLINKS) if least else ():
        if len(way) == len(least or ()):
            yield _made(system, a, b, way)


def _staged(system: System, a: str, b: str, memories: Sequence[str], cls: str, note: str) -> Route:
    """Copies through the memory of these sockets, one after the other."""
    stages = tuple(_made(system, x, y, over_roots(system, x, y)) for x, y in pairwise((a, *memories, b)))
    hops = tuple(hop for stage in stages for hop in stage.hops)
    return Route(a, b, Via.STAGED, cls, hops, stages=stages, note=note)


def _by_network(system: System, a: str, b: str, p2p: bool) -> Route:
    found = pairs(system, a, b)
    if not found:
        raise _no_network(system, a, b)
    return _over_cards(system, a, b, found[0], p2p)


def _over_cards(system: System, a: str, b: str, cards: Cards, p2p: bool) -> Route:
    """Over a pair of cards; at an end where the card may not reach the device, through host memory."""
    why = (
        _card_refusal(system, a, cards.first, cards.leaving, p2p),
        _card_refusal(system, b, cards.second, cards.arriving, p2p),
    )
    x = root_of(system, a)[0] if why[0] else a
    y = root_of(system, b)[0] if why[1] else b
    if x == a and y == b:
        return Route(a, b, Via.NETWORK, NET, cards.hops)
    leaving = over_roots(system, x, cards.first) if why[0] else cards.leaving
    arriving = over_roots(system, cards.second, y) if why[1] else cards.arriving
    stages = [Route(x, y, Via.NETWORK, NET, (*leaving, *cards.between, *arriving))]
    if why[0]:
        stages.insert(0, _made(system, a, x, over_roots(system, a, x)))
    if why[1]:
        stages.append(_made(system, y, b, over_roots(system, y, b)))
    hops = tuple(hop for stage in stages for hop in stage.hops)
    note = "; ".join(dict.fromkeys(each for each in why if each))
    return Route(a, b, Via.STAGED, NET, hops, stages=tuple(stages), note=note)


def _card_refusal(system: System, end: str, card: str, way: Way, p2p: bool) -> str:
    if end == card or system.device(end).kind is Kind.CPU:
        return ""
    return refusal(system, end, card, way) if p2p else OFF


def _no_network(system: System, a: str, b: str) -> Unreachable:
    one, other = system.device(a).host, system.device(b).host
    cause = f"{a} is on {one} and {b} on {other}, and no network joins the two hosts"
    if shortest(system, a, b, FABRIC):
        cause += "; the PCIe fabric between them keeps hosts apart"
    hint = "join a network card of each host with network: links, or bind both to one host"
    return Unreachable(cause, hint=hint)


def _candidates(system: System, a: str, b: str) -> Iterator[Route]:
    one, other = system.device(a), system.device(b)
    yield from _nvlinks(system, a, b)
    memory = Kind.CPU in (one.kind, other.kind)
    if one.host == other.host:
        yield from _to_memory(system, a, b) if memory else _between_devices(system, a, b)
    if one.host != other.host or not memory:
        for number, cards in enumerate(pairs(system, a, b)[:MOST_CARDS]):
            direct = _over_cards(system, a, b, cards, True)
            yield direct
            if number == 0 and not _memory_only(system, a, b):
                yield _over_cards(system, a, b, cards, False)


def _memory_only(system: System, a: str, b: str) -> bool:
    """Whether both ends are host memory."""
    return {system.device(a).kind, system.device(b).kind} == {Kind.CPU}


def _to_memory(system: System, a: str, b: str) -> Iterator[Route]:
    """Redundant ways between a device and its root, and redundant ways between sockets."""
    (one, up), (other, down) = root_of(system, a), root_of(system, b)
    ups = every(system, a, one, FABRIC) if up else ((),)
    downs = every(system, other, b, FABRIC) if down else ((),)
    across = every(system, one, other, SOCKETS) if one != other else ((),)
    for first in ups:
        for middle in across:
            for last in downs:
                yield _made(system, a, b, (*first, *middle, *last))


def _between_devices(system: System, a: str, b: str) -> Iterator[Route]:
    direct = _peer(system, a, b)
    yield direct
    for way in every(system, a, b, FABRIC):
        why = why_not_below_root(system, a, b, way)
        yield _made(system, a, b, way, why or refusal(system, a, b, way))
    with suppress(Unreachable):  # two sockets that only a fabric joins have no way over their roots
        yield from _above_roots(system, a, b, direct)


def _above_roots(system: System, a: str, b: str, direct: Route) -> Iterator[Route]:
    """The way over the root ports that the fabric saves, and copies staged at either socket or at both."""
    if not turns_at_cpu(system, direct.hops) and domain_key(system, a) != domain_key(system, b):
        hops = over_roots(system, a, b)
        why = "cross-domain P2P is on, so peer traffic takes the fabric"
        yield _made(system, a, b, hops, refusal(system, a, b, hops) or why)
    near, far = root_of(system, a)[0], root_of(system, b)[0]
    for memories in [(near,), (far,), (near, far)] if near != far else [(near,)]:
        yield _staged(system, a, b, memories, direct.cls, "")
