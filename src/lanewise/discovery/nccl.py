"""NCCL topology files: CPUs by NUMA node, bridges that stand for whole switches, GPUs and network cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.discovery.facts import Gatherer, Reading, address, first, width
from lanewise.discovery.xml import parse
from lanewise.errors import FormatError, Location
from lanewise.topology.speeds import generation

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

KIND = "NCCL topology"
_NVSWITCH = 0x0680
_GUESS = "nothing: taken as a GPU"


def read_nccl(text: str, file: str) -> Reading:
    """The facts of an NCCL topology file (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE)."""
    root = parse(text, file)
    if root.tag != "system":
        raise FormatError(f"<{root.tag}> is no NCCL topology", location=Location(file), hint="it starts with <system>")
    found = Gatherer(file, KIND)
    for number, cpu in enumerate(root.iter("cpu")):
        node = first(cpu.get("numaid", "")) if "numaid" in cpu.attrib else number
        node = number if node is None else node
        found.say(f"node:{node}", "cpus", True, "cpu numaid")
        for child in cpu:
            if child.tag == "pci":
                _device(child, f"root:node{node}", node, found)
        if any(nic.tag == "nic" for nic in cpu):
            found.notes.append(
                f"{found.file}: a network interface at NUMA node {node} has no PCI address; it is left out"
            )
    guessed = [fact.about for fact in found.facts if fact.source.what == _GUESS]
    if guessed:
        text = f"does not say what {', '.join(guessed)} are; NCCL lists GPUs and NICs, GPUs are assumed"
        found.notes.append(f"{found.file} {text}")
    return found.done()


def _device(element: Element, parent: str, node: int, found: Gatherer) -> None:
    here = address(element.get("busid", ""))
    if here is None:
        cause = f"'{element.get('busid', '')}' is no PCI address"
        raise FormatError(cause, location=Location(found.path), hint='write busid="0000:c1:00.0"')
    found.say(here, "parent", parent, "nesting of pci")
    found.say(here, "numa", node, "cpu numaid")
    code = _hex(element.get("class"))
    children = [child for child in element if child.tag == "pci"]
    if code is not None:
        found.say(here, "class", code >> 8, "pci class")
    elif not children:
        found.say(here, "class", 0x0302, _GUESS)
    for key in ("vendor", "device"):
        value = _hex(element.get(key))
        found.say(here, key, None if value == 0xFFFF else value, f"pci {key}")
    found.say(here, "gen", generation(element.get("link_speed", "")), "pci link_speed")
    found.say(here, "lanes", width(element.get("link_width", "")), "pci link_width")
    if children or (code is not None and code >> 8 == 0x0604):
        found.say(here, "port", "switch", "pci with pci below")
    for child in children:
        _device(child, here, node, found)
    for link in element.iter("nvlink") if not children else ():
        _nvlink(link, here, found)


def _nvlink(link: Element, here: str, found: Gatherer) -> None:
    count, code = first(link.get("count", "")) or 1, _hex(link.get("tclass"))
    target = address(link.get("target", ""))
    if target == here:
        found.notes.append(f"{found.file} says that {here} is its own NVLink peer; that is left out")
    elif code is not None and code >> 8 == _NVSWITCH:
        found.say(f"{here}", f"nvswitch:{target}", count, "nvlink to an NVSwitch")
    elif target is not None:
        found.pair(here, target, f"NV{count}", "nvlink count")


def _hex(text: str | None) -> int | None:
    try:
        return int(text, 16) if text else None
    except ValueError:
        return None
