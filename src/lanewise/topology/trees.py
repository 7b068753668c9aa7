"""The PCIe trees of a system: which end of a link is upstream, what is no tree, and who reaches what."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product

from lanewise.errors import Contradiction
from lanewise.topology.expand_devices import FORWARDING
from lanewise.topology.model import Device, Kind, Link, LinkKind

TREE = (LinkKind.PCIE,)
FABRIC = (LinkKind.PCIE, LinkKind.FABRIC)
COHERENT = (LinkKind.PCIE, LinkKind.FABRIC, LinkKind.NVLINK)
# One side of a switch: its name and the number of the partition (0 if it has none).
Side = tuple[str, int]


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
        """Every device that `start` reaches, with the devices on a shortest way there, both ends included."""
        found: dict[str, tuple[str, ...]] = {start: (start,)}
        entered: set[tuple[str, str]] = set()
        queue: deque[tuple[str, str | None, tuple[str, ...]]] = deque([(start, None, (start,))])
        while queue:
            here, before, way = queue.popleft()
            for link in self.adjacent[here]:
                there = link.other(here)
                if before is not None and not self.devices[here].joins(before, there):
                    continue
                found.setdefault(there, (*way, there))
                forwards = self.devices[there].kind in (*FORWARDING, Kind.NVSWITCH)
                if forwards and (here, there) not in entered and there not in way:
                    entered.add((here, there))
                    queue.append((there, here, (*way, there)))
        return found


def orient(devices: Mapping[str, Device], links: Sequence[Link]) -> list[Link]:
    """The links with the upstream end of every PCIe link as its `a`; fabric links stay as described."""
    depth = _depths(devices, links)

    def turned(link: Link) -> Link:
        one, other = devices[link.a].kind, devices[link.b].kind
        swap = one not in (Kind.CPU, *FORWARDING) or other is Kind.CPU
        if one in FORWARDING and other in FORWARDING:
            swap = depth.get(link.b, len(depth)) < depth.get(link.a, len(depth))
        return replace(link, a=link.b, b=link.a) if swap and link.kind is LinkKind.PCIE else link

    return [turned(link) for link in links]


def _depths(devices: Mapping[str, Device], links: Sequence[Link]) -> dict[str, int]:
    """How far below a CPU a device lies: along plain PCIe first, then, for what is left, over fabric too."""
    depth = {name: 0 for name, device in devices.items() if device.kind is Kind.CPU}
    for kinds in (TREE, FABRIC):
        graph = Graph(devices, links, kinds)
        # Whole trees are settled before fabric links are followed, so a short cut never turns a tree around.
        queue = deque(sorted(depth, key=depth.__getitem__))
        while queue:
            here = queue.popleft()
            if devices[here].kind not in (Kind.CPU, *FORWARDING):
                continue
            for link in graph.adjacent[here]:
                there = link.other(here)
                if there not in depth:
                    depth[there] = depth[here] + 1
                    queue.append(there)
    return depth


def check_forest(devices: Mapping[str, Device], links: Sequence[Link]) -> None:
    """Contradiction, naming the way, if plain PCIe links close a loop or join two root ports."""
    parent: dict[Side, Side] = {}
    graph: dict[Side, list[Side]] = defaultdict(list)

    def top(side: Side) -> Side:
        while parent.setdefault(side, side) != side:
            parent[side] = parent[parent[side]]
            side = parent[side]
        return side

    # All CPUs count as one root, so a way from one CPU to another is a loop too.
    cpus = [(device.name, 0) for device in devices.values() if device.kind is Kind.CPU]
    for one, other in pairwise(cpus):
        parent[top(one)] = top(other)
        graph[one].append(other)
        graph[other].append(one)
    for link in links:
        for one, other in _sides(devices, link):
            if top(one) == top(other):
                raise _loop(devices, _way(graph, one, other), link)
            parent[top(one)] = top(other)
            graph[one].append(other)
            graph[other].append(one)


def _sides(devices: Mapping[str, Device], link: Link) -> Iterator[tuple[Side, Side]]:
    """The sides of forwarding devices and CPUs that a plain PCIe link joins; endpoints end every way."""

    def sides(name: str, other: str) -> list[Side]:
        device = devices[name]
        if device.kind not in (Kind.CPU, *FORWARDING) or link.kind is not LinkKind.PCIE:
            return []
        groups = [(name, number) for number, group in enumerate(device.partitions) if other in group]
        return groups if device.partitions else [(name, 0)]

    return product(sides(link.a, link.b), sides(link.b, link.a))


def _way(graph: Mapping[Side, list[Side]], start: Side, goal: Side) -> list[Side]:
    before: dict[Side, Side] = {start: start}
    queue = deque([start])
    while queue and goal not in before:
        here = queue.popleft()
        for there in graph[here]:
            if there not in before:
                before[there] = here
                queue.append(there)
    way = [goal]
    while way[-1] != start:
        way.append(before[way[-1]])
    return way[::-1]


def _loop(devices: Mapping[str, Device], way: Sequence[Side], closing: Link) -> Contradiction:
    names = [name for name, _ in way]
    cpus = [index for index, name in enumerate(names) if devices[name].kind is Kind.CPU]
    if len(cpus) > 1:
        ring = names[cpus[-1] :] + names[: cpus[0] + 1]
        cause = f"PCIe links join two root ports: {' - '.join(ring)}"
    else:
        cause = f"PCIe links run in a circle: {' - '.join([*names, names[0]])}"
    hint = "plain PCIe is a tree below each root port: make the extra link fabric:, or partition the switch"
    return Contradiction(cause, location=closing.location, hint=hint)
