"""The PCIe trees of a system: which end of a link is upstream, what is no tree, and who reaches what."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import TypeVar

from lanewise.errors import Contradiction
from lanewise.topology.model import FORWARDING, Device, Kind, Link, LinkKind

TREE = (LinkKind.PCIE,)
PCIE_AND_FABRIC = (LinkKind.PCIE, LinkKind.FABRIC)
COHERENT = (LinkKind.PCIE, LinkKind.FABRIC, LinkKind.NVLINK)
# One side of a switch: its name and the number of the partition (0 if it has none).
Side = tuple[str, int]
_Node = TypeVar("_Node", bound=Hashable)


class Graph:
    """Devices and the links of some kinds, where only switches forward, and only within a partition."""

    def __init__(self, devices: Mapping[str, Device], links: Iterable[Link], kinds: Sequence[LinkKind]) -> None:
        self.devices = devices
        self.adjacent: dict[str, list[Link]] = defaultdict(list)
        for link in links:
            if link.kind in kinds:
                self.adjacent[link.a].append(link)
                self.adjacent[link.b].append(link)

    def reach(self, start: str) -> dict[str, tuple[str, ...]]:
        """Every device that `start` reaches, with the devices on a shortest path, both ends included."""
        paths: dict[str, tuple[str, ...]] = {start: (start,)}
        entered: set[tuple[str, str]] = set()
        queue: deque[tuple[str, str | None, tuple[str, ...]]] = deque([(start, None, (start,))])
        while queue:
            name, before, path = queue.popleft()
            for link in self.adjacent[name]:
                neighbour = link.far_end(name)
                if before is not None and not self.devices[name].joins(before, neighbour):
                    continue
                paths.setdefault(neighbour, (*path, neighbour))
                forwards = self.devices[neighbour].kind in (*FORWARDING, Kind.NVSWITCH)
                if forwards and (name, neighbour) not in entered and neighbour not in path:
                    entered.add((name, neighbour))
                    queue.append((neighbour, name, (*path, neighbour)))
        return paths


def orient(devices: Mapping[str, Device], links: Sequence[Link]) -> list[Link]:
    """The links with the upstream end of every PCIe link as its `a`; fabric links stay as described."""
    depth = _depths(devices, links)

    def turned(link: Link) -> Link:
        kind_a, kind_b = devices[link.a].kind, devices[link.b].kind
        swap = kind_a not in (Kind.CPU, *FORWARDING) or kind_b is Kind.CPU
        if kind_a in FORWARDING and kind_b in FORWARDING:
            swap = depth.get(link.b, len(depth)) < depth.get(link.a, len(depth))
        return replace(link, a=link.b, b=link.a) if swap and link.kind is LinkKind.PCIE else link

    return [turned(link) for link in links]


def _depths(devices: Mapping[str, Device], links: Sequence[Link]) -> dict[str, int]:
    """How far below a CPU a device lies: along plain PCIe first, then, for what is left, over fabric too."""
    depth = {name: 0 for name, device in devices.items() if device.kind is Kind.CPU}
    for kinds in (TREE, PCIE_AND_FABRIC):
        graph = Graph(devices, links, kinds)
        # Whole trees are settled before fabric links are followed, so a short cut never turns a tree around.
        queue = deque(sorted(depth, key=depth.__getitem__))
        while queue:
            name = queue.popleft()
            if devices[name].kind not in (Kind.CPU, *FORWARDING):
                continue
            for link in graph.adjacent[name]:
                neighbour = link.far_end(name)
                if neighbour not in depth:
                    depth[neighbour] = depth[name] + 1
                    queue.append(neighbour)
    return depth


def check_forest(devices: Mapping[str, Device], links: Sequence[Link]) -> None:
    """Contradiction, naming the path, if plain PCIe links close a loop, or join two root ports over several switches.

    A switch (or a partition of it) may have several uplinks, each straight to a root port.
    """
    sides = _Sides(devices, links)
    below_root: set[Side] = set()
    parent: dict[Side, Side] = {}
    graph: dict[Side, list[Side]] = defaultdict(list)

    def top(side: Side) -> Side:
        while parent.setdefault(side, side) != side:
            parent[side] = parent[parent[side]]
            side = parent[side]
        return side

    def join(a: Side, b: Side) -> None:
        parent[top(a)] = top(b)
        graph[a].append(b)
        graph[b].append(a)

    # All CPUs count as one root, so a path from one CPU to another is a loop too.
    for a, b in pairwise((device.name, 0) for device in devices.values() if device.kind is Kind.CPU):
        join(a, b)
    for link in links:
        for a, b in sides.joined(link):
            if Kind.CPU in (devices[a[0]].kind, devices[b[0]].kind):
                switch = b if devices[a[0]].kind is Kind.CPU else a
                if switch in below_root:
                    continue  # one more uplink
                below_root.add(switch)
            if top(a) == top(b):
                raise _loop(devices, shortest_path(graph.__getitem__, a, b), link)
            join(a, b)


class _Sides:
    """The sides of forwarding devices and CPUs that plain PCIe links join; endpoints end every path."""

    def __init__(self, devices: Mapping[str, Device], links: Sequence[Link]) -> None:
        self._devices = devices
        self._groups: dict[tuple[str, int], frozenset[int]] = {}
        for device in devices.values():
            if device.partitions:
                own = [link for link in links if device.name in (link.a, link.b)]
                for link, groups in zip(own, device.groups(own), strict=True):
                    self._groups[device.name, id(link)] = groups

    def joined(self, link: Link) -> Iterator[tuple[Side, Side]]:
        """The pairs of sides that one link joins."""
        return product(self._at(link.a, link), self._at(link.b, link))

    def _at(self, name: str, link: Link) -> list[Side]:
        if self._devices[name].kind not in (Kind.CPU, *FORWARDING) or link.kind is not LinkKind.PCIE:
            return []
        return [(name, number) for number in sorted(self._groups.get((name, id(link)), (0,)))]


def uplink(
    devices: Mapping[str, Device], links: Sequence[Link], switch: str, below: str, name: str, roots: Collection[str]
) -> Link:
    """Which of a switch's several uplinks to root ports at the CPUs `roots` the device `name` takes.

    `links` are those of the switch, `below` is its neighbour on the way down to `name`. A device takes an uplink of its
    own partition, at the CPU of its NUMA node if it is known. Several are divided by the switch's neighbours of a kind:
    in the order of the links, the first ones take the first uplink.
    """
    groups = dict(zip(map(id, links), devices[switch].groups(links), strict=True))
    ups = [link for link in links if link.kind is LinkKind.PCIE and link.far_end(switch) in roots]
    downs = [link for link in links if devices[link.far_end(switch)].kind is not Kind.CPU]

    def choice(port: Link, device: str) -> list[Link]:
        own = [link for link in ups if groups[id(link)] & groups[id(port)]] or ups
        near = [link for link in own if devices[device].numa in devices[link.far_end(switch)].nodes]
        return near or own

    port = next(link for link in downs if link.far_end(switch) == below)
    own = choice(port, name)
    kind = devices[below].kind
    neighbours = [link for link in downs if devices[link.far_end(switch)].kind is kind]
    alike = [link for link in neighbours if choice(link, link.far_end(switch)) == own]
    return own[alike.index(port) * len(own) // len(alike)] if port in alike else own[0]


def shortest_path(neighbours: Callable[[_Node], Iterable[_Node]], start: _Node, goal: _Node) -> list[_Node]:
    """The nodes on a shortest path from `start` to `goal`, both included, empty if there is none."""
    before: dict[_Node, _Node] = {start: start}
    queue = deque([start])
    while queue and goal not in before:
        node = queue.popleft()
        for neighbour in neighbours(node):
            if neighbour not in before:
                before[neighbour] = node
                queue.append(neighbour)
    if goal not in before:
        return []
    path = [goal]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]


def _loop(devices: Mapping[str, Device], path: Sequence[Side], closing: Link) -> Contradiction:
    names = [name for name, _ in path]
    cpus = [index for index, name in enumerate(names) if devices[name].kind is Kind.CPU]
    if len(cpus) > 1:
        ring = names[cpus[-1] :] + names[: cpus[0] + 1]
        cause = f"PCIe links join two root ports: {' - '.join(ring)}"
    else:
        cause = f"PCIe links run in a circle: {' - '.join([*names, names[0]])}"
    hint = "plain PCIe is a tree below each root port: make the extra link fabric:, or partition the switch"
    if len(set(names)) < 3:  # two links between two switches
        joined = f"if '{closing.b}' joins them inside: fabric: gen5 x16, rate: 252 GB/s"
        hint = f"write a switch for each uplink, and {joined}"
    return Contradiction(cause, location=closing.location, hint=hint)
