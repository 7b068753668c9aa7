"""From dumps to a System: merge, plant, check against the catalogue and the matrix, write and read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import yaml

from lanewise.catalog import Catalog
from lanewise.discovery import matrix, nvlink
from lanewise.discovery.conditions import conditions
from lanewise.discovery.facts import MACHINE, Fact, Reading
from lanewise.discovery.merge import Merged, merge
from lanewise.discovery.shape import Node, Shape
from lanewise.discovery.tree import endpoints, plant, with_cpus
from lanewise.discovery.volumes import volumes
from lanewise.errors import InputError, LanewiseError, Location
from lanewise.results.conditions import Conditions
from lanewise.routes.classify import LOCAL, seen_class
from lanewise.topology import speeds
from lanewise.topology.model import Kind, System
from lanewise.topology.read import read_system
from lanewise.topology.write import write_system

_SHOWN = (
    "class", "vendor", "device", "parent", "numa", "gen", "lanes", "gen_now", "lanes_now", "speed_now", "payload_max",
    "payload", "read_request", "acs", "alias", "vfs", "vfs_max", "iommu_group", "block", "netdev", "link_layer", "rate",
    "state", "nvlinks", "nvlinks_off", "nvlink_version", "nvlink_rate", "throttle", "busy", "socket", "memory",
)  # fmt: skip
_ORDER = (Kind.CPU, Kind.SWITCH, Kind.GPU, Kind.NVSWITCH, Kind.NIC, Kind.RAID, Kind.SSD)


@dataclass(frozen=True)
class Discovery:
    """A machine as read: the system, what each device is called in the dumps, its facts, and what contradicts."""

    system: System
    called: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, str]
    facts: Mapping[str, tuple[Fact, ...]]
    contradictions: tuple[str, ...]
    merged: Merged
    shape: Shape

    @property
    def conditions(self) -> Conditions:
        """Links now and at most, ACS, NUMA nodes and peers, as the dumps state them."""
        return conditions(self)

    def text(self) -> str:
        """The description as YAML, with every fact and its source as comments below."""
        lines = ["", "# Read from dumps: what each device is there, and where each fact stands."]
        for name, addresses in self.called.items():
            label = f": {self.labels[name]}" if self.labels.get(name) not in ("", None, *addresses) else ""
            lines.append(f"# {name} = {', '.join(addresses)}{label}" if addresses else f"# {name}{label}")
            lines += [f"#   {fact.key} {_value(fact)} ({fact.source})" for fact in self.facts.get(name, ())]
        return write_system(self.system) + "\n".join(lines) + "\n"


def discover(readings: Sequence[Reading], catalog: Catalog, name: str = "machine") -> Discovery:
    """The machine that these dumps describe; InputError if they show no GPU, card or drive."""
    merged = merge(readings)
    files = list(dict.fromkeys(reading.file for reading in readings))
    shape = _shape(merged, catalog, files)
    nvlink.bond(merged, catalog, shape)
    _fit(shape, catalog)
    kinds = ", ".join(dict.fromkeys(reading.kind for reading in readings))
    document = _document(shape, merged, catalog, name, f"{kinds}: {', '.join(files)}")
    system = _read(document, files, catalog)
    against = (*merged.contradictions, *shape.against, *_disagreements(system, merged, shape))
    notes = dict.fromkeys(
        (*merged.notes, *shape.notes, *shape.remarked(), *(f"contradiction: {text}" for text in against))
    )
    called: dict[str, list[str]] = defaultdict(list)
    for word, device in shape.called.items():
        called[device].append(word)
    return Discovery(
        system=replace(system, assumptions=tuple(notes)),
        called={each: tuple(called[each]) for each in system.devices},
        labels={node.name: node.label for node in shape.nodes.values()},
        facts={node.name: _facts_of(node, called[node.name], merged) for node in shape.nodes.values()},
        contradictions=against,
        merged=merged,
        shape=shape,
    )


def _read(document: dict[str, Any], files: Sequence[str], catalog: Catalog) -> System:
    """The system of a description; what no system can be is an error of the dumps."""
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    try:
        return read_system(text, str(document["system"]), {}, catalog)
    except LanewiseError as error:
        cause = f"the dumps describe no machine that can be: {error.cause}"
        hint = "is one cut off, or of another machine? read them one by one"
        raise InputError(cause, location=Location(", ".join(files)), hint=hint) from error


def _shape(merged: Merged, catalog: Catalog, files: Sequence[str]) -> Shape:
    if endpoints(merged) or (not matrix.listed(merged) and with_cpus(merged)):
        shape = plant(merged, catalog)
        matrix.tie(merged, shape)
        return shape
    if matrix.listed(merged):
        return matrix.sow(merged)
    hint = "write the dump with its PCI devices, e.g. lstopo --whole-io -p machine.xml, or lspci -tv"
    raise InputError("no GPU, network card or drive on PCI is in it", location=Location(", ".join(files)), hint=hint)


def _fit(shape: Shape, catalog: Catalog) -> None:
    """Take a part away where the dump shows more than it can do."""
    lanes: dict[str, int] = defaultdict(int)
    links: dict[str, int] = defaultdict(int)
    fastest: dict[str, int] = defaultdict(int)
    for edge in shape.edges:
        for end in (edge.a, edge.b):
            lanes[end] += edge.lanes or 0
            fastest[end] = max(fastest[end], edge.gen or 0)
    for pair, count in shape.bonds.items():
        for end in pair:
            links[end] += count
    for node in shape.nodes.values():
        part = catalog.get(node.part) if node.part else None
        for key, shown, word in (
            ("pcie.gen", fastest[node.name], "PCIe generation"),
            ("pcie.lanes", lanes[node.name], "PCIe lanes"),
            ("nvlink.links", links[node.name] if node.kind is Kind.GPU else 0, "NVLinks"),
        ):
            most = part.number(key) if part and shown else None
            if part and most is not None and shown > most and node.part:
                shape.against.append(
                    f"{node.name} shows {word} {shown}, {part.name} has {most:.0f}; its part is left out"
                )
                node.part = None


def _document(shape: Shape, merged: Merged, catalog: Catalog, name: str, source: str) -> dict[str, Any]:
    order = sorted(shape.nodes.values(), key=lambda node: _ORDER.index(node.kind))
    devices = {node.name: _device(node) for node in order}
    links = []
    for edge in shape.edges:
        link: dict[str, Any] = {"from": edge.a, "to": edge.b, "pcie": speeds.write_pcie(edge.gen, edge.lanes)}
        link |= {"port": edge.port} if edge.port else {}
        link |= {"bridge": edge.bridge} if edge.bridge and shape.nodes[edge.a].kind is Kind.CPU else {}
        link |= {"max_payload": f"{edge.payload} B"} if edge.payload else {}
        links.append(link)
    links += [{"from": a, "to": b, "nvlink": count} for (a, b), count in shape.bonds.items()]
    links += _sockets(shape, catalog)
    found: dict[str, Any] = {"lanewise": 1, "system": name, "source": source, "devices": devices, "links": links}
    arrays = volumes(merged, shape)
    found |= {"volumes": arrays} if arrays else {}
    policies: dict[str, Any] = {"acs_redirect": shape.redirects} if shape.redirects else {}
    iommu = merged.word(MACHINE, "iommu")
    policies |= {"iommu": iommu} if iommu else {}
    if not iommu:
        shape.notes.append("the IOMMU's mode is not in the dumps; off is assumed")
    return {**found, "policies": policies} if policies else found


def _device(node: Node) -> dict[str, Any]:
    word = "switch" if node.kind is Kind.SWITCH else node.kind.value
    return {word: node.part} if node.node is None else {word: node.part, "numa": node.node}


def _sockets(shape: Shape, catalog: Catalog) -> list[dict[str, Any]]:
    cpus = shape.of_kind(Kind.CPU)
    if len(cpus) > 1:
        shape.notes.append("CPUs are joined all to all; how, and by how many links, is not in the dumps")
    links = []
    for one, other in combinations(cpus, 2):
        part = catalog.get(one.part) if one.part else None
        known = part.number("intersocket.links") if part and len(cpus) == 2 else None
        links.append({"from": one.name, "to": other.name, "socket": int(known or 1)})
    return links


def _disagreements(system: System, merged: Merged, shape: Shape) -> list[str]:
    """Where the classes of the system are not those of the matrix."""
    found = []
    for pair in merged.pairs:
        a, b = shape.called.get(pair.a, ""), shape.called.get(pair.b, "")
        if not (a and b) or " " in pair.word:
            continue
        try:
            seen = seen_class(system, a, b)
        except LanewiseError as error:
            seen = error.cause
        if seen != pair.word and not (seen == LOCAL and pair.word == "PIX"):
            found.append(f"{pair.a} to {pair.b}: {pair.source} says {pair.word}, the tree gives {seen}")
    return found


def _facts_of(node: Node, called: Sequence[str], merged: Merged) -> tuple[Fact, ...]:
    """What is said of a device by its first function's address and by its other names."""
    names = [*node.addresses[:1], *(name for name in called if name not in node.addresses)]
    names += [alias for alias, here in merged.aliases.items() if here in node.addresses]
    facts: dict[str, Fact] = {}
    for name in names:
        facts |= {key: fact for key, fact in merged.facts.get(name, {}).items() if key not in facts}
    return tuple(facts[key] for key in _SHOWN if key in facts)


def _value(fact: Fact) -> str:
    if fact.key in ("class", "vendor", "device") and isinstance(fact.value, int):
        return f"0x{fact.value:04x}"
    return str(fact.value)
