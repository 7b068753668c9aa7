"""NCCL topology files: CPUs by NUMA node, bridges that stand for whole switches, GPUs and network cards."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from lanewise.discovery.facts import DumpFacts, address, first, width
from lanewise.discovery.xml import parse
from lanewise.errors import FormatError, Location
from lanewise.topology.speeds import generation

KIND = "NCCL topology"
_NVSWITCH = 0x0680
_GUESS = "nothing: taken as a GPU"


def read_nccl(text: str, file: str) -> DumpFacts:
    """The facts of an NCCL topology file (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE)."""
    root = parse(text, file)
    if root.tag != "system":
        raise FormatError(f"<{root.tag}> is no NCCL topology", location=Location(file), hint="it starts with <system>")
    facts = DumpFacts(file, KIND)
    for number, cpu in enumerate(root.iter("cpu")):
        node = first(cpu.get("numaid", "")) if "numaid" in cpu.attrib else number
        node = number if node is None else node
        facts.add(f"node:{node}", "cpus", True, "cpu numaid")
        for child in cpu:
            if child.tag == "pci":
                _device(child, f"root:node{node}", node, facts)
        if any(nic.tag == "nic" for nic in cpu):
            facts.notes.append(
                f"{facts.file}: a network interface at NUMA node {node} has no PCI address; it is left out"
            )
    guessed = [fact.about for fact in facts.facts if fact.source.what == _GUESS]
    if guessed:
        text = f"does not say what {', '.join(guessed)} are; NCCL lists GPUs and NICs, GPUs are assumed"
        facts.notes.append(f"{facts.file} {text}")
    return facts


def _device(element: Element, parent: str, node: int, facts: DumpFacts) -> None:
    bdf = address(element.get("busid", ""))
    if bdf is None:
        cause = f"'{element.get('busid', '')}' is no PCI address"
        raise FormatError(cause, location=Location(facts.path), hint='write busid="0000:c1:00.0"')
    facts.add(bdf, "parent", parent, "nesting of pci")
    facts.add(bdf, "numa", node, "cpu numaid")
    code = _hex(element.get("class"))
    children = [child for child in element if child.tag == "pci"]
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
        _device(child, bdf, node, facts)
    for link in element.iter("nvlink") if not children else ():
        _nvlink(link, bdf, facts)


def _nvlink(link: Element, bdf: str, facts: DumpFacts) -> None:
    count, code = first(link.get("count", "")) or 1, _hex(link.get("tclass"))
    target = address(link.get("target", ""))
    if target == bdf:
        facts.notes.append(f"{facts.file} says that {bdf} is its own NVLink peer; that is left out")
    elif code is not None and code >> 8 == _NVSWITCH:
        facts.add(f"{bdf}", f"nvswitch:{target}", count, "nvlink to an NVSwitch")
    elif target is not None:
        facts.add_pair(bdf, target, f"NV{count}", "nvlink count")


def _hex(text: str | None) -> int | None:
    try:
        return int(text, 16) if text else None
    except ValueError:
        return None
