"""hwloc XML (lstopo --of xml): NUMA nodes, host bridges, bridges and PCI devices, NVLink bandwidths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree.ElementTree import Element

from lanewise.discovery.facts import DumpFacts, address
from lanewise.discovery.xml import parse
from lanewise.errors import FormatError, Location

KIND = "hwloc XML"
_TYPE = re.compile(r"([0-9a-f]{4})(?:\s+\[([0-9a-f]{4}):([0-9a-f]{4})\])?", re.IGNORECASE)
_BUS = re.compile(r"([0-9a-f]{4,8}):\[([0-9a-f]{2})-", re.IGNORECASE)


def read_hwloc(text: str, file: str) -> DumpFacts:
    """The facts of an hwloc export, version 1 to 3."""
    root = parse(text, file)
    if root.tag != "topology":
        raise FormatError(f"<{root.tag}> is no hwloc export", location=Location(file), hint="it starts with <topology>")
    facts = DumpFacts(file, KIND)
    try:
        _read(root, facts)
    except ValueError as error:
        hint = "is the export complete? write it again with lstopo"
        raise FormatError(f"a number in it is none: {error}", location=Location(file), hint=hint) from None
    if any(fact.key == "speed_now" for fact in facts.facts):
        facts.notes.append(f"{facts.file}: hwloc gives the bandwidth of a link as it was, not what it can do")
    return facts


def _read(root: Element, facts: DumpFacts) -> None:
    owners: dict[str, str] = {}
    for child in root.iter("object"):
        _processor(child, facts)
    for child in root:
        if child.tag == "object":
            _walk(child, "", (), facts, owners)
    _bandwidths(root, owners, facts)


def _processor(element: Element, facts: DumpFacts) -> None:
    nodes = _bits(element.get("nodeset", ""))
    if element.get("type") == "NUMANode" and any(_bits(element.get("cpuset", ""))):
        node = int(element.get("os_index", "0"))
        facts.add(f"node:{node}", "cpus", True, "NUMANode")
    if element.get("type") in ("Package", "Socket") and nodes:
        model = next((i.get("value", "") for i in element.findall("info") if i.get("name") == "CPUModel"), "")
        for node in nodes:
            facts.add(f"node:{node}", "model", model, "CPUModel")
            facts.add(f"node:{node}", "socket", element.get("os_index", ""), "Package")


def _walk(element: Element, parent: str, nodes: tuple[int, ...], facts: DumpFacts, owners: dict[str, str]) -> None:
    kind = element.get("type", "")
    nodes = _bits(element.get("nodeset", "")) or nodes
    bdf = address(element.get("pci_busid", "")) or ""
    if kind == "Bridge" and element.get("bridge_type", "").startswith("0"):
        bus = _BUS.match(element.get("bridge_pci", ""))
        parent = f"root:{bus[1]}:{bus[2]}".lower() if bus else ""
        if len(nodes) > 1:
            near = " and ".join(map(str, nodes))
            facts.notes.append(f"{facts.file}: host bridge {parent[5:]} is near NUMA nodes {near}; the first is taken")
    elif kind in ("Bridge", "PCIDev") and bdf:
        _function(element, bdf, parent, nodes, facts)
        parent = bdf
    for name in (element.get("id"), f"obj{element.get('gp_index', '')}"):
        if name and parent and kind in ("Bridge", "PCIDev", "OSDev"):
            owners[name] = parent
        elif name and kind == "Package" and nodes:
            owners[name] = f"node:{nodes[0]}"
    for child in element:
        if child.tag == "object":
            _walk(child, parent, nodes, facts, owners)


def _function(element: Element, bdf: str, parent: str, nodes: tuple[int, ...], facts: DumpFacts) -> None:
    words = _TYPE.match(element.get("pci_type", ""))
    if words:
        facts.add(bdf, "class", int(words[1], 16), "pci_type")
    if words and words[2]:
        facts.add(bdf, "vendor", int(words[2], 16), "pci_type")
        facts.add(bdf, "device", int(words[3], 16), "pci_type")
    facts.add(bdf, "parent", parent, "nesting of Bridge")
    facts.add(bdf, "numa", nodes[0] if nodes else None, "nodeset")
    names = {info.get("name", ""): info.get("value", "") for info in element.findall("info")}
    facts.add(bdf, "name", " ".join(filter(None, (names.get("PCIVendor"), names.get("PCIDevice")))), "PCIDevice")
    speed = float(element.get("pci_link_speed", "0") or 0)
    facts.add(bdf, "speed_now", speed or None, "pci_link_speed")
    for device in element.findall("object"):
        name = device.get("name", "")
        if re.fullmatch(r"(mlx|bnxt_re|irdma|qib|hfi|efa|ibp|rocep)[\w_]*|nvme\d+(n\d+)?", name):
            facts.add(bdf, "alias", name, "OSDev name")


def _bandwidths(root: Element, owners: Mapping[str, str], facts: DumpFacts) -> None:
    for table in (*root.iter("distances2hetero"), *root.iter("distances2")):
        if not table.get("name", "").startswith("NVLink"):
            continue
        names = " ".join(item.text or "" for item in table.findall("indexes")).split()
        cells = [int(word) for item in table.findall("u64values") for word in (item.text or "").split()]
        ends = [owners.get(f"obj{name.rpartition(':')[2]}", "") for name in names]
        if len(cells) != len(ends) ** 2:
            facts.notes.append(f"{facts.file}: the NVLink table has {len(cells)} cells for {len(ends)} devices")
            continue
        for row, end in enumerate(ends):
            for column in range(row):
                if cells[row * len(ends) + column] and end and ends[column]:
                    speed = cells[row * len(ends) + column]
                    facts.add_pair(ends[column], end, f"bandwidth {speed}", "NVLinkBandwidth")


def _bits(text: str) -> tuple[int, ...]:
    """The numbers of the bits set in `0x00000300,,0x1`, words of 32 bits from the highest."""
    if not text or text.startswith("0xf...f"):
        return ()
    value = 0
    for word in text.split(","):
        value = (value << 32) | (int(word, 16) if word else 0)
    return tuple(bit for bit in range(value.bit_length()) if value >> bit & 1)
