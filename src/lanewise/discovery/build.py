"""From dumps to a System: merge, draft_from_tree, check against the catalogue and the matrix, write and read."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import yaml

from lanewise.catalog import Catalog
from lanewise.discovery import matrix, nvlink
from lanewise.discovery.cards import endpoints
from lanewise.discovery.conditions import conditions
from lanewise.discovery.cpus import nodes_with_cpus
from lanewise.discovery.draft import DraftDevice, DraftLink, SystemDraft
from lanewise.discovery.facts import MACHINE, DumpFacts, Fact, MachineFacts, merge
from lanewise.discovery.os_names import add_os_names
from lanewise.discovery.sysfs import VOLUME
from lanewise.discovery.tree import draft_from_tree
from lanewise.errors import InputError, LanewiseError, Location, error_location
from lanewise.results.conditions import MachineConditions
from lanewise.routes.classify import LOCAL, topo_class
from lanewise.topology import speeds
from lanewise.topology.model import Kind, System
from lanewise.topology.ranges import fold
from lanewise.topology.read import read_system
from lanewise.topology.write import write_system

_SHOWN = (
    "class", "vendor", "device", "parent", "numa", "gen", "lanes", "gen_now", "lanes_now", "speed_now", "payload_max",
    "payload", "read_request", "acs", "alias", "vfs", "vfs_max", "iommu_group", "block", "netdev", "link_layer", "rate",
    "state", "nvlinks", "nvlinks_off", "nvlink_version", "nvlink_rate", "throttle", "busy", "socket", "memory",
)  # fmt: skip
_ORDER = (Kind.CPU, Kind.SWITCH, Kind.GPU, Kind.NVSWITCH, Kind.NIC, Kind.RAID, Kind.SSD)
# Addresses, names and numbers, in which contradictions of one kind differ.
_VARYING = re.compile(r"\b[0-9a-f]{4,8}:[0-9a-f]{2}(?::[0-9a-f]{2}\.[0-7])?\b|0x[0-9a-f]+|\d+(?:\.\d+)?")
# The widest link of a chipset, or of the lanes that EPYC has for management.
_NARROW = 4
# The levels that a description knows, with the fewest drives of each.
_LEVELS = {"raid0": (0, 1), "raid5": (5, 3), "raid10": (10, 4)}


@dataclass(frozen=True)
class Discovery:
    """A machine as read: the system, each device's names in the dumps and facts, what contradicts, the conditions.

    `faults` are devices that do not answer and links below what both ends can. Contradictions of one kind are one line.
    """

    system: System
    dump_names: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, str]
    facts: Mapping[str, tuple[Fact, ...]]
    contradictions: tuple[str, ...]
    conditions: MachineConditions
    faults: tuple[str, ...] = ()

    def text(self) -> str:
        """The description as YAML, with every fact and its source as comments below."""
        lines = ["", "# Read from dumps: what each device is there, and where each fact stands."]
        for name, addresses in self.dump_names.items():
            label = f": {self.labels[name]}" if self.labels.get(name) not in ("", None, *addresses) else ""
            lines.append(f"# {name} = {', '.join(addresses)}{label}" if addresses else f"# {name}{label}")
            lines += [f"#   {fact.key} {_value(fact)} ({fact.source})" for fact in self.facts.get(name, ())]
        return write_system(self.system) + "\n".join(lines) + "\n"


def discover(dumps: Sequence[DumpFacts], catalog: Catalog, name: str = "machine") -> Discovery:
    """The machine that these dumps describe; InputError if they show no GPU, card or drive."""
    merged = merge(dumps)
    files = list(dict.fromkeys(dump.file for dump in dumps))
    with error_location(Location(", ".join(files))):
        draft = _shape(merged, catalog, files)
    nvlink.add_nvlinks(merged, catalog, draft)
    add_os_names(merged, draft)
    _drop_impossible_parts(draft, catalog)
    kinds = ", ".join(dict.fromkeys(dump.kind for dump in dumps))
    document = _document(draft, merged, catalog, name, f"{kinds}: {', '.join(files)}")
    system = _read(document, files, catalog)
    against = _by_kind([*merged.contradictions, *draft.contradictions, *_disagreements(system, merged, draft)])
    faults = tuple(draft.fault_texts())
    loud = (*(f"fault: {text}" for text in faults), *(f"contradiction: {text}" for text in against))
    notes = dict.fromkeys((*_by_kind(merged.notes), *draft.notes, *draft.remark_texts(), *loud))
    names: dict[str, list[str]] = defaultdict(list)
    for word, device in draft.names.items():
        names[device].append(word)
    return Discovery(
        system=replace(system, assumptions=tuple(notes)),
        dump_names={name: tuple(names[name]) for name in system.devices},
        labels={node.name: node.label for node in draft.devices.values()},
        facts={node.name: _facts_of(node, names[node.name], merged) for node in draft.devices.values()},
        contradictions=against,
        conditions=conditions(merged, draft, tuple(notes)),
        faults=faults,
    )


def _by_kind(texts: Sequence[str]) -> tuple[str, ...]:
    """Sentences, of several that differ in names and numbers alone the first with their count."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for text in texts:
        kinds[_VARYING.sub("#", text)].append(text)
    return tuple(
        group[0] if len(group) == 1 else f"{len(group)} of one kind, first: {group[0]}" for group in kinds.values()
    )


def _read(document: dict[str, Any], files: Sequence[str], catalog: Catalog) -> System:
    """The system of a description; what no system can be is an error of the dumps."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=True)
    try:
        return read_system(text, str(document["system"]), {}, catalog)
    except LanewiseError as error:
        cause = f"the dumps describe no machine that can be: {error.cause}"
        hint = "is one cut off, or of another machine? read them one by one"
        raise InputError(cause, location=Location(", ".join(files)), hint=hint) from error


def _shape(merged: MachineFacts, catalog: Catalog, files: Sequence[str]) -> SystemDraft:
    if endpoints(merged) or (not matrix.matrix_names(merged) and nodes_with_cpus(merged)):
        draft = draft_from_tree(merged, catalog)
        matrix.name_devices(merged, draft)
        return draft
    if matrix.matrix_names(merged):
        return matrix.draft_from_matrix(merged, catalog)
    hint = "write the dump with its PCI devices, e.g. lstopo --whole-io -p machine.xml, or lspci -tv"
    raise InputError("no GPU, network card or drive on PCI is in it", location=Location(", ".join(files)), hint=hint)


def _drop_impossible_parts(draft: SystemDraft, catalog: Catalog) -> None:
    """Take a part away where the dump shows more than it can do."""
    links: dict[str, int] = defaultdict(int)
    edges: dict[str, list[DraftLink]] = defaultdict(list)
    for edge in draft.links:
        edges[edge.a].append(edge)
        edges[edge.b].append(edge)
    for pair, count in draft.nvlinks.items():
        for end in pair:
            links[end] += count
    for node in draft.devices.values():
        part = catalog.get(node.part) if node.part else None
        if part and node.kind is Kind.CPU:
            _set_chipset_lanes_aside(node, edges[node.name], part.number("pcie.lanes"), draft)
        for key, value, word in (
            ("pcie.gen", max((edge.gen or 0 for edge in edges[node.name]), default=0), "PCIe generation"),
            ("pcie.lanes", _lanes(edges[node.name]), "PCIe lanes"),
            ("nvlink.links", links[node.name] if node.kind is Kind.GPU else 0, "NVLinks"),
        ):
            most = part.number(key) if part and value else None
            if part and most is not None and value > most and node.part:
                draft.contradict(f"{node.name} shows {word} {value}, {part.name} has {most:.0f}; its part is left out")
                node.part = None


def _lanes(edges: Sequence[DraftLink]) -> int:
    return sum(edge.lanes or 0 for edge in edges)


def _set_chipset_lanes_aside(
    cpu: DraftDevice, edges: Sequence[DraftLink], most: float | None, draft: SystemDraft
) -> None:
    """Leave the widths of narrow links open where a chipset, or lanes for management, must have lent the CPU lanes."""
    narrow = sorted((edge for edge in edges if (edge.lanes or 0) <= _NARROW), key=lambda edge: edge.lanes or 0)
    total = _lanes(edges)
    if most is None or not most < total <= most + _lanes(narrow):
        return
    aside = []
    for edge in narrow:
        if _lanes(edges) > most and edge.lanes:
            edge.lanes = None
            aside.append(edge.b)
    names = ", ".join(fold(aside))
    text = f"{cpu.name} shows {total} PCIe lanes, {cpu.part} has {most:.0f}: the links to {names} may be a chipset's"
    draft.note(f"{text}, their widths are left open")


def _document(draft: SystemDraft, merged: MachineFacts, catalog: Catalog, name: str, source: str) -> dict[str, Any]:
    order = sorted(draft.devices.values(), key=lambda node: _ORDER.index(node.kind))
    devices = {node.name: _device(node, draft) for node in order}
    links = []
    for edge in draft.links:
        link: dict[str, Any] = {"from": edge.a, "to": edge.b, "pcie": speeds.write_pcie(edge.gen, edge.lanes)}
        link |= {"port": edge.port} if edge.port else {}
        link |= {"bridge": edge.bridge} if edge.bridge and draft.devices[edge.a].kind is Kind.CPU else {}
        link |= {"max_payload": f"{edge.payload} B"} if edge.payload else {}
        links.append(link)
    links += [{"from": a, "to": b, "nvlink": count} for (a, b), count in {**draft.nvlinks, **draft.c2c}.items()]
    links += _sockets(draft, catalog)
    document: dict[str, Any] = {"lanewise": 1, "system": name, "source": source, "devices": devices, "links": links}
    arrays = _volumes(merged, draft)
    document |= {"volumes": arrays} if arrays else {}
    policies: dict[str, Any] = {"acs_redirect": draft.redirects} if draft.redirects else {}
    iommu = merged.word(MACHINE, "iommu")
    if not iommu:
        groups = any(merged.value(about, "iommu_group") is not None for about in merged.facts)
        known = "the dumps have IOMMU groups, so the IOMMU is on" if groups else "the IOMMU's mode is not in the dumps"
        draft.note(f"{known}; whether it translates is not known")
    policies |= {"iommu": iommu} if iommu else {}
    return {**document, "policies": policies} if policies else document


def _volumes(merged: MachineFacts, draft: SystemDraft) -> dict[str, dict[str, Any]]:
    """The volumes of the machine by name; what cannot be said is noted."""
    arrays = {}
    for about in merged.facts:
        if not about.startswith(VOLUME):
            continue
        name, level = about.removeprefix(VOLUME), merged.word(about, "level")
        members = merged.word(about, "members").split()
        drives = [draft.names.get(member, "") for member in members]
        why = _unfit(level, drives, merged.number(about, "disks"), draft)
        if why:
            draft.note(f"{name} ({level or 'of unknown level'}) is left out: {why}")
            continue
        arrays[name] = {"raid": _LEVELS[level][0], "drives": drives}
        chunk = merged.number(about, "chunk")
        arrays[name] |= {"chunk": f"{chunk} B"} if chunk else {}
    return arrays


def _unfit(level: str, drives: list[str], disks: int | None, draft: SystemDraft) -> str:
    """Why a description cannot say this array, empty if it can."""
    if level not in _LEVELS:
        return "descriptions know RAID-0, 5 and 10"
    if not drives or any(not name or draft.devices[name].kind is not Kind.SSD for name in drives):
        return "a member of it is no drive on PCI that the dump names"
    if len(set(drives)) < len(drives):
        return "two members of it lie on one drive"
    if disks is not None and disks != len(drives):
        return f"{len(drives)} of its {disks} members are there"
    if len(drives) < _LEVELS[level][1] or (level == "raid10" and len(drives) % 2):
        return f"{len(drives)} drives are too few or odd for its level"
    return ""


def _device(node: DraftDevice, draft: SystemDraft) -> dict[str, Any]:
    word = "switch" if node.kind is Kind.SWITCH else node.kind.value
    entry: dict[str, Any] = {word: node.part}
    entry |= {} if node.node is None else {"numa": node.node}
    entry |= {"numa_nodes": node.numa_nodes} if node.numa_nodes > 1 else {}
    groups = list(draft.uplinks.get(node.name, {}).values())
    entry |= {"partitions": groups} if len(groups) > 1 else {}
    return {**entry, "os_names": list(node.os_names)} if node.os_names else entry


def _sockets(draft: SystemDraft, catalog: Catalog) -> list[dict[str, Any]]:
    cpus = draft.of_kind(Kind.CPU)
    links = []
    for first, second in combinations(cpus, 2):
        part = catalog.get(first.part) if first.part else None
        count = part.number("intersocket.links") if part and len(cpus) == 2 else None
        links.append({"from": first.name, "to": second.name, "socket": int(count) if count else speeds.UNKNOWN})
    if links:
        known = "; their number is taken from the part" if links[0]["socket"] != speeds.UNKNOWN else ""
        draft.note(f"CPUs are joined all to all; how, and by how many links, is not in the dumps{known}")
    return links


def _disagreements(system: System, merged: MachineFacts, draft: SystemDraft) -> list[str]:
    """Where the classes of the system are not those of the matrix."""
    texts = []
    for pair in merged.pairs:
        a, b = draft.names.get(pair.a, ""), draft.names.get(pair.b, "")
        if not (a and b) or " " in pair.word:
            continue
        try:
            route_class = topo_class(system, a, b)
        except LanewiseError as error:
            route_class = error.cause
        if route_class != pair.word and not (route_class == LOCAL and pair.word == "PIX"):
            texts.append(f"{pair.a} to {pair.b}: {pair.source} says {pair.word}, the tree gives {route_class}")
    return texts


def _facts_of(node: DraftDevice, dump_names: Sequence[str], merged: MachineFacts) -> tuple[Fact, ...]:
    """What is said of a device by its first function's address and by its other names."""
    names = [*node.addresses[:1], *(name for name in dump_names if name not in node.addresses)]
    names += [alias for alias, bdf in merged.aliases.items() if bdf in node.addresses]
    facts: dict[str, Fact] = {}
    for name in names:
        facts |= {key: fact for key, fact in merged.facts.get(name, {}).items() if key not in facts}
    return tuple(facts[key] for key in _SHOWN if key in facts)


def _value(fact: Fact) -> str:
    if fact.key in ("class", "vendor", "device") and isinstance(fact.value, int):
        return f"0x{fact.value:04x}"
    return str(fact.value)
