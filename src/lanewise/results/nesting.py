"""How a system nests for drawing: hosts hold trees, pools what hangs outside, bars join what is left."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lanewise.topology.model import Kind, Link, LinkKind, System

_BARS = (Kind.NVSWITCH, Kind.NETSWITCH)
_TREE = (LinkKind.PCIE, LinkKind.FABRIC)


@dataclass
class NestGroup:
    """A top-level thing of the drawing: a host, a pool or a bar (one network switch or NVSwitch group)."""

    kind: str
    title: str
    roots: list[str] = field(default_factory=list)
    bars: list[str] = field(default_factory=list)


@dataclass
class Nest:
    """The nesting: tops in order, the tree (parent, children), and which box represents which devices."""

    hosts: tuple[str, ...]
    tops: list[str] = field(default_factory=list)
    groups: dict[str, NestGroup] = field(default_factory=dict)
    parent: dict[str, str] = field(default_factory=dict)
    children: dict[str, list[str]] = field(default_factory=dict)
    members: dict[str, tuple[str, ...]] = field(default_factory=dict)
    representative: dict[str, str] = field(default_factory=dict)
    volumes: dict[str, str] = field(default_factory=dict)
    pool: set[str] = field(default_factory=set)
    barred: set[str] = field(default_factory=set)

    def box_of(self, name: str) -> str:
        """The box that represents a device; for a volume that of its controller or first drive."""
        device = self.volumes.get(name, name)
        return self.representative.get(device, device)

    def hidden(self, link: Link) -> bool:
        """Whether a link is left out: the management link of an NVSwitch carries no data between devices."""
        return link.kind in _TREE and (link.a in self.barred or link.b in self.barred)


def nest(system: System) -> Nest:
    """Decide what is drawn inside what."""
    plan = Nest(_host_names(system))
    _merge_nvswitches(system, plan)
    plan.barred = {name for name, device in system.devices.items() if device.kind in _BARS}
    plan.volumes = {v.name: v.controller or v.drives[0] for v in system.volumes.values() if v.controller or v.drives}
    _grow_tree(system, plan)
    _place_roots(system, plan)
    return plan


def _host_names(system: System) -> tuple[str, ...]:
    names = [device.host for device in system.devices.values() if device.host and device.kind is Kind.CPU]
    return tuple(dict.fromkeys([*(host for host in system.hosts if host in names), *names]))


def _merge_nvswitches(system: System, plan: Nest) -> None:
    # Six NVSwitches to eight GPUs are 48 lines that all say the same: one box and eight lines say it better.
    alike: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for name in system.of_kind(Kind.NVSWITCH):
        links = system.links_at(name)
        ends = frozenset((link.far_end(name), link.count) for link in links if link.kind is LinkKind.NVLINK)
        alike[(system.devices[name].host, system.devices[name].part, ends)].append(name)
    for names in alike.values():
        if len(names) > 1:
            plan.members[names[0]] = tuple(names)
            plan.representative.update(dict.fromkeys(names, names[0]))


def _grow_tree(system: System, plan: Nest) -> None:
    """Hang every PCIe device under the nearest CPU; links that close a loop stay out of the tree."""
    down = _downward(system, plan)
    placed = set(system.of_kind(Kind.CPU))
    _grow(plan, down, system.of_kind(Kind.CPU), placed)
    # What no CPU reaches (a box on the shelf) still nests by its own upstream links.
    for with_parent in (False, True):
        for name in system.devices:
            if name in placed or name in plan.barred:
                continue
            if with_parent or not _has_parent(system, name, placed, plan):
                placed.add(name)
                _grow(plan, down, [name], placed)
    order = {name: index for index, name in enumerate(system.devices)}
    for name, parent in plan.parent.items():
        plan.children.setdefault(parent, []).append(name)
    for children in plan.children.values():
        children.sort(key=lambda child: order[child])


def _downward(system: System, plan: Nest) -> dict[str, list[tuple[int, str]]]:
    down: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for link in system.links:
        if link.kind is LinkKind.PCIE and link.a not in plan.barred and link.b not in plan.barred:
            down[link.a].append((0, link.b))
        elif link.kind is LinkKind.FABRIC:
            down[link.a].append((1, link.b))
            down[link.b].append((1, link.a))
    return down


def _grow(plan: Nest, down: dict[str, list[tuple[int, str]]], roots: Iterable[str], placed: set[str]) -> None:
    # PCIe first and fabric links after: a fabric link is a shortcut unless it is the only way in.
    for rank in (0, 1):
        queue = deque(roots)
        visited = set(roots)
        while queue:
            name = queue.popleft()
            for kind, child in down.get(name, ()):
                if child not in placed and kind <= rank:
                    placed.add(child)
                    plan.parent[child] = name
                if plan.parent.get(child) == name and child not in visited:
                    visited.add(child)
                    queue.append(child)


def _has_parent(system: System, name: str, placed: set[str], plan: Nest) -> bool:
    links = (link for link in system.links_at(name) if link.kind is LinkKind.PCIE and link.b == name)
    return any(link.a not in placed and link.a not in plan.barred for link in links)


def _place_roots(system: System, plan: Nest) -> None:
    pool_roots = _cut_pools(system, plan)
    for host in plan.hosts:
        roots = [name for name in system.of_kind(Kind.CPU, host=host) if name not in plan.parent]
        _add(plan, host, NestGroup("host", host, roots))
    for roots in _clusters(system, plan, pool_roots):
        # A single device that hangs nowhere (a laptop's network card, a client) needs no pool around it.
        _add(plan, f"pool/{roots[0]}", NestGroup("pool", _pool_title(system, plan, roots), roots))
    for name in system.devices:
        if name in plan.barred and plan.box_of(name) == name:
            owner = system.devices[name].host
            if system.devices[name].kind is Kind.NVSWITCH and owner in plan.groups:
                plan.groups[owner].bars.append(name)
            else:
                _add(plan, f"bar/{name}", NestGroup("bar", name, [name]))


def _add(plan: Nest, name: str, group: NestGroup) -> None:
    plan.tops.append(name)
    plan.groups[name] = group


def _cut_pools(system: System, plan: Nest) -> list[str]:
    """Roots of what is drawn outside the hosts: hostless switches under a host, and what no CPU reaches."""
    roots = []
    for name, device in system.devices.items():
        if name in plan.barred or (device.kind is Kind.CPU and name not in plan.parent and device.host):
            continue
        above = plan.parent.get(name)
        if above is None or (above not in plan.pool and _outside(system, above, name)):
            roots.append(name)
            plan.pool.update(_subtree(plan, name))
    # A device may be listed before its switch: drop roots that a later one swallowed.
    return [name for name in roots if plan.parent.get(name) not in plan.pool]


def _outside(system: System, above: str, name: str) -> bool:
    device, owner = system.devices[name], system.devices[above].host
    if device.host is None:
        return device.kind is Kind.SWITCH
    return owner is not None and device.host != owner


def _subtree(plan: Nest, root: str) -> Iterator[str]:
    yield root
    for child in plan.children.get(root, ()):
        yield from _subtree(plan, child)


def _clusters(system: System, plan: Nest, roots: list[str]) -> list[list[str]]:
    """Pool roots joined by PCIe or fabric links below the hosts share one pool."""
    first = {name: root for root in roots for name in _subtree(plan, root)}
    for link in system.links:
        if link.kind in _TREE and link.a in first and link.b in first:
            joined = {first[link.a], first[link.b]}
            first = {name: first[link.a] if root in joined else root for name, root in first.items()}
    clusters: dict[str, list[str]] = defaultdict(list)
    for name in roots:
        clusters[first[name]].append(name)
    return list(clusters.values())


def _pool_title(system: System, plan: Nest, roots: list[str]) -> str:
    if any(root in plan.parent for root in roots):
        return "outside the server" if len(plan.hosts) == 1 else "outside the servers"
    hosts = {system.devices[root].host for root in roots}
    only = next(iter(hosts)) if len(hosts) == 1 else None
    return only or "not attached"
