"""A host as an NCCL topology file (NCCL_TOPO_FILE), with the links as described or as copies over them are predicted.

NCCL 2.30.7 (src/graph/topo.cc) plans with link_width x the rate of a lane, with `count` NVLinks and with a card's
`speed`. It takes what the file says and fills in what is left out from the machine: ranks, GPUDirect RDMA, CPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from lanewise.collectives.constants import compute_capability
from lanewise.errors import Contradiction, InputError, Unreachable
from lanewise.perf.flow import Flow
from lanewise.perf.predict import predict
from lanewise.routes.paths import cpu_above
from lanewise.topology.model import Device, Kind, Link, LinkKind, System

_SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}  # GT/s
_LANE = {1: 0.1875e9, 2: 0.375e9, 3: 0.75e9, 4: 1.5e9, 5: 3e9, 6: 6e9}  # B/s that NCCL plans with
_CLASSES = {Kind.GPU: "0x030200", Kind.NIC: "0x020000", Kind.SWITCH: "0x060400"}
_NVSWITCH = "0x068000"
_UNSEEN_SWITCH = "fffffff:ffff:ff"  # what NCCL writes of an NVSwitch without an address
_ADDRESS = re.compile(r"(?:0000)?([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)
_RDMA = re.compile(r"(mlx|bnxt_re|irdma|qib|hfi|efa|ibp|roce)\w*")


class LinkRates(StrEnum):
    """What the links of a topology file say: the description, or no more than copies are predicted to reach."""

    DESCRIBED = "described"
    PREDICTED = "predicted"


def topology_file(system: System, host: str | None = None, rates: LinkRates = LinkRates.DESCRIBED) -> str:
    """The NCCL topology file of a host as XML.

    InputError where the system has several hosts and none is named, Contradiction for a GPU or network card without a
    PCI address, by which NCCL knows them.
    """
    names = system.hosts or ("",)
    if host is None and len(names) > 1:
        hint = f"name one: --host {names[0]} (or {', '.join(names[1:4])})"
        raise InputError(f"{system.name} has {len(names)} hosts, a topology file describes one", hint=hint)
    if host is not None and host not in names:
        raise InputError(f"{system.name} has no host '{host}'", hint=f"its hosts: {', '.join(names) or 'one, unnamed'}")
    return _Writer(system, host or (names[0] or None), rates).text()


class _Writer:
    """Writes the CPUs of a host with the PCIe trees below them."""

    def __init__(self, system: System, host: str | None, rates: LinkRates) -> None:
        self._system, self._host, self._rates = system, host, rates
        self._bridges = 0

    def text(self) -> str:
        root = Element("system", version="1", name=self._system.name)
        elements: dict[int, Element] = {}
        for number, cpu in enumerate(self._system.of_kind(Kind.CPU, host=self._host)):
            nodes = self._system.device(cpu).nodes or (number,)
            for link, device in self._below(cpu, None):
                tree = self._tree(link, device)
                if tree is not None:
                    node = device.numa if device.numa in nodes else nodes[0]
                    if node not in elements:
                        elements[node] = SubElement(root, "cpu", numaid=str(node))
                    elements[node].append(tree)
        if not elements:
            hint = "describe them with PCIe links to a CPU of the host"
            raise Unreachable(f"{self._system.name} has no GPU or network card below a CPU", hint=hint)
        indent(root)
        # NCCL's own parser takes the blank before "/>" for an attribute without a name.
        return tostring(root, encoding="unicode").replace(" />", "/>") + "\n"

    def _below(self, upper: str, above: Link | None) -> Iterator[tuple[Link, Device]]:
        for link in self._system.links_at(upper):
            if link.kind is LinkKind.PCIE and link.a == upper and (
                above is None or self._system.forwards(upper, above, link)
            ):  # fmt: skip
                yield link, self._system.device(link.b)

    def _tree(self, link: Link, device: Device) -> Element | None:
        """The device at the lower end of a link with what is below it; None if that holds no GPU or network card."""
        element = Element("pci", {"class": _CLASSES.get(device.kind, "")})
        if device.kind is Kind.SWITCH:
            children = [self._tree(further, lower) for further, lower in self._below(device.name, link)]
            element.extend(child for child in children if child is not None)
            if not len(element):
                return None
        elif device.kind not in (Kind.GPU, Kind.NIC) or device.host != self._host:
            return None
        element.set("busid", self._address(device))
        self._link(element, link, device)
        if device.kind is Kind.GPU:
            element.append(self._gpu(device))
        elif device.kind is Kind.NIC:
            self._cards(element, device)
        return element

    def _address(self, device: Device) -> str:
        address = _address(device)
        if address is not None:
            return address
        if device.kind is Kind.SWITCH:
            self._bridges += 1
            return f"ffff:{self._bridges // 32:02x}:{self._bridges % 32:02x}.0"
        hint = (
            f"write {device.name}: {{{device.kind}: ..., os_names: ['0000:3b:00.0']}}, or let lanewise discover do so"
        )
        raise Contradiction(f"the PCI address of {device.name} is not described, by which NCCL knows it", hint=hint)

    def _link(self, element: Element, link: Link, device: Device) -> None:
        if link.gen is None or link.lanes is None:
            return  # NCCL reads it of the machine
        lanes = link.lanes
        if self._rates is LinkRates.PREDICTED and device.kind is not Kind.SWITCH:
            lanes = max(1, min(lanes, round(self._copies(device.name) / _LANE[link.gen])))
        element.set("link_speed", f"{_SPEEDS[link.gen]} GT/s PCIe")
        element.set("link_width", str(lanes))

    def _copies(self, name: str) -> float:
        """What a lone copy between a device and its CPU reaches in the slower direction, B/s."""
        memory = cpu_above(self._system, name)
        flows = (Flow(memory, name), Flow(name, memory))
        return min(predict(self._system, [flow]).rates[0].rate for flow in flows)

    def _gpu(self, device: Device) -> Element:
        gpu = Element("gpu")
        part = self._system.part(device.name)
        capability = compute_capability(part.text("nvlink.part"), part.name) if part is not None else 0
        if capability:
            gpu.set("sm", str(capability))
        for link in self._system.links_at(device.name):
            far = self._system.device(link.far_end(device.name))
            if link.kind is LinkKind.NVLINK and link.count_known:
                switch = far.kind is Kind.NVSWITCH
                target = (_address(far) or _UNSEEN_SWITCH) if switch else self._address(far)
                SubElement(gpu, "nvlink", target=target, count=str(link.count),
                           tclass=_NVSWITCH if switch else _CLASSES[Kind.GPU])  # fmt: skip
        return gpu

    def _cards(self, element: Element, device: Device) -> None:
        names = [name for name in device.os_names if _RDMA.fullmatch(name)]
        rate = self._system.number(device.name, "net.rate")
        if not names or not rate:
            return
        cables = [link for link in self._system.links_at(device.name) if link.kind is LinkKind.NETWORK]
        rate = min([rate, *(link.rate for link in cables if link.rate)])  # a port may run slower than the card can
        if self._rates is LinkRates.PREDICTED:
            rate = min(rate, self._copies(device.name) / len(names))
        nic = SubElement(element, "nic")
        for name in names:
            SubElement(nic, "net", name=name, speed=str(round(rate * 8 / 1e6)))  # Mb/s


def _address(device: Device) -> str | None:
    """The PCI address of a device with four digits of the domain, as NCCL writes it."""
    matches = (_ADDRESS.fullmatch(name) for name in device.os_names)
    return next((match[1].lower() for match in matches if match), None)
