"""Over the network: which network cards a flow between two hosts (or two sockets) takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise.errors import Unreachable
from lanewise.routes.classify import class_of, rank
from lanewise.routes.memo import remembered
from lanewise.routes.rules import peer_way
from lanewise.routes.ways import NETWORK, Way, over_roots, reach, shortest
from lanewise.topology.model import Kind

if TYPE_CHECKING:
    from lanewise.topology.model import System


@dataclass(frozen=True, slots=True)
class Cards:
    """A pair of network cards, and the ways from one end to the first, between them, and to the other end."""

    first: str
    second: str
    leaving: Way
    between: Way
    arriving: Way

    @property
    def hops(self) -> Way:
        """All three ways in order."""
        return (*self.leaving, *self.between, *self.arriving)


@remembered
def cards_of(system: System, host: str) -> tuple[str, ...]:
    """The network cards of a host that have a network link, in the order of the description."""
    return tuple(name for name in system.of_kind(Kind.NIC, host=host) if reach(system, name, NETWORK))


def local_way(system: System, a: str, b: str) -> Way:
    """The way between two ends of one host, devices or memory; Unreachable as `root_of` and `sockets`."""
    if a == b:
        return ()
    if Kind.CPU in (system.device(a).kind, system.device(b).kind):
        return over_roots(system, a, b)
    return peer_way(system, a, b)[0]


@remembered
def _distances(system: System, end: str) -> dict[str, tuple[int, int]]:
    """The cards that an end of a route can use, each with (rank of the class, hops) of the way there."""
    device = system.device(end)
    if device.kind is Kind.NIC:
        return {end: (0, 0)} if reach(system, end, NETWORK) else {}
    found = {}
    for card in cards_of(system, device.host or ""):
        try:
            way = local_way(system, end, card)
        except Unreachable:
            continue
        found[card] = (rank(class_of(system, way)), len(way))
    return found


@remembered
def nearest(system: System, end: str) -> tuple[str, ...]:
    """The cards at the least distance from an end, in the order of the description."""
    distances = _distances(system, end)
    least = min(distances.values(), default=None)
    return tuple(card for card, distance in distances.items() if distance == least)


@remembered
def own(system: System, end: str) -> str | None:
    """The card that falls to a device: devices of one kind that are as near to the same cards take turns."""
    device, near = system.device(end), nearest(system, end)
    if not near or device.kind is Kind.CPU:
        return None
    mates = [name for name in system.of_kind(device.kind, host=device.host) if nearest(system, name) == near]
    return near[mates.index(end) % len(near)]


def rail(system: System, end: str, partner: str) -> str | None:
    """The card for memory `end` when the other side uses `partner`: the one of its number, if near."""
    near = nearest(system, end)
    if not near:
        return None
    level = of_number(system, system.device(end).host or "", partner)
    return level if level in near else near[_number(system, partner) % len(near)]


def of_number(system: System, host: str, partner: str) -> str:
    """The card of `host` that has the number of `partner`, counted round if the host has fewer."""
    mine = cards_of(system, host)
    return mine[_number(system, partner) % len(mine)]


def _number(system: System, card: str) -> int:
    return cards_of(system, system.device(card).host or "").index(card)


@remembered
def pairs(system: System, a: str, b: str) -> tuple[Cards, ...]:
    """The pairs of cards that join `a` and `b`, best first: near to both ends, then spread over the cards."""
    ranked = sorted(
        (_cost(system, a, b, first, second), first, second)
        for first in _distances(system, a)
        for second in _distances(system, b)
        if first != second and shortest(system, first, second, NETWORK)
    )
    return tuple(_cards(system, a, b, first, second) for _, first, second in ranked)


def _cost(system: System, a: str, b: str, first: str, second: str) -> tuple[int, ...]:
    one, other = _distances(system, a)[first], _distances(system, b)[second]
    liked = own(system, a) or rail(system, a, second), own(system, b) or rail(system, b, first)
    odd = (first != liked[0]) + (second != liked[1])
    between = len(shortest(system, first, second, NETWORK) or ())
    return (one[0] + other[0], one[1] + other[1] + between, odd, _number(system, first))


def _cards(system: System, a: str, b: str, first: str, second: str) -> Cards:
    between = shortest(system, first, second, NETWORK) or ()
    return Cards(first, second, local_way(system, a, first), between, local_way(system, second, b))


@remembered
def nearest_memory(system: System, host: str, peer: str) -> str | None:
    """The CPU of `host` whose memory has the best cards to `peer` on another host, None if there is none."""
    best: list[tuple[tuple[int, ...], int, str]] = []
    for place, cpu in enumerate(system.of_kind(Kind.CPU, host=host)):
        for cards in pairs(system, cpu, peer)[:1]:
            near, far, odd, _ = _cost(system, cpu, peer, cards.first, cards.second)
            off_rail = cards.first != of_number(system, host, cards.second)
            best.append(((near, far, odd, off_rail), place, cpu))
    return min(best)[2] if best else None
