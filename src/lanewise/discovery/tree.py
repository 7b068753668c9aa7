"""From PCI functions to devices and links: finds root ports and switches, leaves out what moves no bulk data."""

from __future__ import annotations

import re
from collections import defaultdict

from lanewise.catalog import Catalog
from lanewise.discovery.cards import endpoints, ids, without_inner_bridges
from lanewise.discovery.cpus import add_cpus, nodes_with_cpus
from lanewise.discovery.draft import DraftDevice, DraftLink, SystemDraft
from lanewise.discovery.facts import MachineFacts
from lanewise.discovery.identify import part_of
from lanewise.discovery.link_speeds import link_speed, port_of_link
from lanewise.discovery.nvlink import nvswitches
from lanewise.discovery.pci_ids import ATI, is_vmd
from lanewise.errors import InputError
from lanewise.topology.model import Kind

_BRIDGE = 0x0604
# Bridges above each other.
_DEEPEST = 200
WORDS = {Kind.GPU: "gpu", Kind.NIC: "nic", Kind.SSD: "ssd", Kind.RAID: "raid"}
# Linux numbers the domains of Intel's Volume Management Devices from 10000 on, beyond what ACPI can.
_VMD_ROOT = re.compile(r"[0-9a-f]{5,8}:[0-9a-f]{2}")
# The serial number that all chips of PLX state.
_SERIAL_OF_PLX = "00-10-b5-df-0e-00"
# What stands for a switch whose ports are not in the dump: the bridge above it, and this.
_MISSING = "/?"


def draft_from_tree(merged: MachineFacts, catalog: Catalog) -> SystemDraft:
    """The devices of the machine in their trees; every tree hangs at the CPU of its NUMA node."""
    draft = SystemDraft()
    leaves = endpoints(merged)
    roots = _roots(merged, leaves, draft)
    cpus = add_cpus(merged, {*roots.values()}, catalog, draft)
    if not leaves:
        draft.note("no GPU, network card or drive on PCI is in the dumps")
    for bdf, (kind, functions) in leaves.items():
        node = draft.add(kind, WORDS[kind])
        node.addresses = tuple(functions)
        _describe(node, bdf, merged, catalog)
        draft.names.update(dict.fromkeys(functions, node.name))
        if any(merged.value(function, "off_bus") for function in functions):
            text = "{} does not answer on PCI (all ones): it fell off the bus, or its power is off"
            draft.faults.append((text, node.name))
    by_root = {root: cpus[node] for root, node in roots.items()}
    for bdf in leaves:
        _attach(bdf, by_root, merged, catalog, draft)
        near = roots[_path_to_root(bdf, merged)[0]]
        if draft.devices[cpus[near]].numa_nodes > 1:
            draft.devices[draft.names[bdf]].node = near
    _numa_contradictions(merged, draft)
    parts = {*draft.names, *nvswitches(merged)}
    unused = [a for a in merged.addresses() if merged.number(a, "class") != _BRIDGE and a not in parts]
    if unused:
        draft.note(f"{len(unused)} PCI functions that move no bulk data, or whose kind is unknown, are left out")
    return draft


def _describe(node: DraftDevice, bdf: str, merged: MachineFacts, catalog: Catalog) -> None:
    vendor, device, name = ids(bdf, merged)
    node.part = part_of(node.kind, vendor, device, name, catalog)
    number = f"[{vendor:04x}:{device:04x}]" if vendor is not None and device is not None else ""
    node.label = " ".join(filter(None, (name, number if number not in name else "")))


def _path_to_root(bdf: str, merged: MachineFacts) -> tuple[str, list[str]]:
    """The host bridge that a function lies below, and the bridges between the two, the uppermost first.

    Where the dump says no host bridge, `?` and the uppermost function known take its place.
    """
    chain: list[str] = []
    here, above = bdf, _above(bdf, merged)
    while above and not above.startswith("root:") and above not in chain:
        chain.append(above)
        if len(chain) > _DEEPEST:
            cause = f"more than {_DEEPEST} bridges lie above {bdf}"
            raise InputError(cause, hint="no machine nests so many; write the dump again")
        here, above = above, _above(above, merged)
    return above.removeprefix("root:") or f"?{here}", chain[::-1]


def _above(bdf: str, merged: MachineFacts) -> str:
    """The bridge or host bridge above a function; where the ports of the switch between are missing, that switch."""
    if bdf.endswith(_MISSING):
        return bdf.removesuffix(_MISSING)
    above, next_known = merged.word(bdf, "parent"), merged.word(bdf, "below")
    inner = merged.number(bdf, "vendor") == ATI
    is_port = merged.word(next_known, "port") != "up"
    return above or (next_known and next_known + _MISSING * (is_port and not inner))


def _roots(merged: MachineFacts, leaves: dict[str, tuple[Kind, list[str]]], draft: SystemDraft) -> dict[str, int]:
    """The NUMA node of every host bridge, by what hangs below it."""
    by_root: dict[str, dict[int, str]] = defaultdict(dict)
    for bdf in leaves:
        root, chain = _path_to_root(bdf, merged)
        above = [merged.number(device, "numa") for device in (f"root:{root}", *chain)]
        near = [node for node in (*above, merged.number(bdf, "numa")) if node is not None]
        numa_nodes = by_root[root]
        for node in near[:1]:
            numa_nodes.setdefault(node, bdf)
        if near and any(node is not None for node in above):
            draft.root_nodes[bdf] = near[0]
    _add_volume_management(by_root, merged, draft)
    alone = [root[1:] for root in by_root if root.startswith("?")]
    if alone:
        text = "is not in the dumps; a root port each is assumed (lspci -vvv shows it)"
        draft.note(f"what lies above {', '.join(alone)} {text}")
    unknown = sorted(root for root, numa_nodes in by_root.items() if not numa_nodes)
    least = min(nodes_with_cpus(merged) or [node for numa_nodes in by_root.values() for node in numa_nodes], default=0)
    if unknown and len(nodes_with_cpus(merged)) != 1:
        words = ", ".join(root.lstrip("?") for root in unknown)
        draft.note(f"no NUMA node in the dumps for host bridges {words}; node {least} is assumed")
    for root, numa_nodes in by_root.items():
        if len(numa_nodes) > 1:
            draft.contradict(f"host bridge {root} has devices at NUMA nodes {sorted(numa_nodes)}; the first is taken")
    return {root: min(numa_nodes, default=least) for root, numa_nodes in by_root.items()}


def _add_volume_management(by_root: dict[str, dict[int, str]], merged: MachineFacts, draft: SystemDraft) -> None:
    """Take the NUMA nodes of Volume Management Devices for the domains that they make; say what they hide."""
    managers = [a for a in merged.addresses() if is_vmd(*ids(a, merged))]
    domains = sorted(filter(_VMD_ROOT.fullmatch, by_root))
    if managers and not domains:
        draft.note(f"drives behind Intel VMD ({', '.join(managers)}) are hidden from the dumps; add them by hand")
    for root, manager in zip(domains, managers, strict=False) if len(domains) == len(managers) else ():
        node = merged.number(manager, "numa")
        if node is not None and not by_root[root]:
            by_root[root][node] = manager


def _numa_contradictions(merged: MachineFacts, draft: SystemDraft) -> None:
    """Name the devices that state another NUMA node than the root above them."""
    for bdf, node in draft.root_nodes.items():
        own = merged.number(bdf, "numa")
        named = any(text.startswith(f"{bdf} ") and "numa" in text.split(":", 3)[2] for text in merged.contradictions)
        if own is not None and own != node and not named:
            words = f"{draft.names[bdf]} ({bdf}) states NUMA node {own}, the root above it node {node}"
            draft.contradict(f"{words}; the root's is taken")


def _attach(bdf: str, cpus: dict[str, str], merged: MachineFacts, catalog: Catalog, draft: SystemDraft) -> None:
    """Link a device below the last switch above it, adding switches between; `cpus` has the CPU of a host bridge."""
    root, chain = _path_to_root(bdf, merged)
    chain, inner = without_inner_bridges(chain, merged)
    above, port, uplink, before = cpus[root], "", "", ""
    for bridge in chain:
        role = _role(bridge, before, merged)
        if role == "port":
            port = bridge
            draft.ports[bridge] = above
            if merged.value(bridge, "acs") is True and above not in draft.redirects:
                draft.redirects.append(above)
        else:
            if bridge not in draft.names:
                switch = _switch(bridge, uplink, merged, catalog, draft)
                draft.uplinks.setdefault(switch.name, {})[bridge] = [above]
                _link(above, port, uplink, switch, bridge, root, merged, catalog, draft)
            above, port, uplink = draft.names[bridge], "", bridge
        before = role
    _link(above, port, uplink, draft.devices[draft.names[bdf]], inner or bdf, root, merged, catalog, draft)


def _switch(bridge: str, uplink: str, merged: MachineFacts, catalog: Catalog, draft: SystemDraft) -> DraftDevice:
    """The switch that a bridge is the head of: a new one, or the chip of another uplink with its serial number."""
    serial = merged.word(bridge, "serial")
    own = (merged.value(bridge, "vendor"), merged.value(bridge, "device"), serial)
    twins = (
        draft.devices[name]
        for name, heads in draft.uplinks.items()
        for head in heads
        if own == (merged.value(head, "vendor"), merged.value(head, "device"), merged.word(head, "serial"))
    )
    one_of_all = not serial or serial.endswith(_SERIAL_OF_PLX) or uplink
    chip = None if one_of_all else next(twins, None)
    switch = chip or draft.add(Kind.SWITCH, "sw")
    draft.names[bridge] = switch.name
    if bridge.endswith(_MISSING):
        words = f"ports between {bridge.removesuffix(_MISSING)} and what lies below it are not in the dumps"
        draft.note(f"{words}; {switch.name}, a switch, is assumed there")
    else:
        switch.addresses = (*switch.addresses, bridge)
    if chip:
        text = "one chip with several uplinks, by their serial number, a partition (virtual switch) for each: {}"
        draft.remarks += [(text, switch.name)] if (text, switch.name) not in draft.remarks else []
    elif not bridge.endswith(_MISSING):
        _describe(switch, bridge, merged, catalog)
    return switch


def _role(bridge: str, before: str, merged: MachineFacts) -> str:
    """Whether a bridge is a port (root or downstream) or the head of a switch; unknown ones take turns."""
    stated = merged.word(bridge, "port")
    if stated:
        return "port" if stated in ("root", "down") else "switch"
    return "switch" if before == "port" else "port"


def _link(
    above: str, port: str, uplink: str, node: DraftDevice, bdf: str, root: str,
    merged: MachineFacts, catalog: Catalog, draft: SystemDraft,
) -> None:  # fmt: skip
    part = catalog.get(node.part) if node.part else None
    part_above = draft.devices[above].part
    other = catalog.get(part_above) if part_above else None
    upper = port_of_link(port, merged)
    gen, lanes, payload, note, fault = link_speed(merged, node, bdf, upper, part, other)
    edge = DraftLink(above, node.name, gen, lanes, payload=payload, upper=upper, lower=bdf)
    if uplink:
        draft.uplinks[above][uplink].append(node.name)
    if note:
        (draft.faults if fault else draft.remarks).append((note, node.name))
    if draft.devices[above].kind is Kind.CPU:
        edge.port = port.removeprefix("0000:")
        edge.bridge = "" if root.startswith("?") else root.removeprefix("0000:")
        neighbours = [link.b for link in draft.links if (link.a, link.port) == (above, edge.port)]
        if edge.port and neighbours:
            draft.note(f"{node.name} shares root port {edge.port} with {neighbours[0]}; it is given one of its own")
            edge.port = ""
    draft.links.append(edge)
