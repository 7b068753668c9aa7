"""The outline of a system: what its drawing shows and how it nests, without a single coordinate.

report/layout.py decides where everything goes and report/draw.py only draws, so a saved run can be redrawn
later, larger or in another style, from this plain data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lanewise.results.nesting import Nest, nest
from lanewise.topology.model import Device, Link, System

CONTAINERS = ("host", "numa", "pool")


@dataclass(frozen=True, slots=True)
class OutlineBox:
    """A container (kind host, numa, pool) or a device (kind as in the topology) with the boxes beneath it.

    `detail` is the part, `bound` the host a pooled device belongs to, `unbound` a device that no host owns;
    `members` are the devices one box stands for (identical NVSwitches are drawn as one).
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
    """A volume laid over several drives."""

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


@dataclass
class _Flow:
    """What the links between two boxes add up to."""

    links: list[Link] = field(default_factory=list)
    pairs: dict[tuple[str, str], None] = field(default_factory=dict)


def outline(
    system: System,
    loads: Mapping[tuple[str, str], float] | None = None,
    use: Mapping[tuple[str, str], float] | None = None,
    routes: Sequence[tuple[str, Sequence[str]]] = (),
) -> Outline:
    """The outline of `system` with goodput (B/s) and use (0..1) by (start, end) of a link, and routes.

    UnknownName if a load or a route names a device that the system lacks.
    """
    loads, use = loads or {}, use or {}
    for name in {end for key in (*loads, *use) for end in key} | {n for _, nodes in routes for n in nodes}:
        if name not in system.volumes:
            system.device(name)
    plan = nest(system)
    return Outline(
        name=system.name,
        title=_title(system),
        boxes=tuple(_container(system, plan, top) for top in plan.tops),
        lines=_lines(system, plan, loads, use),
        spans=tuple(
            OutlineSpan(_volume_label(v.name, v.raid, len(v.drives)), v.drives) for v in system.volumes.values()
        ),
        paths=tuple(_path(plan, label, index, nodes) for index, (label, nodes) in enumerate(routes)),
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
        children = tuple(
            OutlineBox(
                f"{top}/{root}",
                "numa",
                _numa_title(system.devices[root]),
                children=(_device(system, plan, root),),
            )
            for root in group.roots
        )
    else:
        children = tuple(_device(system, plan, root) for root in group.roots)
    bars = tuple(_device(system, plan, bar) for bar in group.bars)
    return OutlineBox(top, group.kind, group.title, children=children + bars)


def _numa_title(device: Device) -> str:
    return f"NUMA node {device.numa}" if device.numa is not None else f"socket of {device.name}"


def _device(system: System, plan: Nest, name: str) -> OutlineBox:
    device = system.devices[name]
    members = plan.members.get(name, (name,))
    title = name if len(members) == 1 else f"{len(members)}x {_common(members)}"
    # Where a device stands inside its own host, repeating the host's name would only be noise.
    bound = device.host or "" if plan.pooled(name) and len(plan.hosts) > 1 else ""
    return OutlineBox(
        name,
        device.kind.value,
        title,
        detail=_part_title(system, name),
        bound=bound if bound in plan.hosts else "",
        unbound=device.host is None and device.kind.value not in ("netswitch", "switch", "nvswitch", "cpu"),
        children=tuple(
            _device(system, plan, child)
            for child in plan.children.get(name, ())
            if plan.pooled(child) == plan.pooled(name)
        ),
        members=members if len(members) > 1 else (),
    )


def _common(names: Sequence[str]) -> str:
    return names[0].rstrip("0123456789").rstrip("-_.:") or names[0]


def _part_title(system: System, name: str) -> str:
    part = system.devices[name].part
    if not part:
        return ""
    return system.catalog.get(part).title if part in system.catalog else part


def _lines(
    system: System,
    plan: Nest,
    loads: Mapping[tuple[str, str], float],
    use: Mapping[tuple[str, str], float],
) -> tuple[OutlineLine, ...]:
    flows: dict[tuple[str, str, str], _Flow] = {}
    for link in system.links:
        if plan.hidden(link):
            continue
        a, b = plan.box_of(link.a), plan.box_of(link.b)
        flipped = (b, a, link.kind.value) in flows or plan.parent.get(a) == b
        key = (b, a, link.kind.value) if flipped else (a, b, link.kind.value)
        flow = flows.setdefault(key, _Flow())
        flow.links.append(link)
        flow.pairs[(link.b, link.a) if flipped else (link.a, link.b)] = None
    return tuple(_line(plan, key, flow, loads, use) for key, flow in flows.items())


def _line(
    plan: Nest,
    key: tuple[str, str, str],
    flow: _Flow,
    loads: Mapping[tuple[str, str], float],
    use: Mapping[tuple[str, str], float],
) -> OutlineLine:
    a, b, kind = key
    forth, back = list(flow.pairs), [(end, start) for start, end in flow.pairs]
    return OutlineLine(
        a,
        b,
        kind,
        label=_link_label(flow.links),
        tree=plan.parent.get(b) == a,
        load_ab=_total(loads, forth),
        load_ba=_total(loads, back),
        use_ab=_highest(use, forth),
        use_ba=_highest(use, back),
    )


def _total(table: Mapping[tuple[str, str], float], keys: Sequence[tuple[str, str]]) -> float | None:
    values = [table[key] for key in keys if key in table]
    return sum(values) if values else None


def _highest(table: Mapping[tuple[str, str], float], keys: Sequence[tuple[str, str]]) -> float | None:
    return max((table[key] for key in keys if key in table), default=None)


def _link_label(links: Sequence[Link]) -> str:
    first, count = links[0], sum(link.count for link in links)
    kind = first.kind.value
    times = f"{count}x " if count > 1 else ""
    if first.gen or first.lanes:
        words = [f"Gen{first.gen}" if first.gen else "", f"x{first.lanes}" if first.lanes else ""]
        return times + " ".join(word for word in words if word)
    if kind == "socket":
        return f"{count} links" if count > 1 else ""
    if kind == "network":
        return times + (f"{first.rate * 8 / 1e9:.0f} Gb/s" if first.rate else "network")
    return times + {"nvlink": "NVLink", "fabric": "fabric"}.get(kind, "PCIe")


def _volume_label(name: str, raid: int, drives: int) -> str:
    return f"{name}: RAID {raid} over {drives} drive{'s' * (drives != 1)}"


def _path(plan: Nest, label: str, index: int, nodes: Sequence[str]) -> OutlinePath:
    names: list[str] = []
    for node in nodes:
        for name in plan.route_boxes(node):
            if not names or names[-1] != name:
                names.append(name)
    return OutlinePath(label, index, tuple(names))


def _notes(system: System) -> tuple[str, ...]:
    notes = []
    if system.policies.acs_redirect:
        notes.append("ACS sends peer traffic upstream at " + ", ".join(sorted(system.policies.acs_redirect)))
    if system.policies.cross_domain_p2p:
        notes.append("cross-domain P2P is on")
    return tuple(notes)
