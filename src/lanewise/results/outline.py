"""The outline of a system: what its drawing shows and how it nests, without a single coordinate.

report/layout.py decides where everything goes and report/draw.py only draws, so a saved run can be redrawn
later, larger or in another style, from this plain data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from lanewise.results.nesting import Nest, nest
from lanewise.routes.model import Hop, LinkDirection
from lanewise.topology.model import Link, System, Volume

CONTAINERS = ("host", "numa", "pool")


@dataclass(frozen=True, slots=True)
class OutlineBox:
    """A container (kind host, numa, pool) or a device (kind as in the topology) with the boxes beneath it.

    `detail` is the part, `bound` the host a pooled device belongs to, `unbound` a device that no host owns;
    `members` are the devices that one box represents (identical NVSwitches are drawn as one).
    """

    name: str
    kind: str
    title: str
    detail: str = ""
    bound: str = ""
    unbound: bool = False
    children: tuple[OutlineBox, ...] = ()
    members: tuple[str, ...] = ()

    @property
    def container(self) -> bool:
        """Whether this box only holds others."""
        return self.kind in CONTAINERS

    def walk(self) -> Iterator[OutlineBox]:
        """This box and all beneath it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def devices(self) -> list[str]:
        """The names of the devices among them."""
        return [box.name for box in self.walk() if not box.container]


@dataclass(frozen=True, slots=True)
class OutlineLine:
    """A link between the boxes `a` and `b`: loads in B/s, uses 0..1, None where not stated.

    `tree` says that `b` hangs under `a`; every other line joins two places of the nesting.
    """

    a: str
    b: str
    kind: str
    label: str = ""
    tree: bool = False
    load_ab: float | None = None
    load_ba: float | None = None
    use_ab: float | None = None
    use_ba: float | None = None


@dataclass(frozen=True, slots=True)
class OutlineSpan:
    """A volume that spans several drives."""

    label: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutlinePath:
    """A highlighted route: the boxes it passes in order, and the index of its colour."""

    label: str
    colour: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """Everything a drawing of one system shows."""

    name: str
    title: str
    boxes: tuple[OutlineBox, ...]
    lines: tuple[OutlineLine, ...]
    spans: tuple[OutlineSpan, ...] = ()
    paths: tuple[OutlinePath, ...] = ()
    notes: tuple[str, ...] = ()


def outline(
    system: System,
    loads: Mapping[LinkDirection, float] | None = None,
    use: Mapping[LinkDirection, float] | None = None,
    routes: Sequence[tuple[str, Sequence[str]]] = (),
) -> Outline:
    """The outline of `system` with goodput (B/s) and use (0..1) by direction of a link, and routes.

    UnknownName if a load or a route names a device that the system lacks.
    """
    loads, use = loads or {}, use or {}
    ends = {end for link in (*loads, *use) for end in (link.start, link.end)}
    for name in ends | {name for _, nodes in routes for name in nodes}:
        if name not in system.volumes:
            system.device(name)
    plan = nest(system)
    return Outline(
        name=system.name,
        title=_title(system),
        boxes=tuple(_container(system, plan, top) for top in plan.tops),
        lines=_lines(system, plan, loads, use),
        spans=tuple(_span(volume) for volume in system.volumes.values()),
        paths=tuple(
            # A route is drawn once through a box that represents several devices in a row.
            OutlinePath(label, index, tuple(box for box, _ in groupby(map(plan.box_of, nodes))))
            for index, (label, nodes) in enumerate(routes)
        ),
        notes=_notes(system),
    )


def _title(system: System) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in system.settings.items())
    return (system.title or system.name) + (f" ({settings})" if settings else "")


def _container(system: System, plan: Nest, top: str) -> OutlineBox:
    group = plan.groups[top]
    if group.kind == "bar":
        return _device(system, plan, group.roots[0])
    if group.kind == "host" and len(group.roots) > 1:
        children = tuple(_numa(system, plan, top, root) for root in group.roots)
    else:
        children = tuple(_device(system, plan, root) for root in group.roots)
    bars = tuple(_device(system, plan, bar) for bar in group.bars)
    return OutlineBox(top, group.kind, group.title, children=children + bars)


def _numa(system: System, plan: Nest, host: str, root: str) -> OutlineBox:
    node = system.devices[root].numa
    nodes = system.devices[root].numa_nodes
    title = f"NUMA node {node}" if node is not None else f"socket of {root}"
    if node is not None and nodes > 1:
        title = f"NUMA nodes {node} to {node + nodes - 1}"
    return OutlineBox(f"{host}/{root}", "numa", title, children=(_device(system, plan, root),))


def _device(system: System, plan: Nest, name: str) -> OutlineBox:
    device = system.devices[name]
    members = plan.members.get(name, (name,))
    stem = name.rstrip("0123456789").rstrip("-_.:") or name
    title = name if len(members) == 1 else f"{len(members)}x {stem}"
    # Where a device is drawn inside its own host, repeating the host's name would only be noise.
    bound = device.host or "" if name in plan.pool and len(plan.hosts) > 1 else ""
    below = [child for child in plan.children.get(name, ()) if (child in plan.pool) == (name in plan.pool)]
    return OutlineBox(
        name, device.kind.value, title, _part_title(system, name), bound if bound in plan.hosts else "",
        unbound=device.host is None and device.kind.value not in ("netswitch", "switch", "nvswitch", "cpu"),
        children=tuple(_device(system, plan, child) for child in below), members=members if len(members) > 1 else (),
    )  # fmt: skip


def _part_title(system: System, name: str) -> str:
    """The title of a device's part, and what the operating system calls the device, its PCI address if nothing else."""
    part, names = system.devices[name].part or "", system.devices[name].os_names
    title = system.catalog.get(part).title if part in system.catalog else part
    return ", ".join(filter(None, (title, (names[1:2] or names[:1] or ("",))[0])))


def _lines(
    system: System,
    plan: Nest,
    loads: Mapping[LinkDirection, float],
    use: Mapping[LinkDirection, float],
) -> tuple[OutlineLine, ...]:
    members: dict[tuple[str, str, str], list[Link]] = defaultdict(list)
    hops: dict[tuple[str, str, str], list[Hop]] = defaultdict(list)
    for link in system.links:
        if plan.hidden(link):
            continue
        a, b = plan.box_of(link.a), plan.box_of(link.b)
        flipped = (b, a, link.kind.value) in members or plan.parent.get(a) == b
        key = (b, a, link.kind.value) if flipped else (a, b, link.kind.value)
        members[key].append(link)
        hops[key].append(Hop(link, down=not flipped))
    lines = []
    for key, links in members.items():
        forth = dict.fromkeys(hop.direction for hop in hops[key])
        back = dict.fromkeys(hop.reverse.direction for hop in hops[key])
        load_ab, load_ba = ([loads[link] for link in links if link in loads] for links in (forth, back))
        use_ab, use_ba = (max((use[link] for link in links if link in use), default=None) for links in (forth, back))
        lines.append(
            OutlineLine(
                *key, _link_label(links), plan.parent.get(key[1]) == key[0], sum(load_ab) if load_ab else None,
                sum(load_ba) if load_ba else None, use_ab, use_ba,
            )
        )  # fmt: skip
    return tuple(lines)


def _link_label(links: Sequence[Link]) -> str:
    first, count = links[0], sum(link.count for link in links)
    kind = first.kind.value
    times = f"{count}x " if count > 1 else ""
    if first.gen or first.lanes:
        words = [f"Gen{first.gen}" if first.gen else "", f"x{first.lanes}" if first.lanes else ""]
        return times + " ".join(word for word in words if word)
    if kind == "socket":
        known = all(link.count_known for link in links)
        return f"{count if known else '?'} links" if count > 1 or not known else ""
    if kind == "network":
        return times + (f"{first.rate * 8 / 1e9:.0f} Gb/s" if first.rate else "network")
    return times + {"nvlink": "NVLink", "fabric": "fabric"}.get(kind, "PCIe")


def _span(volume: Volume) -> OutlineSpan:
    drives = f"{len(volume.drives)} drive{'s' * (len(volume.drives) != 1)}"
    return OutlineSpan(f"{volume.name}: RAID {volume.raid} over {drives}", volume.drives)


def _notes(system: System) -> tuple[str, ...]:
    notes = []
    if system.policies.acs_redirect:
        notes.append("ACS sends peer traffic upstream at " + ", ".join(sorted(system.policies.acs_redirect)))
    if system.policies.cross_domain_p2p:
        notes.append("cross-domain P2P is on")
    if system.policies.staging:
        notes.append("copies are staged in the memory of " + ", ".join(sorted(system.policies.staging.values())))
    if shared := [device.name for device in system.devices.values() if device.shared]:
        notes.append("other tenants use the socket too: " + ", ".join(shared))
    return tuple(notes)
