"""Shortest paths over links: through switches, up to a root port, between sockets, over NVLink and networks.

Switches (within a partition) forward; a RAID controller forwards between its drives and its host; no other
endpoint does, but GPUs of some fabrics between themselves (`widest`). Fewest hops win, then the order of the
description. The path back is the same path, reversed.
"""

from __future__ import annotations

import math
import shlex
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from functools import wraps
from operator import attrgetter
from typing import TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

from lanewise import package_data
from lanewise.errors import Unreachable
from lanewise.routes.model import Hop, reversed_hops
from lanewise.topology.model import Device, Kind, Link, LinkKind, System
from lanewise.topology.trees import uplink

Hops = tuple[Hop, ...]
TREE = frozenset({LinkKind.PCIE})
PCIE_AND_FABRIC = frozenset({LinkKind.PCIE, LinkKind.FABRIC})
SOCKETS = frozenset({LinkKind.SOCKET})
NVLINKS = frozenset({LinkKind.NVLINK})
NETWORK = frozenset({LinkKind.NETWORK})
# Which devices forward traffic, by the medium; all others are endpoints.
_FORWARDS = {
    LinkKind.PCIE: (Kind.SWITCH, Kind.RAID),
    LinkKind.FABRIC: (Kind.SWITCH,),
    LinkKind.SOCKET: (Kind.CPU,),
    LinkKind.NVLINK: (Kind.NVSWITCH,),
    LinkKind.NETWORK: (Kind.NETSWITCH,),
}
MAX_PATHS, MAX_STEPS = 8, 4000
MOST_KEPT = 2000  # results of a function of figures, a few kB each


class _Missing(Enum):
    MISSING = 0


_Args = TypeVarTuple("_Args")
_Result = TypeVar("_Result")


def memoized(function: Callable[[System, *_Args], _Result]) -> Callable[[System, *_Args], _Result]:
    """A `function` of a system and hashable arguments that computes each result once; errors are not kept."""
    return _memoized_under(function, attrgetter("route_cache_key"))


def memoized_by_cabling(function: Callable[[System, *_Args], _Result]) -> Callable[[System, *_Args], _Result]:
    """As `memoized`, for a `function` that does not depend on which device is bound to which host."""
    return _memoized_under(function, attrgetter("cabling_key"))


def memoized_by_figures(function: Callable[[System, *_Args], _Result]) -> Callable[[System, *_Args], _Result]:
    """As `memoized`, for a `function` that depends on figures of parts too; of large systems not all is kept."""
    return _memoized_under(function, lambda system: system, MOST_KEPT)


def _memoized_under(
    function: Callable[[System, *_Args], _Result], key_of: Callable[[System], object], most: float = math.inf
) -> Callable[[System, *_Args], _Result]:
    tables: WeakKeyDictionary[object, dict[tuple[object, ...], _Result]] = WeakKeyDictionary()

    @wraps(function)
    def cached(system: System, *args: *_Args) -> _Result:
        key = key_of(system)
        table = tables.get(key)
        if table is None:
            table = tables.setdefault(key, {})
        # Looked up once: the hash of a route is that of all its links.
        result: _Result | _Missing = table.get(args, _Missing.MISSING)
        if result is not _Missing.MISSING:
            return result
        result = function(system, *args)
        if len(table) >= most:
            table.clear()
        table[args] = result
        return result

    return cached


def passes(system: System, into: Hop, out: Hop) -> bool:
    """Whether the device between two hops forwards from the one to the other."""
    device = system.device(into.end)
    if device.kind not in _FORWARDS[into.link.kind] or into.link is out.link:
        return False
    if device.kind is Kind.RAID:
        return into.down == out.down
    return system.forwards(device.name, into.link, out.link)


@memoized_by_cabling
def reach(system: System, src: str, kinds: frozenset[LinkKind]) -> Mapping[str, Hops]:
    """Every device that `src` reaches over links of these kinds, nearest first, with a shortest path to it."""
    paths: dict[str, Hops] = {}
    entered: set[tuple[int, bool]] = set()
    queue: deque[tuple[str, Hops]] = deque([(src, ())])
    while queue:
        name, hops = queue.popleft()
        for hop in _onward(system, name, hops, kinds):
            state = (id(hop.link), hop.down)
            if state not in entered and hop.end != src:
                entered.add(state)
                longer = (*hops, hop)
                paths.setdefault(hop.end, longer)
                if system.device(hop.end).kind in _FORWARDS[hop.link.kind]:  # nothing goes on from an endpoint
                    queue.append((hop.end, longer))
    return paths


def _onward(system: System, name: str, hops: Hops, kinds: frozenset[LinkKind]) -> list[Hop]:
    onward = [Hop(link, down=link.a == name) for link in system.links_at(name) if link.kind in kinds]
    return [hop for hop in onward if passes(system, hops[-1], hop)] if hops else onward


def shortest(system: System, a: str, b: str, kinds: frozenset[LinkKind]) -> Hops | None:
    """A shortest path from `a` to `b`, None if there is none; from `b` to `a` it has the same links."""
    if order(system)[a] <= order(system)[b]:
        return reach(system, a, kinds).get(b)
    hops = reach(system, b, kinds).get(a)
    return None if hops is None else reversed_hops(hops)


@memoized_by_cabling
def simple_paths(system: System, a: str, b: str, kinds: frozenset[LinkKind]) -> tuple[Hops, ...]:
    """The paths from `a` to `b` that pass no device twice, shortest first, at most eight."""
    paths: list[Hops] = []
    queue: deque[tuple[str, Hops]] = deque([(a, ())])
    steps = 0
    while queue and len(paths) < MAX_PATHS and steps < MAX_STEPS:
        name, hops = queue.popleft()
        steps += 1
        passed = {a, *(hop.end for hop in hops)}
        for hop in _onward(system, name, hops, kinds):
            if hop.end == b:
                paths.append((*hops, hop))
            elif hop.end not in passed:
                queue.append((hop.end, (*hops, hop)))
    return tuple(paths[:MAX_PATHS])


@memoized
def widest(system: System, a: str, b: str) -> Hops | None:
    """The path from `a` to `b` over GPUs that pass data on whose narrowest hop has most links, of these the shortest.

    None if there is none; from `b` to `a` it has the same links.
    """
    if order(system)[a] > order(system)[b]:
        hops = widest(system, b, a)
        return None if hops is None else reversed_hops(hops)
    links = [link for link in system.links if link.kind is LinkKind.NVLINK]
    for width in sorted({link.count for link in links}, reverse=True):
        wide = [link for link in links if link.count >= width]
        if (hops := _over_gpus(system, a, b, wide)) is not None:
            return hops
    return None


def _over_gpus(system: System, a: str, b: str, links: Sequence[Link]) -> Hops | None:
    """A shortest path over these links and GPUs that pass data on; None if there is none."""
    paths: dict[str, Hops] = {a: ()}
    queue = deque([a])
    while queue and b not in paths:
        name = queue.popleft()
        for link in links:
            if name in (link.a, link.b) and link.far_end(name) not in paths and system.gpu_forwards(link.far_end(name)):
                paths[link.far_end(name)] = (*paths[name], Hop(link, down=link.a == name))
                queue.append(link.far_end(name))
    return paths.get(b)


@memoized_by_cabling
def order(system: System) -> Mapping[str, int]:
    """The index of every device in the description."""
    return {name: index for index, name in enumerate(system.devices)}


@memoized
def _cpus(system: System, host: str) -> list[str]:
    return system.of_kind(Kind.CPU, host=host)


@memoized
def hops_to_cpu(system: System, name: str) -> Hops:
    """The hops up to the CPU whose root port a device hangs from, none for a CPU; Unreachable if unbound or cut off.

    Plain PCIe links, a tree, come first; fabric links serve where the tree does not lead to the root.
    """
    device = system.device(name)
    if device.kind is Kind.CPU:
        return ()
    if device.host is None:
        raise Unreachable(
            f"{name} is bound to no host",
            location=device.location,
            hint=f"attach it: lanewise system attach {_reference(system, device)} {name} HOST",
        )
    domain = system.domain_of(name)
    roots = {domain.root} if domain else set(_cpus(system, device.host))
    for kinds in (NVLINKS, TREE, PCIE_AND_FABRIC):
        first, beyond = _above(system, name, kinds)
        for end, hops in beyond.items():
            if end in roots:
                return _over_uplink(system, name, (*first, *hops), roots)
    names = " or ".join(sorted(roots)) or f"{device.host}, which has no CPU"
    raise Unreachable(f"no PCIe link leads from {name} up to {names}", hint="add the missing link to the description")


def _over_uplink(system: System, name: str, hops: Hops, roots: Collection[str]) -> Hops:
    """The hops up from a device, where a switch has several uplinks over the one that the device takes."""
    switch = hops[-1].start
    links = system.links_at(switch)
    ups = [link for link in links if link.kind is LinkKind.PCIE and link.far_end(switch) in roots]
    if len(ups) < 2 or len(hops) < 2 or hops[-1].link not in ups:
        return hops
    own = uplink(system.devices, links, switch, hops[-2].start, name, roots)
    return (*hops[:-1], Hop(own, down=own.a == switch))


def _above(system: System, name: str, kinds: frozenset[LinkKind]) -> tuple[Hops, Mapping[str, Hops]]:
    """What a device reaches: the hop to its switch and what that reaches, the same for all devices at the switch."""
    links = [link for link in system.links_at(name) if link.kind in kinds]
    if len(links) == 1:
        hop = Hop(links[0], down=links[0].a == name)
        switch = system.device(hop.end)
        if switch.kind is Kind.SWITCH and not switch.partitions:
            return (hop,), reach(system, switch.name, kinds)
    return (), reach(system, name, kinds)


def cpu_above(system: System, name: str) -> str:
    """The CPU whose root port a device hangs from, a CPU itself; Unreachable if unbound or cut off."""
    hops = hops_to_cpu(system, name)
    return hops[-1].end if hops else name


def check_rooted(system: System, *names: str) -> None:
    """Unreachable unless every device hangs from a CPU, as `hops_to_cpu`."""
    for name in names:
        hops_to_cpu(system, name)


def _reference(system: System, device: Device) -> str:
    """A system as a command takes it: the name of a ready system, or its file."""
    file = device.location.file if device.location else ""
    is_user_file = file and not (file == f"{system.name}.yaml" and system.name in package_data.names("systems"))
    return shlex.quote(file) if is_user_file else system.name


def sockets(system: System, a: str, b: str) -> Hops:
    """The inter-socket links from CPU `a` to CPU `b` (none if the same); Unreachable if none join them."""
    hops = () if a == b else shortest(system, a, b, SOCKETS)
    if hops is None:
        hint = f"add one: {{from: {a}, to: {b}, socket: auto}}, or socket: '?' where nobody knows how many"
        raise Unreachable(f"no inter-socket link joins {a} and {b}", hint=hint)
    return hops


@memoized
def over_roots(system: System, a: str, b: str) -> Hops:
    """The hops up to the root port of `a`, over sockets if need be, and down to `b`; an end may be a CPU."""
    up, down = hops_to_cpu(system, a), hops_to_cpu(system, b)
    return (*up, *sockets(system, cpu_above(system, a), cpu_above(system, b)), *reversed_hops(down))


def cpus_passed(system: System, hops: Hops) -> tuple[str, ...]:
    """The CPUs that peer traffic passes between its two ends."""
    passed = (hop.end for hop in hops[:-1])
    return tuple(name for name in passed if system.device(name).kind is Kind.CPU)
