"""From PCI functions to devices and links: finds root ports and switches, leaves out what moves no bulk data."""

from __future__ import annotations

from collections import defaultdict

from lanewise.catalog import Catalog, Part
from lanewise.discovery.draft import DraftDevice, DraftLink, SystemDraft
from lanewise.discovery.facts import MACHINE, MachineFacts
from lanewise.discovery.identify import bridge_part, cpu_part, kind_of, part_of
from lanewise.errors import InputError
from lanewise.topology.model import Kind

_BRIDGE, _STORAGE = 0x0604, 0x01
# Bridges above each other, and NUMA nodes of one machine.
_DEEPEST, _MAX_NODES = 200, 256
WORDS = {Kind.GPU: "gpu", Kind.NIC: "nic", Kind.SSD: "ssd", Kind.RAID: "raid"}
LinkSpeed = tuple[int | None, int | None, int | None, str]
# GB/s of one lane, by generation, as hwloc computes them.
_LANE = {1: 0.25, 2: 0.5, 3: 0.9846, 4: 1.9692, 5: 3.9385, 6: 7.563}


def endpoints(merged: MachineFacts) -> dict[str, tuple[Kind, list[str]]]:
    """Devices of interest by their first function: kind and all functions of that kind in the slot."""
    functions: dict[tuple[str, Kind], list[str]] = defaultdict(list)
    for bdf in merged.addresses():
        code, vendor, device = (merged.number(bdf, key) for key in ("class", "vendor", "device"))
        kind = None if merged.value(bdf, "port") else kind_of(code, vendor, device, merged.word(bdf, "name"))
        if kind is None and code is not None and code >> 8 == _STORAGE and merged.value(bdf, "block"):
            kind = Kind.SSD
        if merged.word(bdf, "physfn") in merged.facts:
            kind = None  # a virtual function is no card of its own
        if kind:
            functions[bdf.rpartition(".")[0], kind].append(bdf)
    return {addresses[0]: (kind, addresses) for (_, kind), addresses in functions.items()}


def draft_from_tree(merged: MachineFacts, catalog: Catalog) -> SystemDraft:
    """The devices of the machine in their trees; every tree hangs at the CPU of its NUMA node."""
    draft = SystemDraft()
    leaves = endpoints(merged)
    roots = _roots(merged, leaves, draft)
    cpus = _cpus(merged, {*roots.values()}, catalog, draft)
    if not leaves:
        draft.note("no GPU, network card or drive on PCI is in the dumps")
    for bdf, (kind, functions) in leaves.items():
        node = draft.add(kind, WORDS[kind])
        node.addresses = tuple(functions)
        _describe(node, bdf, merged, catalog)
        draft.names.update(dict.fromkeys(functions, node.name))
    by_root = {root: cpus[node] for root, node in roots.items()}
    for bdf in leaves:
        _attach(bdf, by_root, merged, catalog, draft)
    _numa_contradictions(merged, draft)
    unused = [a for a in merged.addresses() if merged.number(a, "class") != _BRIDGE and a not in draft.names]
    if unused:
        draft.note(f"{len(unused)} PCI functions that move no bulk data, or whose kind is unknown, are left out")
    return draft


def _describe(node: DraftDevice, bdf: str, merged: MachineFacts, catalog: Catalog) -> None:
    vendor, device = merged.number(bdf, "vendor"), merged.number(bdf, "device")
    name = merged.word(bdf, "name")
    node.part = part_of(node.kind, vendor, device, name, catalog)
    ids = f"[{vendor:04x}:{device:04x}]" if vendor is not None and device is not None else ""
    node.label = " ".join(filter(None, (name, ids if ids not in name else "")))


def _path_to_root(bdf: str, merged: MachineFacts) -> tuple[str, list[str]]:
    """The host bridge that a function lies below, and the bridges between the two, the uppermost first.

    Where the dump says no host bridge, the PCI domain takes its place.
    """
    chain: list[str] = []
    above = merged.word(bdf, "parent")
    while above and not above.startswith("root:") and above not in chain:
        chain.append(above)
        if len(chain) > _DEEPEST:
            cause = f"more than {_DEEPEST} bridges lie above {bdf}"
            raise InputError(cause, hint="no machine nests so many; write the dump again")
        above = merged.word(above, "parent")
    return above.removeprefix("root:") or bdf.partition(":")[0], chain[::-1]


def _roots(merged: MachineFacts, leaves: dict[str, tuple[Kind, list[str]]], draft: SystemDraft) -> dict[str, int]:
    """The NUMA node of every host bridge, by what hangs below it."""
    by_root: dict[str, dict[int, str]] = defaultdict(dict)
    alone: list[str] = []
    for bdf in leaves:
        root, chain = _path_to_root(bdf, merged)
        above = [merged.number(device, "numa") for device in (f"root:{root}", *chain)]
        near = [node for node in (*above, merged.number(bdf, "numa")) if node is not None]
        numa_nodes = by_root[root]
        for node in near[:1]:
            numa_nodes.setdefault(node, bdf)
        if near and any(node is not None for node in above):
            draft.root_nodes[bdf] = near[0]
        if not merged.word(chain[0] if chain else bdf, "parent"):
            alone.append(bdf)
    if alone:
        draft.note(f"what lies above {', '.join(alone)} is not in the dumps; a root port each is assumed")
    unknown = sorted(root for root, numa_nodes in by_root.items() if not numa_nodes)
    least = min(nodes_with_cpus(merged) or [node for numa_nodes in by_root.values() for node in numa_nodes], default=0)
    if unknown and len(nodes_with_cpus(merged)) != 1:
        draft.note(f"no NUMA node in the dumps for host bridges {', '.join(unknown)}; node {least} is assumed")
    for root, numa_nodes in by_root.items():
        if len(numa_nodes) > 1:
            draft.contradict(f"host bridge {root} has devices at NUMA nodes {sorted(numa_nodes)}; the first is taken")
    return {root: min(numa_nodes, default=least) for root, numa_nodes in by_root.items()}


def _numa_contradictions(merged: MachineFacts, draft: SystemDraft) -> None:
    """Name the devices that state another NUMA node than the root above them."""
    for bdf, node in draft.root_nodes.items():
        own = merged.number(bdf, "numa")
        named = any(text.startswith(f"{bdf} numa") for text in merged.contradictions)
        if own is not None and own != node and not named:
            words = f"{draft.names[bdf]} ({bdf}) states NUMA node {own}, the root above it node {node}"
            draft.contradict(f"{words}; the root's is taken")


def nodes_with_cpus(merged: MachineFacts) -> list[int]:
    """The NUMA nodes of which a dump says more than their memory: those with CPUs."""
    return sorted(
        int(about[5:]) for about, facts in merged.facts.items() if about.startswith("node:") and {*facts} - {"memory"}
    )


def _cpus(merged: MachineFacts, used: set[int], catalog: Catalog, draft: SystemDraft) -> dict[int, str]:
    """A CPU for every NUMA node that has cores or devices."""
    cpus = {}
    by_bridge = bridge_part((merged.word(a, "name") for a in merged.addresses()), catalog)
    sockets: dict[str, list[str]] = defaultdict(list)
    numbers = sorted({*used, *nodes_with_cpus(merged)})
    if len(numbers) > _MAX_NODES:
        cause = f"the dumps show more than {_MAX_NODES} NUMA nodes with CPUs or devices"
        raise InputError(cause, hint="name the dumps of one machine")
    for number in numbers:
        model = merged.word(f"node:{number}", "model")
        cpu = draft.add(Kind.CPU, "cpu", cpu_part(model, catalog) or (None if model else by_bridge), number)
        if cpu.part and not model:
            draft.remarks.append((f"{{}} taken as {cpu.part} by the name of its host bridge", cpu.name))
        cpu.label = model
        cpus[number] = cpu.name
        draft.names[f"node:{number}"] = cpu.name
        sockets[merged.word(f"node:{number}", "socket")].append(cpu.name)
    for socket, names in sockets.items():
        if socket and len(names) > 1:
            draft.note(f"{' and '.join(names)} are NUMA nodes of one socket")
    return cpus


def _attach(bdf: str, cpus: dict[str, str], merged: MachineFacts, catalog: Catalog, draft: SystemDraft) -> None:
    """Link a device below the last switch above it, adding switches between; `cpus` has the CPU of a host bridge."""
    root, chain = _path_to_root(bdf, merged)
    above, port, before = cpus[root], "", ""
    for bridge in chain:
        role = _role(bridge, before, merged)
        if role == "port":
            port = bridge
            draft.ports[bridge] = above
            if merged.value(bridge, "acs") is True and above not in draft.redirects:
                draft.redirects.append(above)
        elif bridge in draft.names:
            above, port = draft.names[bridge], ""
        else:
            switch = draft.add(Kind.SWITCH, "sw")
            switch.addresses = (bridge,)
            _describe(switch, bridge, merged, catalog)
            draft.names[bridge] = switch.name
            _link(above, port, switch, bridge, root, merged, catalog, draft)
            above, port = switch.name, ""
        before = role
    _link(above, port, draft.devices[draft.names[bdf]], bdf, root, merged, catalog, draft)


def _role(bridge: str, before: str, merged: MachineFacts) -> str:
    """Whether a bridge is a port (root or downstream) or the head of a switch; unknown ones take turns."""
    stated = merged.word(bridge, "port")
    if stated:
        return "port" if stated in ("root", "down") else "switch"
    return "switch" if before == "port" else "port"


def _link(
    above: str, port: str, node: DraftDevice, bdf: str, root: str,
    merged: MachineFacts, catalog: Catalog, draft: SystemDraft,
) -> None:  # fmt: skip
    part = catalog.get(node.part) if node.part else None
    gen, lanes, payload, note = _link_speed(merged, node, bdf, port, part)
    edge = DraftLink(above, node.name, gen, lanes, payload=payload, upper=port, lower=bdf)
    draft.remarks += [(note, node.name)] if note else []
    if draft.devices[above].kind is Kind.CPU:
        edge.port, edge.bridge = port.removeprefix("0000:"), root.removeprefix("0000:")
        neighbours = [link.b for link in draft.links if (link.a, link.port) == (above, edge.port)]
        if edge.port and neighbours:
            draft.note(f"{node.name} shares root port {edge.port} with {neighbours[0]}; it is given one of its own")
            edge.port = ""
    draft.links.append(edge)


def _link_speed(merged: MachineFacts, node: DraftDevice, bdf: str, port: str, part: Part | None) -> LinkSpeed:
    """Generation, lanes, payload in use, and a note where {} stands for the device; None is unknown."""
    ends = [end for end in (port, bdf) if end]
    most = [_least(merged, ends, key) for key in ("gen", "lanes")]
    now = [_least(merged, ends, f"{key}_now") for key in ("gen", "lanes")]
    payload = _least(merged, ends, "payload")
    note = _now_note(most, now, merged.value(MACHINE, "under_load") is True)
    wanting = [key for key, value in zip(("generation", "width"), most, strict=True) if value is None]
    if wanting and None not in now:
        most = [best if best is not None else current for best, current in zip(most, now, strict=True)]
        note = f"{' and '.join(wanting)} of the link to {{}} as it was; what it can do is not in the dumps"
    elif wanting and (speed := merged.value(bdf, "speed_now")):
        fitting = _fitting(float(str(speed)), node.kind, part)
        most = list(fitting or most)
        rate = f"{float(str(speed)):.2f} GB/s"
        note = f"the link to {{}} had {rate} when the dump was made; {_speed_text(most)} is assumed"
    elif wanting and part is not None and node.kind is not Kind.SWITCH:
        best = [_figure(part, "pcie.gen"), _figure(part, "pcie.lanes")]
        most = [value if value is not None else figure for value, figure in zip(most, best, strict=True)]
        note = f"no {' and '.join(wanting)} in the dumps for the link to {{}}; what {part.name} can is assumed"
    elif wanting:
        note = f"{' and '.join(wanting)} of the link to {{}} unknown"
    return most[0], most[1], payload, note


def _least(merged: MachineFacts, ends: list[str], key: str) -> int | None:
    return min((value for end in ends if (value := merged.number(end, key)) is not None), default=None)


def _now_note(most: list[int | None], now: list[int | None], under_load: bool) -> str:
    """What is said of a link that ran below its best: an idle one may drop its rate, but keeps its lanes."""
    slower, narrower = (
        best is not None and current is not None and current < best for best, current in zip(most, now, strict=True)
    )
    if not (slower or narrower):
        return ""
    excuse = "" if under_load or narrower else "; idle links train down"
    when = "under load" if under_load else "when the dump was made"
    return f"the link to {{}} ran at {_speed_text(now)} {when}, at most {_speed_text(most)}{excuse}"


def _speed_text(speed: list[int | None]) -> str:
    gen, lanes = speed
    return f"Gen{gen or '?'} x{lanes or '?'}"


def _fitting(speed: float, kind: Kind, part: Part | None) -> tuple[int, int] | None:
    """A generation and width of that bandwidth: with the part's own width if it fits, else the oldest generation."""
    every = ((gen, lanes, rate * lanes) for gen, rate in _LANE.items() for lanes in (1, 2, 4, 8, 16))
    able = [(gen, lanes) for gen, lanes, rate in every if abs(rate / speed - 1) < 0.005]
    own = _figure(part, "pcie.lanes") if part else None
    usual = own or (4 if kind is Kind.SSD else None)
    return min(able, key=lambda option: (option[1] != usual, option[0]), default=None)


def _figure(part: Part, key: str) -> int | None:
    value = part.number(key)
    return None if value is None else int(value)
