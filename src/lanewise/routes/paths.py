"""Paths: which links a packet crosses between two devices, by transport; no policy beyond what routing itself knows.

Breadth first, so the fewest hops win and ties go by the order of the description.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from lanewise.errors import Unreachable
from lanewise.routes.model import Hop
from lanewise.topology.model import Kind, LinkKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lanewise.topology.model import Link, System

    Goal = Callable[[str], bool]
    State = tuple[str, str]

TREE = frozenset({LinkKind.PCIE, LinkKind.FABRIC})


def back(hops: Iterable[Hop]) -> tuple[Hop, ...]:
    """The same links the other way."""
    return tuple(Hop(hop.link, not hop.down) for hop in reversed(list(hops)))


def search(system: System, src: str, goal: Goal, kinds: frozenset[LinkKind] = TREE) -> tuple[Hop, ...] | None:
    """The shortest path from `src` to a device that fits `goal` through switches alone; None if there is none."""
    start: State = (src, "")
    came: dict[State, tuple[State, Hop] | None] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        node, previous = state
        if node != src and goal(node):
            return _trace(came, state)
        for link in system.links_at(node):
            after = (link.other(node), node)
            if link.kind not in kinds or after in came or after[0] == src:
                continue
            if node == src or _forwards(system, node, previous, after[0]):
                came[after] = (state, Hop(link, link.a == node))
                queue.append(after)
    return None


def to_root(system: System, name: str) -> tuple[Hop, ...]:
    """The way from a device up to the CPU whose root port it hangs from; Unreachable if it is bound to no host."""
    device = system.device(name)
    if device.kind is Kind.CPU:
        return ()
    if device.host is None:
        raise Unreachable(
            f"{name} is bound to no host", hint=f"attach it: lanewise system attach {system.name} {name} HOST"
        )
    domain = system.domain_of(name)

    def is_root(node: str) -> bool:
        found = system.device(node)
        return node == domain.root if domain else found.kind is Kind.CPU and found.host == device.host

    path = search(system, name, is_root)
    if path is None:
        root = domain.root if domain else f"a CPU of {device.host}"
        raise Unreachable(f"no PCIe path joins {name} to {root}", hint="check its links and the switches' partitions")
    return path


def root_of(system: System, name: str) -> str:
    """The CPU whose root port a device hangs from; the CPU itself for a CPU."""
    path = to_root(system, name)
    return path[-1].end if path else name


def between_sockets(system: System, one: str, other: str) -> tuple[Hop, ...]:
    """The inter-socket links from CPU `one` to CPU `other`; Unreachable if they are not joined."""
    if one == other:
        return ()
    kinds = frozenset({LinkKind.SOCKET})
    seen: dict[str, tuple[Hop, ...]] = {one: ()}
    queue = deque([one])
    while queue:
        node = queue.popleft()
        for link in system.links_at(node):
            if link.kind in kinds and link.other(node) not in seen:
                seen[link.other(node)] = (*seen[node], Hop(link, link.a == node))
                queue.append(link.other(node))
    if other not in seen:
        raise Unreachable(f"no inter-socket link joins {one} and {other}", hint="add it: {from: cpu0, to: cpu1, socket: auto}")
    return seen[other]


def through_root(system: System, src: str, dst: str) -> tuple[Hop, ...]:
    """Up to the source's root port, over the sockets if need be, and down to the destination."""
    up, down = to_root(system, src), back(to_root(system, dst))
    first = up[-1].end if up else src
    last = down[0].start if down else dst
    return (*up, *between_sockets(system, first, last), *down)


def through_switches(system: System, src: str, dst: str) -> tuple[Hop, ...] | None:
    """The shortest way between two devices that touches no CPU; None if there is none."""
    return search(system, src, lambda node: node == dst)


def over_nvlink(system: System, src: str, dst: str) -> tuple[Hop, ...] | None:
    """The NVLinks between two GPUs, direct or through one NVSwitch; None if there are none."""
    for link in system.links_between(src, dst):
        if link.kind is LinkKind.NVLINK:
            return (_hop(link, src),)
    for first in system.links_at(src):
        middle = first.other(src)
        if first.kind is LinkKind.NVLINK and system.device(middle).kind is Kind.NVSWITCH:
            for second in system.links_between(middle, dst):
                return (_hop(first, src), _hop(second, middle))
    return None


def over_network(system: System, src: str, dst: str) -> tuple[Hop, ...] | None:
    """The way between two network cards through network switches; None if there is none."""
    kinds = frozenset({LinkKind.NETWORK})
    return search(system, src, lambda node: node == dst, kinds)


def nodes(src: str, hops: Sequence[Hop]) -> tuple[str, ...]:
    """All devices on a path, ends included."""
    return (src, *(hop.end for hop in hops))


def _trace(came: dict[State, tuple[State, Hop] | None], state: State) -> tuple[Hop, ...]:
    hops: list[Hop] = []
    step = came[state]
    while step is not None:
        state, hop = step
        hops.append(hop)
        step = came[state]
    return tuple(reversed(hops))


def _forwards(system: System, node: str, previous: str, after: str) -> bool:
    """Switches forward within a partition, a RAID controller between its drives and the host, adapters always."""
    device = system.device(node)
    if device.kind is Kind.SWITCH:
        return device.joins(previous, after)
    if device.kind is Kind.RAID:
        return Kind.SSD in (system.device(previous).kind, system.device(after).kind)
    return device.kind is Kind.NETSWITCH


def _hop(link: Link, start: str) -> Hop:
    return Hop(link, link.a == start)
