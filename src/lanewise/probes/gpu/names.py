"""GPUs by name: gpu0 is the first in PCI order, as in `lanewise discover`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.errors import unknown_name
from lanewise.probes.gpu.flows import is_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lanewise._native import CudaDevice
    from lanewise.perf.flow import Flow


class Gpus:
    """The GPUs that the driver shows, by name."""

    def __init__(self, devices: Sequence[CudaDevice]) -> None:
        ordered = sorted(devices, key=lambda device: (device.pci, device.ordinal))
        self.by_name = {f"gpu{i}": device for i, device in enumerate(ordered)}

    def names(self, text: str = "") -> tuple[str, ...]:
        """The GPUs of '0,2', 'gpu[0-3]' or 'gpu1, gpu3', all for an empty text; UnknownName."""
        from lanewise.perf.flow import COMMA
        from lanewise.topology.ranges import expand

        if not text.strip():
            return tuple(self.by_name)
        pieces = [name for piece in COMMA.split(text) if piece.strip() for name in expand(piece.strip())]
        names = [f"gpu{piece}" if piece.isdigit() else piece for piece in pieces]
        for name in names:
            self.device(name)
        return tuple(dict.fromkeys(names))

    def device(self, name: str) -> CudaDevice:
        """The GPU of that name; UnknownName."""
        if name not in self.by_name:
            raise unknown_name("GPU", name, self.by_name)
        return self.by_name[name]

    def ordinal(self, end: str) -> int:
        """The driver's number of one end of a flow, -1 for host memory; UnknownName."""
        return -1 if is_host(end) else self.device(end).ordinal

    def node(self, flow: Flow) -> int:
        """The NUMA node of a flow's host buffer: the one in its name, else the GPU's own; -1 if neither is known."""
        host, gpu = (flow.src, flow.dst) if is_host(flow.src) else (flow.dst, flow.src)
        _, colon, node = host.partition(":")
        if not is_host(host):
            return -1
        return int(node) if colon else self.device(gpu).numa

    def of(self, flows: Iterable[Flow]) -> tuple[str, ...]:
        """The GPUs at the ends of the flows, without repetition."""
        return tuple(dict.fromkeys(end for flow in flows for end in (flow.src, flow.dst) if not is_host(end)))
