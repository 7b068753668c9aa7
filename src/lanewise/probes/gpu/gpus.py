"""The GPUs that the driver shows: their names, what they can reach, and the conditions they are measured under."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.errors import unknown_name
from lanewise.perf.flow import Flow, names_of
from lanewise.probes.gpu.flows import is_host, is_pair
from lanewise.probes.gpu.telemetry import GpuTelemetry, nvml
from lanewise.probes.machine import SYS, link, text

if TYPE_CHECKING:
    from lanewise._native import Cuda, CudaDevice

HOST_ORDINAL = -1  # host memory, where CUDA numbers its devices
_CAPABILITIES, _NEXT, _EXPRESS = 0x34, 1, 0x10  # the PCI configuration space: first capability, next, PCI Express


class Gpus:
    """The GPUs of the driver `cuda` by name: gpu0 is the first in PCI order, as in `lanewise discover`."""

    def __init__(self, cuda: Cuda, sys: Path = SYS) -> None:
        self.cuda = cuda
        self._sys = sys
        ordered = sorted(cuda.devices, key=lambda device: (device.pci, device.ordinal))
        self._by_name = {f"gpu{i}": device for i, device in enumerate(ordered)}

    def names(self, text: str = "") -> tuple[str, ...]:
        """The GPUs of '0,2', 'gpu[0-3]' or 'gpu1, gpu3', all for an empty text; UnknownName."""
        names = [f"gpu{name}" if name.isdigit() else name for name in names_of(text)] or self._by_name
        return tuple(dict.fromkeys(name for name in names if self.device(name)))

    def device(self, name: str) -> CudaDevice:
        """The GPU of that name; UnknownName."""
        if name not in self._by_name:
            raise unknown_name("GPU", name, self._by_name)
        return self._by_name[name]

    def ordinal_or_host(self, end: str) -> int:
        """The driver's number of one end of a flow, HOST_ORDINAL for host memory; UnknownName."""
        return HOST_ORDINAL if is_host(end) else self.device(end).ordinal

    def host_node(self, flow: Flow) -> int:
        """The NUMA node of a flow's host buffer: the one in its name, else the GPU's own; -1 if neither is known."""
        host, gpu = (flow.src, flow.dst) if is_host(flow.src) else (flow.dst, flow.src)
        if not is_host(host):
            return -1
        _, colon, node = host.partition(":")
        return int(node) if colon else self.device(gpu).numa

    def telemetry(self, flows: Iterable[Flow]) -> GpuTelemetry:
        """Links and clocks of the GPUs at the ends of the flows."""
        ends = {end for flow in flows for end in (flow.src, flow.dst) if not is_host(end)}
        return GpuTelemetry({gpu: self.device(gpu).pci for gpu in sorted(ends)}, self._sys)

    def unreachable(self, flows: Iterable[Flow]) -> str:
        """Why these flows cannot run: a GPU that has to reach another's memory and cannot; '' where all can."""
        for flow in filter(is_pair, flows):
            if flow.sm and not flow.p2p:
                return f"{flow.name}: a kernel reaches another GPU's memory only with P2P"
            starter, peer = (flow.dst, flow.src) if flow.read else (flow.src, flow.dst)
            if flow.p2p and not self.cuda.can_peer(self.device(starter).ordinal, self.device(peer).ordinal):
                return f"{starter} has no peer access to {peer}"
        return ""

    def unheld(self, flows: Sequence[Flow]) -> str:
        """The note on flows whose copies the driver does not queue behind a waiting kernel; '' for others."""
        if self.cuda.holds_staged or not any(is_pair(flow) and not flow.p2p for flow in flows):
            return ""
        return "not released together: the driver waits for a staged copy's turn while it queues it"

    def machine_facts(self) -> dict[str, str]:
        """What a run records of GPUs: driver, GPUs and links; what cannot be read is left out."""
        driver = self.cuda.driver
        facts = {"CUDA driver": f"{driver // 1000}.{driver % 1000 // 10}", "NVIDIA driver": self._nvidia_driver()}
        for name, device in self._by_name.items():
            folder = self._sys / "bus/pci/devices" / device.pci.lower()
            node = f"NUMA node {device.numa}" if device.numa >= 0 else ""
            best = link(folder, "max")
            parts = [device.name, device.pci, f"ordinal {device.ordinal}", node, f"at most {best}" if best else "",
                     _payload(folder)]  # fmt: skip
            facts[name] = ", ".join(part for part in parts if part)
        return {key: text for key, text in facts.items() if text}

    def _nvidia_driver(self) -> str:
        lib = nvml()
        if lib is None:
            return text(self._sys / "module/nvidia/version")
        driver = lib.nvmlSystemGetDriverVersion()
        return driver.decode() if isinstance(driver, bytes) else str(driver)


def _payload(folder: Path) -> str:
    """Max payload and max read request of a PCIe device, from its device control register (root may read it)."""
    try:
        config = (folder / "config").read_bytes()
    except OSError:
        return ""
    at, capabilities = config[_CAPABILITIES] & 0xFC if len(config) > 64 else 0, 48
    while at and at + 10 <= len(config) and capabilities:
        if config[at] == _EXPRESS:
            control = int.from_bytes(config[at + 8 : at + 10], "little")
            return f"max payload {128 << (control >> 5 & 7)} B, read request {128 << (control >> 12 & 7)} B"
        at, capabilities = config[at + _NEXT] & 0xFC, capabilities - 1
    return ""
