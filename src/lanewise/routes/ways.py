"""Shortest ways over links: through switches, up to a root port, between sockets, NVLink, network.

Switches (within a partition) forward; a RAID controller forwards between its drives and its host; no other
endpoint does. Fewest hops win, then the order of the description. Ways back are ways there, reversed.
"""

from __future__ import annotations

import shlex
from collections import deque
from typing import TYPE_CHECKING

from lanewise.errors import Unreachable
from lanewise.routes.memo import remembered
from lanewise.routes.model import Hop, turned
from lanewise.topology.model import Kind, LinkKind
from lanewise.topology.ready import ready_systems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lanewise.topology.model import Device, System

Way = tuple[Hop, ...]
TREE = frozenset({LinkKind.PCIE})
FABRIC = frozenset({LinkKind.PCIE, LinkKind.FABRIC})
SOCKETS = frozenset({LinkKind.SOCKET})
NVLINKS = frozenset({LinkKind.NVLINK})
NETWORK = frozenset({LinkKind.NETWORK})
# Which devices pass traffic on, by the medium; all others are ends.
_FORWARDS = {
    LinkKind.PCIE: (Kind.SWITCH, Kind.RAID),
    LinkKind.FABRIC: (Kind.SWITCH,),
    LinkKind.SOCKET: (Kind.CPU,),
    LinkKind.NVLINK: (Kind.NVSWITCH,),
    LinkKind.NETWORK: (Kind.NETSWITCH,),
}
MOST_WAYS, MOST_STEPS = 8, 4000


def passes(system: System, into: Hop, out: Hop) -> bool:
    """Whether the device between two hops forwards from the one to the other."""
    device = system.device(into.end)
    if device.kind not in _FORWARDS[into.link.kind] or into.link is out.link:
        return False
    if device.kind is Kind.RAID:
        return into.down == out.down
    return device.joins(into.start, out.end)


@remembered
def reach(system: System, src: str, kinds: frozenset[LinkKind]) -> Mapping[str, Way]:
    """Every device that `src` reaches over links of these kinds, nearest first, with a shortest way there."""
    found: dict[str, Way] = {}
    entered: set[tuple[int, bool]] = set()
    queue: deque[tuple[str, Way]] = deque([(src, ())])
    while queue:
        here, way = queue.popleft()
        for hop in _onward(system, here, way, kinds):
            state = (id(hop.link), hop.down)
            if state not in entered and hop.end != src:
                entered.add(state)
                longer = (*way, hop)
                found.setdefault(hop.end, longer)
                queue.append((hop.end, longer))
    return found


def _onward(system: System, here: str, way: Way, kinds: frozenset[LinkKind]) -> list[Hop]:
    hops = [Hop(link, link.a == here) for link in system.links_at(here) if link.kind in kinds]
    return [hop for hop in hops if passes(system, way[-1], hop)] if way else hops


def shortest(system: System, a: str, b: str, kinds: frozenset[LinkKind]) -> Way | None:
    """A shortest way from `a` to `b`, None if there is none; from `b` to `a` it is the same links."""
    if order(system)[a] <= order(system)[b]:
        return reach(system, a, kinds).get(b)
    back = reach(system, b, kinds).get(a)
    return None if back is None else turned(back)


@remembered
def every(system: System, a: str, b: str, kinds: frozenset[LinkKind]) -> tuple[Way, ...]:
    """The ways from `a` to `b` that pass no device twice, shortest first, at most eight."""
    found: list[Way] = []
    queue: deque[tuple[str, Way]] = deque([(a, ())])
    steps = 0
    while queue and len(found) < MOST_WAYS and steps < MOST_STEPS:
        here, way = queue.popleft()
        steps += 1
        passed = {a, *(hop.end for hop in way)}
        for hop in _onward(system, here, way, kinds):
            if hop.end == b:
                found.append((*way, hop))
            elif hop.end not in passed:
                queue.append((hop.end, (*way, hop)))
    return tuple(found[:MOST_WAYS])


@remembered
def order(system: System) -> Mapping[str, int]:
    """The place of every device in the description."""
    return {name: index for index, name in enumerate(system.devices)}


@remembered
def root_of(system: System, name: str) -> tuple[str, Way]:
    """The CPU whose root port a device hangs from, and the hops up to it; Unreachable if unbound or cut off.

    Plain PCIe links, a tree, come first; fabric links serve where the tree does not lead to the root.
    """
    device = system.device(name)
    if device.kind is Kind.CPU:
        return name, ()
    if device.host is None:
        raise Unreachable(
            f"{name} is bound to no host",
            location=device.location,
            hint=f"attach it: lanewise system attach {_given(system, device)} {name} HOST",
        )
    domain = system.domain_of(name)
    wanted = {domain.root} if domain else set(system.of_kind(Kind.CPU, host=device.host))
    for kinds in (NVLINKS, TREE, FABRIC):
        for end, way in reach(system, name, kinds).items():
            if end in wanted:
                return end, way
    roots = " or ".join(sorted(wanted)) or f"{device.host}, which has no CPU"
    raise Unreachable(f"no PCIe link leads from {name} up to {roots}", hint="add the missing link to the description")


def _given(system: System, device: Device) -> str:
    """A system as a command takes it: the name of a ready one, else its file."""
    file = device.location.file if device.location else ""
    own = file and not (file == f"{system.name}.yaml" and system.name in ready_systems())
    return shlex.quote(file) if own else system.name


def sockets(system: System, a: str, b: str) -> Way:
    """The inter-socket links from CPU `a` to CPU `b` (none if the same); Unreachable if none join them."""
    way = () if a == b else shortest(system, a, b, SOCKETS)
    if way is None:
        raise Unreachable(
            f"no inter-socket link joins {a} and {b}", hint=f"add one: {{from: {a}, to: {b}, socket: auto}}"
        )
    return way


@remembered
def over_roots(system: System, a: str, b: str) -> Way:
    """The way up to the root port of `a`, over sockets if need be, and down to `b`; an end may be a CPU."""
    one, up = root_of(system, a)
    other, down = root_of(system, b)
    return (*up, *sockets(system, one, other), *turned(down))


def turns_at_cpu(system: System, hops: Way) -> tuple[str, ...]:
    """The CPUs that peer traffic passes between its two ends."""
    passed = (hop.end for hop in hops[:-1])
    return tuple(name for name in passed if system.device(name).kind is Kind.CPU)
