"""Finds routes: the one that data takes by default, every sensible one between two ends, and which share links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, permutations, product

from lanewise.errors import Unreachable, error_location
from lanewise.routes.classify import LOCAL, NET, class_of, rank, topo_class
from lanewise.routes.endpoints import ends, memory_node, stated_node
from lanewise.routes.model import LinkDirection, Route, Via
from lanewise.routes.network import CardPair, pairs
from lanewise.routes.paths import (
    NVLINKS,
    PCIE_AND_FABRIC,
    SOCKETS,
    Hops,
    check_rooted,
    cpu_above,
    cpus_passed,
    memoized,
    over_roots,
    shortest,
    simple_paths,
    widest,
)
from lanewise.routes.rules import domain_key, peer_hops, refusal, staging_socket, why_not_below_root
from lanewise.topology.model import Kind, LinkKind, System

OFF = "P2P is off"
MOST_CARDS = 4
MOST_PAIRS = 2500  # of ends whose routes are looked at for the links that they share: under a second


def route(system: System, src: str, dst: str, p2p: bool = True) -> Route:
    """The route that data takes by default from `src` to `dst`; without `p2p` devices go through memory.

    UnknownName for a name that is no end, InputError with its line for a device that only passes data on, Unreachable
    with the line of `src` if nothing joins the two.
    """
    a, b = ends(system, src, dst)
    with error_location(system.device(a).location):
        return _at_node(_route(system, a, b, p2p), stated_node(system, src, dst))


def routes(system: System, src: str, dst: str) -> tuple[Route, ...]:
    """Every sensible route: the default, then others that are allowed, then those that are not, and why."""
    first = route(system, src, dst)
    a, b = first.src, first.dst
    if a == b:
        return (first,)
    node = first.memory_node
    by_path: dict[tuple[object, ...], Route] = {}
    for candidate in (first, *(_at_node(other, node) for other in _candidates(system, a, b))):
        by_path.setdefault((candidate.hops, candidate.via, *(stage.dst for stage in candidate.stages)), candidate)
    rest = [candidate for candidate in by_path.values() if candidate is not first]
    # Allowed before not; then fewer copies, nearer classes, fewer hops.
    return (first, *sorted(rest, key=lambda r: (not r.allowed, len(r.stages), rank(r.cls), len(r.hops))))


def sharers(system: System, crossing: Route) -> tuple[dict[LinkDirection, list[Route]], bool]:
    """For each link direction of a route: the default routes of other pairs of GPUs, cards and memory that cross it.

    False if these are not all: of a large system only MOST_PAIRS are looked at, each with an end of the route.
    """
    devices = system.of_kind(Kind.GPU, Kind.NIC)
    memories = [host for host in system.hosts if system.of_kind(Kind.CPU, host=host)]
    complete = len(devices) * (len(devices) - 1 + 2 * len(memories)) <= MOST_PAIRS
    if complete:
        pairs = [*permutations(devices, 2)]
        pairs += [pair for memory in memories for device in devices for pair in permutations((memory, device), 2)]
    else:
        pairs = [pair for end in (*devices, *memories) for pair in ((crossing.src, end), (end, crossing.dst))]
    crossed: dict[LinkDirection, list[Route]] = {hop.direction: [] for hop in crossing.hops}
    for other in _default_routes(system, pairs[:MOST_PAIRS]):
        if (other.src, other.dst) != (crossing.src, crossing.dst):
            for key in crossed.keys() & {hop.direction for hop in other.hops}:
                crossed[key].append(other)
    return crossed, complete


def _at_node(crossing: Route, node: int | None) -> Route:
    """The route from or to host memory of that NUMA node; the same route where none is named."""
    return crossing if node is None else replace(crossing, memory_node=node)


@memoized
def _route(system: System, a: str, b: str, p2p: bool) -> Route:
    device_a, device_b = system.device(a), system.device(b)
    if a == b:
        return Route(a, b, Via.LOCAL, cls=LOCAL, hops=())
    check_rooted(system, a, b)
    nvlink = next(_nvlinks(system, a, b), None) if p2p else None
    if nvlink is not None:
        return nvlink
    if device_a.host != device_b.host:
        cards = pairs(system, a, b)
        if not cards:
            raise _no_network(system, a, b)
        return _over_cards(system, a, b, cards[0], p2p)
    if Kind.CPU in (device_a.kind, device_b.kind):
        return _one_copy(system, a, b, over_roots(system, a, b))
    direct = _peer(system, a, b)
    if direct.allowed and p2p:
        return direct
    stated = system.policies.staging.get(device_a.host or "")
    memory = stated or staging_socket(system, a, b) or cpu_above(system, _owner(system, a, b))
    return _staged(system, a, b, (memory,), direct.cls, direct.reason or OFF)


def _one_copy(system: System, a: str, b: str, hops: Hops, reason: str = "", note: str = "") -> Route:
    """Data copied once, from `a` to `b` over PCIe or NVLink: a whole route, or a stage of one."""
    nvlink = any(hop.link.kind is LinkKind.NVLINK for hop in hops)
    via = Via.NVLINK if nvlink else Via.PCIE
    return Route(a, b, via, cls=class_of(system, hops), hops=hops, allowed=not reason, reason=reason, note=note)


def _peer(system: System, a: str, b: str) -> Route:
    """Straight from device to device over PCIe, allowed or not."""
    hops, note = peer_hops(system, a, b)
    if note:
        displayed = topo_class(system, a, b)
        if displayed != class_of(system, hops):
            note += f"; nvidia-smi shows {displayed}"
    return _one_copy(system, a, b, hops, refusal(system, a, b, hops), note)


def _nvlinks(system: System, a: str, b: str) -> Iterator[Route]:
    """Every NVLink between two GPUs, the path through every NVSwitch that joins them, else that over other GPUs.

    A copy over other GPUs takes the widest path: all 28 pairs of the dies of four MI250 in AMD's example do (both ways
    101 GB/s where all hops have two links or more, 80 where one has a single link; Instinct acceptance documentation,
    rocm-bandwidth-test -A), also the two pairs whose shortest path is narrower.
    """
    if {system.device(a).kind, system.device(b).kind} != {Kind.GPU}:
        return
    shortest_hops = shortest(system, a, b, NVLINKS)
    if shortest_hops is None and (over_gpus := widest(system, a, b)):
        yield _one_copy(system, a, b, over_gpus)
    for hops in simple_paths(system, a, b, NVLINKS) if shortest_hops else ():
        if len(hops) == len(shortest_hops or ()):
            yield _one_copy(system, a, b, hops)


def _staged(system: System, a: str, b: str, memories: Sequence[str], cls: str, note: str) -> Route:
    """Copies through the memory of these sockets, one after the other."""
    ends = (_owner(system, a, b), a, b)
    near = next((end for end in ends if cpu_above(system, end) == memories[0]), a)
    node = memory_node(system, memories[0], near) if len(system.numa_nodes(memories[0])) > 1 else None
    copies = (_one_copy(system, x, y, over_roots(system, x, y)) for x, y in pairwise((a, *memories, b)))
    stages = tuple(_at_node(copy, node) for copy in copies)
    hops = tuple(hop for stage in stages for hop in stage.hops)
    return Route(a, b, Via.STAGED, cls=cls, hops=hops, stages=stages, note=note)


def _owner(system: System, a: str, b: str) -> str:
    """The device near whose memory the driver's staging buffers are: the source.

    The policy `staging` names another one where a program is bound to a socket, and where xGMI joins the sockets it is
    the first one (rules.staging_socket). Where sockets have several NUMA nodes, both directions of a pair share the
    buffers of one node, the first device's: at NPS4 both together move no more than one (18.9 and 20.3 GB/s of RTX
    4090, 19.5 of A40, one node's 51.2).
    """
    split = any(len(system.numa_nodes(cpu_above(system, end))) > 1 for end in (a, b))
    return min(a, b, key=list(system.devices).index) if split else a


def _over_cards(system: System, a: str, b: str, cards: CardPair, p2p: bool) -> Route:
    """Over a pair of cards; at an end where the card may not reach the device, through host memory."""
    refusals = (
        _card_refusal(system, a, cards.first, cards.leaving, p2p),
        _card_refusal(system, b, cards.second, cards.arriving, p2p),
    )
    x = cpu_above(system, a) if refusals[0] else a
    y = cpu_above(system, b) if refusals[1] else b
    if x == a and y == b:
        return Route(a, b, Via.NETWORK, cls=NET, hops=cards.hops)
    leaving = over_roots(system, x, cards.first) if refusals[0] else cards.leaving
    arriving = over_roots(system, cards.second, y) if refusals[1] else cards.arriving
    stages = [Route(x, y, Via.NETWORK, cls=NET, hops=(*leaving, *cards.between, *arriving))]
    if refusals[0]:
        stages.insert(0, _one_copy(system, a, x, over_roots(system, a, x)))
    if refusals[1]:
        stages.append(_one_copy(system, y, b, over_roots(system, y, b)))
    hops = tuple(hop for stage in stages for hop in stage.hops)
    note = "; ".join(dict.fromkeys(text for text in refusals if text))
    return Route(a, b, Via.STAGED, cls=NET, hops=hops, stages=tuple(stages), note=note)


def _card_refusal(system: System, end: str, card: str, hops: Hops, p2p: bool) -> str:
    if end == card or system.device(end).kind is Kind.CPU:
        return ""
    return refusal(system, end, card, hops) if p2p else OFF


def _no_network(system: System, a: str, b: str) -> Unreachable:
    host_a, host_b = system.device(a).host, system.device(b).host
    cause = f"{a} is on {host_a} and {b} on {host_b}, and no network joins the two hosts"
    if shortest(system, a, b, PCIE_AND_FABRIC):
        cause += "; the PCIe fabric between them keeps hosts apart"
    hint = "join a network card of each host with network: links, or bind both to one host"
    return Unreachable(cause, hint=hint)


def _candidates(system: System, a: str, b: str) -> Iterator[Route]:
    device_a, device_b = system.device(a), system.device(b)
    yield from _nvlinks(system, a, b)
    kinds = {device_a.kind, device_b.kind}
    if device_a.host == device_b.host:
        yield from _to_memory(system, a, b) if Kind.CPU in kinds else _between_devices(system, a, b)
    if device_a.host != device_b.host or Kind.CPU not in kinds:
        for number, cards in enumerate(pairs(system, a, b)[:MOST_CARDS]):
            yield _over_cards(system, a, b, cards, True)
            if number == 0 and kinds != {Kind.CPU}:
                yield _over_cards(system, a, b, cards, False)


def _to_memory(system: System, a: str, b: str) -> Iterator[Route]:
    """Redundant paths between a device and its root, and between sockets."""
    root_a, root_b = cpu_above(system, a), cpu_above(system, b)
    ups = simple_paths(system, a, root_a, PCIE_AND_FABRIC) if a != root_a else ((),)
    downs = simple_paths(system, root_b, b, PCIE_AND_FABRIC) if b != root_b else ((),)
    across = simple_paths(system, root_a, root_b, SOCKETS) if root_a != root_b else ((),)
    for first, middle, last in product(ups, across, downs):
        yield _one_copy(system, a, b, (*first, *middle, *last))


def _between_devices(system: System, a: str, b: str) -> Iterator[Route]:
    direct = _peer(system, a, b)
    yield direct
    for hops in simple_paths(system, a, b, PCIE_AND_FABRIC):
        reason = why_not_below_root(system, a, b, hops)
        yield _one_copy(system, a, b, hops, reason or refusal(system, a, b, hops))
    with suppress(Unreachable):  # two sockets that only a fabric joins have no path over their roots
        yield from _above_roots(system, a, b, direct)


def _above_roots(system: System, a: str, b: str, direct: Route) -> Iterator[Route]:
    """The path over the root ports that the fabric saves, and copies staged at either socket or at both."""
    if not cpus_passed(system, direct.hops) and domain_key(system, a) != domain_key(system, b):
        hops = over_roots(system, a, b)
        reason = "cross-domain P2P is on, so peer traffic takes the fabric"
        yield _one_copy(system, a, b, hops, refusal(system, a, b, hops) or reason)
    near, far = cpu_above(system, a), cpu_above(system, b)
    for memories in [(near,), (far,), (near, far)] if near != far else [(near,)]:
        yield _staged(system, a, b, memories, direct.cls, "")


def _default_routes(system: System, pairs: Iterable[tuple[str, str]]) -> Iterator[Route]:
    """Of the pairs that reach each other."""
    for a, b in pairs:
        with suppress(Unreachable):
            yield route(system, a, b)
