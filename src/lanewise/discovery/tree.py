"""From PCI functions to devices and links: root ports and switches found, what moves no bulk data left out."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from lanewise.discovery.known import bridge_part, cpu_part, kind_of, part_of
from lanewise.discovery.shape import Edge, Node, Shape
from lanewise.discovery.speed import link_speed
from lanewise.topology.model import Kind

if TYPE_CHECKING:
    from lanewise.catalog import Catalog
    from lanewise.discovery.merge import Merged

_BRIDGE, _STORAGE = 0x0604, 0x01
WORDS = {Kind.GPU: "gpu", Kind.NIC: "nic", Kind.SSD: "ssd", Kind.RAID: "raid"}


def endpoints(merged: Merged) -> dict[str, tuple[Kind, list[str]]]:
    """Devices of interest by their first function: kind and all functions of that kind in the slot."""
    found: dict[tuple[str, Kind], list[str]] = defaultdict(list)
    for here in merged.addresses():
        code, vendor, device = (merged.number(here, key) for key in ("class", "vendor", "device"))
        kind = None if merged.value(here, "port") else kind_of(code, vendor, device, merged.word(here, "name"))
        if kind is None and code is not None and code >> 8 == _STORAGE and merged.value(here, "block"):
            kind = Kind.SSD
        if merged.word(here, "physfn") in merged.facts:
            kind = None  # a virtual function is no card of its own
        if kind:
            found[here.rpartition(".")[0], kind].append(here)
    return {addresses[0]: (kind, addresses) for (_, kind), addresses in found.items()}


def plant(merged: Merged, catalog: Catalog) -> Shape:
    """The devices of the machine in their trees; every tree hangs at the CPU of its NUMA node."""
    shape = Shape()
    leaves = endpoints(merged)
    roots = _roots(merged, leaves, shape)
    cpus = _cpus(merged, {*roots.values()}, catalog, shape)
    if not leaves:
        shape.notes.append("no GPU, network card or drive on PCI is in the dumps")
    for here, (kind, functions) in leaves.items():
        node = shape.add(kind, WORDS[kind])
        node.addresses = tuple(functions)
        _describe(node, here, merged, catalog)
        shape.called.update(dict.fromkeys(functions, node.name))
    for here in leaves:
        chain = _chain(here, merged)
        _hang(here, chain, cpus[roots[_root(here, chain, merged)]], merged, catalog, shape)
    _misplaced(merged, shape)
    left = [a for a in merged.addresses() if merged.number(a, "class") != _BRIDGE and a not in shape.called]
    if left:
        shape.notes.append(f"{len(left)} PCI functions that move no bulk data, or whose kind is unknown, are left out")
    return shape


def _describe(node: Node, here: str, merged: Merged, catalog: Catalog) -> None:
    vendor, device = merged.number(here, "vendor"), merged.number(here, "device")
    name = merged.word(here, "name")
    node.part = part_of(node.kind, vendor, device, name, catalog)
    ids = f"[{vendor:04x}:{device:04x}]" if vendor is not None and device is not None else ""
    node.label = " ".join(filter(None, (name, ids if ids not in name else "")))


def _chain(here: str, merged: Merged) -> list[str]:
    """The bridges above a function, the uppermost first."""
    found: list[str] = []
    above = merged.word(here, "parent")
    while above and not above.startswith("root:") and above not in found:
        found.append(above)
        above = merged.word(above, "parent")
    return found[::-1]


def _root(here: str, chain: list[str], merged: Merged) -> str:
    """The host bridge that a function lies below; where the dump says none, its PCI domain stands for it."""
    top = merged.word(chain[0] if chain else here, "parent")
    return top.removeprefix("root:") or here.partition(":")[0]


def _roots(merged: Merged, leaves: dict[str, tuple[Kind, list[str]]], shape: Shape) -> dict[str, int]:
    """The NUMA node of every host bridge, by what hangs below it."""
    nodes: dict[str, dict[int, str]] = defaultdict(dict)
    alone: list[str] = []
    for here in leaves:
        chain = _chain(here, merged)
        root = _root(here, chain, merged)
        above = [merged.number(each, "numa") for each in (f"root:{root}", *chain)]
        near = [node for node in (*above, merged.number(here, "numa")) if node is not None]
        known = nodes[root]
        for node in near[:1]:
            known.setdefault(node, here)
        if near and any(node is not None for node in above):
            shape.root_nodes[here] = near[0]
        if not merged.word(chain[0] if chain else here, "parent"):
            alone.append(here)
    if alone:
        shape.notes.append(f"what lies above {', '.join(alone)} is not in the dumps; a root port each is assumed")
    unknown = sorted(root for root, known in nodes.items() if not known)
    least = min(with_cpus(merged) or [node for known in nodes.values() for node in known], default=0)
    if unknown and len(with_cpus(merged)) != 1:
        shape.notes.append(f"no NUMA node in the dumps for host bridges {', '.join(unknown)}; node {least} is assumed")
    for root, known in nodes.items():
        if len(known) > 1:
            shape.against.append(f"host bridge {root} has devices at NUMA nodes {sorted(known)}; the first is taken")
    return {root: min(known, default=least) for root, known in nodes.items()}


def _misplaced(merged: Merged, shape: Shape) -> None:
    """Name the devices that state another NUMA node than the root above them."""
    for here, node in shape.root_nodes.items():
        own = merged.number(here, "numa")
        named = any(text.startswith(f"{here} numa") for text in merged.contradictions)
        if own is not None and own != node and not named:
            words = f"{shape.called[here]} ({here}) states NUMA node {own}, the root above it node {node}"
            shape.against.append(f"{words}; the root's is taken")


def with_cpus(merged: Merged) -> list[int]:
    """The NUMA nodes of which a dump says more than their memory: those with CPUs."""
    return sorted(
        int(about[5:]) for about, facts in merged.facts.items() if about.startswith("node:") and {*facts} - {"memory"}
    )


def _cpus(merged: Merged, used: set[int], catalog: Catalog, shape: Shape) -> dict[int, str]:
    """A CPU for every NUMA node that has cores or devices."""
    found = {}
    by_bridge = bridge_part((merged.word(a, "name") for a in merged.addresses()), catalog)
    sockets: dict[str, list[str]] = defaultdict(list)
    for number in sorted({*used, *with_cpus(merged)}):
        model = merged.word(f"node:{number}", "model")
        cpu = shape.add(Kind.CPU, "cpu", cpu_part(model, catalog) or by_bridge, number)
        cpu.label = model
        found[number] = cpu.name
        shape.called[f"node:{number}"] = cpu.name
        sockets[merged.word(f"node:{number}", "socket")].append(cpu.name)
    for socket, names in sockets.items():
        if socket and len(names) > 1:
            shape.notes.append(f"{' and '.join(names)} are NUMA nodes of one socket")
    return found


def _hang(here: str, chain: list[str], cpu: str, merged: Merged, catalog: Catalog, shape: Shape) -> None:
    """Link a device below the last switch of its chain, switches made on the way."""
    above, port, before = cpu, "", ""
    root = _root(here, chain, merged)
    for bridge in chain:
        role = _role(bridge, before, merged)
        if role == "port":
            port = bridge
            shape.ports[bridge] = above
            if merged.value(bridge, "acs") is True and above not in shape.redirects:
                shape.redirects.append(above)
        elif bridge in shape.called:
            above, port = shape.called[bridge], ""
        else:
            switch = shape.add(Kind.SWITCH, "sw")
            switch.addresses = (bridge,)
            _describe(switch, bridge, merged, catalog)
            shape.called[bridge] = switch.name
            _link(above, port, switch, bridge, root, merged, catalog, shape)
            above, port = switch.name, ""
        before = role
    _link(above, port, shape.nodes[shape.called[here]], here, root, merged, catalog, shape)


def _role(bridge: str, before: str, merged: Merged) -> str:
    """Whether a bridge is a port (root or downstream) or the head of a switch; unknown ones take turns."""
    stated = merged.word(bridge, "port")
    if stated:
        return "port" if stated in ("root", "down") else "switch"
    return "switch" if before == "port" else "port"


def _link(
    above: str, port: str, node: Node, here: str, root: str, merged: Merged, catalog: Catalog, shape: Shape
) -> None:
    part = catalog.get(node.part) if node.part else None
    gen, lanes, payload, note = link_speed(merged, node, here, port, part)
    edge = Edge(above, node.name, gen, lanes, payload=payload, upper=port, lower=here)
    shape.remarks += [(note, node.name)] if note else []
    if shape.nodes[above].kind is Kind.CPU:
        edge.port, edge.bridge = port.removeprefix("0000:"), root.removeprefix("0000:")
        beside = next(
            (other.b for other in shape.edges if edge.port and (other.a, other.port) == (above, edge.port)), ""
        )
        if beside:
            shape.notes.append(f"{node.name} shares root port {edge.port} with {beside}; it is given one of its own")
            edge.port = ""
    shape.edges.append(edge)
