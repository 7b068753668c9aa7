"""Over the network: which network cards a flow between two hosts (or two sockets) takes."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.errors import Unreachable
from lanewise.routes.classify import class_of, rank
from lanewise.routes.paths import NETWORK, Hops, memoized, over_roots, reach, shortest
from lanewise.routes.rules import peer_hops
from lanewise.topology.model import Kind, System


@dataclass(frozen=True, slots=True)
class CardPair:
    """A pair of network cards, and the hops from one end to the first, between them, and to the other end."""

    first: str
    second: str
    leaving: Hops
    between: Hops
    arriving: Hops

    @property
    def hops(self) -> Hops:
        """All hops in order."""
        return (*self.leaving, *self.between, *self.arriving)


@memoized
def cards_of(system: System, host: str) -> tuple[str, ...]:
    """The network cards of a host that have a network link, in the order of the description."""
    return tuple(name for name in system.of_kind(Kind.NIC, host=host) if reach(system, name, NETWORK))


def local_hops(system: System, a: str, b: str) -> Hops:
    """The hops between two ends of one host, devices or memory; Unreachable as `hops_to_cpu` and `sockets`."""
    if a == b:
        return ()
    if Kind.CPU in (system.device(a).kind, system.device(b).kind):
        return over_roots(system, a, b)
    return peer_hops(system, a, b)[0]


@memoized
def _distances(system: System, end: str) -> dict[str, tuple[int, int]]:
    """The cards that an end of a route can use, each with (rank of the class, hops) of the path to it."""
    device = system.device(end)
    if device.kind is Kind.NIC:
        return {end: (0, 0)} if reach(system, end, NETWORK) else {}
    distances = {}
    for card in cards_of(system, device.host or ""):
        try:
            hops = local_hops(system, end, card)
        except Unreachable:
            continue
        distances[card] = (rank(class_of(system, hops)), len(hops))
    return distances


@memoized
def nearest(system: System, end: str) -> tuple[str, ...]:
    """The cards at the least distance from an end, in the order of the description."""
    distances = _distances(system, end)
    least = min(distances.values(), default=None)
    return tuple(card for card, distance in distances.items() if distance == least)


@memoized
def own_card(system: System, end: str) -> str | None:
    """The card assigned to a device: devices of one kind that are equally near to the same cards take turns."""
    device, cards = system.device(end), nearest(system, end)
    if not cards or device.kind is Kind.CPU:
        return None
    mates = [name for name in system.of_kind(device.kind, host=device.host) if nearest(system, name) == cards]
    return cards[mates.index(end) % len(cards)]


def rail(system: System, end: str, partner: str) -> str | None:
    """The card for memory `end` when the other side uses `partner`: the one of the same number, if near."""
    cards = nearest(system, end)
    if not cards:
        return None
    same_number = of_number(system, system.device(end).host or "", partner)
    return same_number if same_number in cards else cards[_number(system, partner) % len(cards)]


def of_number(system: System, host: str, partner: str) -> str:
    """The card of `host` that has the number of `partner`, counted round if the host has fewer."""
    mine = cards_of(system, host)
    return mine[_number(system, partner) % len(mine)]


def _number(system: System, card: str) -> int:
    return cards_of(system, system.device(card).host or "").index(card)


@memoized
def pairs(system: System, a: str, b: str) -> tuple[CardPair, ...]:
    """The pairs of cards that join `a` and `b`, best first: near to both ends, then spread over the cards."""
    ranked = sorted(
        (_cost(system, a, b, first, second), first, second)
        for first in _distances(system, a)
        for second in _distances(system, b)
        if first != second and shortest(system, first, second, NETWORK)
    )
    return tuple(
        CardPair(
            first, second, local_hops(system, a, first), shortest(system, first, second, NETWORK) or (),
            local_hops(system, second, b),
        )
        for _, first, second in ranked
    )  # fmt: skip


def _cost(system: System, a: str, b: str, first: str, second: str) -> tuple[int, ...]:
    from_a, from_b = _distances(system, a)[first], _distances(system, b)[second]
    preferred = own_card(system, a) or rail(system, a, second), own_card(system, b) or rail(system, b, first)
    odd = (first != preferred[0]) + (second != preferred[1])
    between = len(shortest(system, first, second, NETWORK) or ())
    return (from_a[0] + from_b[0], from_a[1] + from_b[1] + between, odd, _number(system, first))


@memoized
def nearest_memory(system: System, host: str, other: str) -> str | None:
    """The CPU of `host` whose memory has the best cards to `other` on another host, None if there is none."""
    best: list[tuple[tuple[int, ...], int, str]] = []
    for index, cpu in enumerate(system.of_kind(Kind.CPU, host=host)):
        for cards in pairs(system, cpu, other)[:1]:
            near, far, odd, _ = _cost(system, cpu, other, cards.first, cards.second)
            off_rail = cards.first != of_number(system, host, cards.second)
            best.append(((near, far, odd, off_rail), index, cpu))
    return min(best)[2] if best else None
