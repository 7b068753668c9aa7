"""GPUs and host memory by name: gpu0 comes first in PCI order, as in `lanewise discover`; host0:1 is NUMA node 1."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lanewise.errors import InputError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lanewise._native import CudaDevice
    from lanewise.perf.flow import Flow

HOST = "host0"
ANY_NODE = -1
_HOSTS = ("host", HOST)


class Gpus:
    """The GPUs that the driver shows, by name."""

    def __init__(self, devices: Sequence[CudaDevice]) -> None:
        ordered = sorted(devices, key=lambda device: (device.pci, device.ordinal))
        self.by_name = {f"gpu{i}": device for i, device in enumerate(ordered)}

    def names(self, text: str = "") -> tuple[str, ...]:
        """The GPUs that '0,2', 'gpu[0-3]' or 'gpu1, gpu3' names, all for none; UnknownName for one there is not."""
        from lanewise.topology.ranges import expand

        if not text.strip():
            return tuple(self.by_name)
        pieces = [name for piece in _split(text) for name in expand(piece)]
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
        """The NUMA node asked for in a flow's name, else the GPU's own; -1 where neither is known."""
        host, gpu = (flow.src, flow.dst) if is_host(flow.src) else (flow.dst, flow.src)
        _, colon, node = host.partition(":")
        return int(node) if colon and is_host(host) else self.device(gpu).numa

    def of(self, flows: Iterable[Flow]) -> tuple[str, ...]:
        """The GPUs at the ends of flows, each once."""
        return tuple(dict.fromkeys(end for flow in flows for end in (flow.src, flow.dst) if not is_host(end)))


def is_host(end: str) -> bool:
    """Whether that end of a flow is host memory."""
    return end.partition(":")[0] in _HOSTS


def as_measured(flow: Flow, gpus: Gpus, node: int | None) -> Flow:
    """The flow as rows name it: host0 or host0:1 and known GPUs, on NUMA node `node` where it names none.

    InputError for a flow that cannot be measured: between two hosts, or with a start, weight, cap or repetition.
    """
    _only_what_copies_have(flow)
    src, dst = (_end(end, gpus, node) for end in (flow.src, flow.dst))
    if is_host(src) and is_host(dst):
        hint = "name a GPU at one end; memory copies are measured by: lanewise measure host"
        raise InputError(f"{flow.name} touches no GPU", hint=hint)
    return replace(flow, src=src, dst=dst)


def _end(end: str, gpus: Gpus, node: int | None) -> str:
    if not is_host(end):
        gpus.device(end)
        return end
    _, colon, asked = end.partition(":")
    if colon and not asked.isdigit():
        raise InputError(f"'{end}' names no NUMA node", hint="write host:0, host:1")
    if colon:
        return f"{HOST}:{int(asked)}"
    return HOST if node is None else f"{HOST}:{node}"


def _only_what_copies_have(flow: Flow) -> None:
    stated = {
        "start": flow.start != 0, "weight": flow.weight != 1, "cap": flow.cap != float("inf"), "every": flow.every != 0,
    }  # fmt: skip
    for word, is_stated in stated.items():
        if is_stated:
            hint = "a measured flow may say read, sm and a size; the others are for predict"
            raise InputError(f"{flow.name} has a {word}, which no copy can be given", hint=hint)


def _split(text: str) -> list[str]:
    from lanewise.perf.flow import COMMA

    return [piece.strip() for piece in COMMA.split(text) if piece.strip()]


__all__ = ["ANY_NODE", "HOST", "Gpus", "as_measured", "is_host"]
