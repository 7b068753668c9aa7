"""Machines as XML: hwloc's export (lstopo --of xml) and NCCL's topology files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree.ElementTree import Element, ParseError, fromstring

from lanewise.discovery.facts import DumpFacts, address, first, width
from lanewise.errors import FormatError, Location
from lanewise.topology.speeds import generation
from lanewise.units import whole

_TYPE = re.compile(r"([0-9a-f]{4})(?:\s+\[([0-9a-f]{4}):([0-9a-f]{4})\])?", re.IGNORECASE)
_BUS = re.compile(r"([0-9a-f]{4,8}):\[([0-9a-f]{2})-", re.IGNORECASE)
_NVSWITCH = 0x0680
_NETWORK = "2"
# Names that the kernel or udev make of a hardware address.
_HARDWARE_NAME = re.compile(r"[a-z]+x[0-9a-f]{12,16}")
_AMD, _BASE_FAMILY = "AuthenticAMD", 15
_GUESS = "nothing: taken as a GPU"
_DEEPEST = 200
# Of a PCI link, GB/s; and how many hexadecimal letters a set of CPUs has at most (65,536 CPUs).
_FASTEST, _LONGEST_SET = 1e6, 20_000


def read_hwloc(text: str, file: str) -> DumpFacts:
    """The facts of an hwloc export, version 1 to 3."""
    root = _parse(text, file, "topology", "hwloc export")
    facts = DumpFacts(file, "hwloc XML")
    try:
        _read_objects(root, facts)
    except ValueError as error:
        hint = "is the export complete? write it again with lstopo"
        raise FormatError(f"a number in it is none: {error}", location=Location(file), hint=hint) from None
    if any(fact.key == "speed_now" for fact in facts.facts):
        facts.notes.append(f"{facts.file}: hwloc gives the bandwidth of a link as it was, not what it can do")
    return facts


def _read_objects(root: Element, facts: DumpFacts) -> None:
    owners: dict[str, str] = {}
    for child in root.iter("object"):
        _hwloc_processor(child, facts)
    for child in root.findall("object"):
        _walk(child, "", (), facts, owners)
    _bandwidths(root, owners, facts)


def _hwloc_processor(element: Element, facts: DumpFacts) -> None:
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
        _hwloc_function(element, bdf, parent, nodes, facts)
        parent = bdf
    for name in (element.get("id"), f"obj{element.get('gp_index', '')}"):
        if name and parent and kind in ("Bridge", "PCIDev", "OSDev"):
            owners[name] = parent
        elif name and kind == "Package" and nodes:
            owners[name] = f"node:{nodes[0]}"
    for child in element.findall("object"):
        _walk(child, parent, nodes, facts, owners)


def _hwloc_function(element: Element, bdf: str, parent: str, nodes: tuple[int, ...], facts: DumpFacts) -> None:
    words = _TYPE.match(element.get("pci_type", ""))
    known = words is not None and words[2] != "0000"  # zeros where the configuration space was closed
    if words and (known or words[2] is None):
        facts.add(bdf, "class", int(words[1], 16), "pci_type")
    if words and words[2] and known:
        facts.add(bdf, "vendor", int(words[2], 16), "pci_type")
        facts.add(bdf, "device", int(words[3], 16), "pci_type")
    facts.add(bdf, "parent", parent, "nesting of Bridge")
    facts.add(bdf, "numa", nodes[0] if nodes else None, "nodeset")
    names = {info.get("name", ""): info.get("value", "") for info in element.findall("info")}
    facts.add(bdf, "name", " ".join(filter(None, (names.get("PCIVendor"), names.get("PCIDevice")))), "PCIDevice")
    facts.add(bdf, "name", "NVSwitch" if element.get("subtype") == "NVSwitch" else None, "subtype")
    speed = float(element.get("pci_link_speed", "0") or 0)
    if not 0 <= speed < _FASTEST:
        raise ValueError(f"pci_link_speed {speed} of {bdf}")
    facts.add(bdf, "speed_now", speed or None, "pci_link_speed")
    interfaces: list[str] = []
    for device in element.findall("object"):
        name = device.get("name", "")
        if re.fullmatch(r"(mlx|bnxt_re|irdma|qib|hfi|efa|ibp|rocep)[\w_]*|nvme\d+(n\d+)?", name):
            facts.add(bdf, "alias", name, "OSDev name")
        elif device.get("osdev_type") == _NETWORK and not _HARDWARE_NAME.fullmatch(name):
            interfaces.append(name)
    facts.add(bdf, "netdev", " ".join(interfaces), "OSDev name")


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
    if len(text) > _LONGEST_SET:
        raise ValueError(f"a set of CPUs of {len(text):,} letters")
    words = [int(word, 16) if word else 0 for word in text.split(",")]
    bits = "".join(f"{word & 0xFFFFFFFF:032b}" for word in words)[::-1]
    return tuple(bit for bit, one in enumerate(bits) if one == "1")


def read_nccl(text: str, file: str) -> DumpFacts:
    """The facts of an NCCL topology file (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE)."""
    root = _parse(text, file, "system", "NCCL topology")
    facts = DumpFacts(file, "NCCL topology")
    for number, cpu in enumerate(root.iter("cpu")):
        node = first(cpu.get("numaid", "")) if "numaid" in cpu.attrib else number
        node = number if node is None else node
        facts.add(f"node:{node}", "cpus", True, "cpu numaid")
        family, model = (whole(cpu.get(key, "")) for key in ("familyid", "modelid"))
        if family is not None and model is not None:
            vendor = cpu.get("vendor", "")
            # NCCL shifts the extended family by four bits; the files of clouds state the family itself.
            if vendor == _AMD and family > _BASE_FAMILY and (family - _BASE_FAMILY) % 16 == 0:
                family = _BASE_FAMILY + (family - _BASE_FAMILY) // 16
            facts.add(f"node:{node}", "cpu_id", f"{vendor} {family} {model}", "cpu familyid")
        for child in cpu.findall("pci"):
            _nccl_device(child, f"root:node{node}", node, facts)
        if cpu.find("nic") is not None:
            note = f"a network interface at NUMA node {node} has no PCI address; it is left out"
            facts.notes.append(f"{facts.file}: {note}")
    guessed = [fact.about for fact in facts.facts if fact.source.what == _GUESS]
    if guessed:
        text = f"does not say what {', '.join(guessed)} are; NCCL lists GPUs and NICs, GPUs are assumed"
        facts.notes.append(f"{facts.file} {text}")
    return facts


def _nccl_device(element: Element, parent: str, node: int, facts: DumpFacts) -> None:
    bdf = address(element.get("busid", ""))
    if bdf is None:
        cause = f"'{element.get('busid', '')}' is no PCI address"
        raise FormatError(cause, location=Location(facts.path), hint='write busid="0000:c1:00.0"')
    facts.add(bdf, "parent", parent, "nesting of pci")
    facts.add(bdf, "numa", node, "cpu numaid")
    code = _hex(element.get("class"))
    children = element.findall("pci")
    if code is not None:
        facts.add(bdf, "class", code >> 8, "pci class")
    elif not children:
        facts.add(bdf, "class", 0x0302, _GUESS)
    for key in ("vendor", "device"):
        value = _hex(element.get(key))
        facts.add(bdf, key, None if value == 0xFFFF else value, f"pci {key}")
    facts.add(bdf, "gen", generation(element.get("link_speed", "")), "pci link_speed")
    facts.add(bdf, "lanes", width(element.get("link_width", "")), "pci link_width")
    if children or (code is not None and code >> 8 == 0x0604):
        facts.add(bdf, "port", "switch", "pci with pci below")
    for child in children:
        _nccl_device(child, bdf, node, facts)
    for net in element.iter("net") if not children else ():
        name = net.get("name", "")
        facts.add(bdf, "alias", None if _HARDWARE_NAME.fullmatch(name) else name, "net name")
        speed = whole(net.get("speed", ""))  # Mb/s; some cards state -1
        facts.add(bdf, "rate", f"{speed / 1000:g} Gb/s" if speed is not None and speed > 0 else None, "net speed")
    for link in element.iter("nvlink") if not children else ():
        _nccl_nvlink(link, bdf, facts)


def _nccl_nvlink(link: Element, bdf: str, facts: DumpFacts) -> None:
    count, code = first(link.get("count", "")) or 1, _hex(link.get("tclass"))
    target = address(link.get("target", ""))
    if target == bdf:
        facts.notes.append(f"{facts.file} says that {bdf} is its own NVLink peer; that is left out")
    elif code is not None and code >> 8 == _NVSWITCH:
        facts.add(bdf, f"nvswitch:{target}", count, "nvlink to an NVSwitch")
    elif target is not None:
        facts.add_pair(bdf, target, f"NV{count}", "nvlink count")


def _hex(text: str | None) -> int | None:
    try:
        return int(text, 16) if text else None
    except ValueError:
        return None


def _parse(text: str, file: str, tag: str, kind: str) -> Element:
    """The root element of that tag; FormatError if the text is no XML of that kind or defines entities."""
    entity = re.search(r"<!ENTITY", text, re.IGNORECASE)
    if entity:
        line = text.count("\n", 0, entity.start()) + 1
        hint = "dumps of machines have none; take them out"
        raise FormatError("the XML defines entities, which are not expanded", location=Location(file, line), hint=hint)
    try:
        root = fromstring(text)
    except ParseError as error:
        line, column = error.position
        hint = "is the dump complete? write it again"
        cause = f"not well-formed XML: {error.msg}"
        raise FormatError(cause, location=Location(file, line, column + 1), hint=hint) from None
    except ValueError as error:
        hint = "write the dump again as UTF-8"
        raise FormatError(f"not readable XML: {error}", location=Location(file), hint=hint) from None
    level = [root]
    for _ in range(_DEEPEST):
        level = [child for element in level for child in element]
    if level:
        hint = "no machine nests so many bridges; write the dump again"
        raise FormatError(f"nested more than {_DEEPEST} deep", location=Location(file), hint=hint)
    if root.tag != tag:
        raise FormatError(f"<{root.tag}> is no {kind}", location=Location(file), hint=f"it starts with <{tag}>")
    return root
