"""A measuring session: the driver, GPUs by name, the options, and how many bytes each flow copies."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.errors import CannotMeasure
from lanewise.probes.gpu.cases import QUERY, Measurement, Technique
from lanewise.probes.gpu.flows import ANY_NODE, is_host, is_pair, touches_host
from lanewise.probes.gpu.telemetry import GpuTelemetry
from lanewise.probes.machine import SYS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from lanewise._native import Cuda, CudaFlow
    from lanewise.options.measure_gpu import MeasureGpuOptions
    from lanewise.perf.flow import Flow
    from lanewise.probes.gpu.names import Gpus

MIB = 2**20
# Large enough that the gap between two copies (some 2 us) is below 0.2 % of one, and beyond any cache of a CPU or GPU.
HOST_COPY, DEVICE_COPY = 256 * MIB, 512 * MIB
# How a flow with a size is divided, as its rate while others run shows only in whole copies.
PIECES, PIECE = 16, 4 * MIB
STAGED_COPY = 128 * MIB  # the driver splits these into many commands, and only so many wait behind the hold


@dataclass(frozen=True, slots=True)
class CopyJob:
    """A flow and the bytes of one copy of it; `copies` 0: it goes on as long as the others.

    `duplex`: one kernel copies this flow and the opposite one, as two kernels would hinder each other.
    """

    flow: Flow
    bytes: int
    copies: int = 0
    node: int = ANY_NODE
    duplex: bool = False


@dataclass(slots=True)
class GpuSession:
    """The driver, GPUs by name, the options; `host_copy_rates` are those of large copies by GPU, for comparison."""

    cuda: Cuda
    gpus: Gpus
    options: MeasureGpuOptions
    make_flow: Callable[..., CudaFlow]
    most_copies: int
    sys: Path = SYS
    host_copy_rates: dict[str, list[float]] = field(default_factory=dict)

    def at_size(self, size: int) -> GpuSession:
        """The same session with copies of `size` bytes."""
        return replace(self, options=replace(self.options, bytes=size, sizes=(), sweep=False))

    def jobs(self, measurement: Measurement) -> list[CopyJob]:
        """What each flow of a measurement copies."""
        jobs = [self._job(flow) for flow in measurement.flows]
        duplex = duplex_jobs(jobs)
        return [replace(job, duplex=i in duplex) for i, job in enumerate(jobs)]

    def _job(self, flow: Flow) -> CopyJob:
        on_host = touches_host(flow)
        size = self.options.bytes or (HOST_COPY if on_host else DEVICE_COPY if flow.p2p else STAGED_COPY)
        node = self.gpus.node(flow)
        if flow.size is None:
            return CopyJob(flow, size, 0, node)
        pieces = 1 if self.options.bytes else min(PIECES, flow.size // PIECE)
        copies = min(self.most_copies, max(1, math.ceil(flow.size / size), int(pieces)))
        return CopyJob(flow, max(1, round(flow.size / copies)), copies, node)

    def native(self, job: CopyJob, copies: int) -> CudaFlow:
        """The flow as the driver takes it."""
        flow = job.flow
        return self.make_flow(
            src=self.gpus.ordinal(flow.src), dst=self.gpus.ordinal(flow.dst), bytes=job.bytes, copies=copies,
            node=job.node, sm=flow.sm, read=flow.read, p2p=flow.p2p, duplex=job.duplex,
        )  # fmt: skip

    def telemetry(self, measurement: Measurement) -> GpuTelemetry:
        """Links and clocks of the GPUs at the ends of its flows."""
        return GpuTelemetry({gpu: self.gpus.device(gpu).pci for gpu in self.gpus.of(measurement.flows)}, self.sys)

    def unreachable(self, measurement: Measurement) -> str:
        """Why it cannot run: a GPU that has to reach another's memory and cannot; '' where all can."""
        for flow in measurement.flows:
            if is_pair(flow) and flow.sm and not flow.p2p:
                return f"{flow.name}: a kernel reaches another GPU's memory only with P2P"
            if not is_pair(flow) or not flow.p2p:
                continue
            starter, peer = (flow.dst, flow.src) if flow.read else (flow.src, flow.dst)
            if not self.cuda.can_peer(self.gpus.ordinal(starter), self.gpus.ordinal(peer)):
                return f"{starter} has no peer access to {peer}"
        return ""

    def unheld(self, measurement: Measurement) -> str:
        """The note of a measurement whose copies the driver does not let be held; '' of others."""
        if self.cuda.holds_staged or not any(is_pair(flow) and not flow.p2p for flow in measurement.flows):
            return ""
        return "not released together: the driver waits for a staged copy's turn while it queues it"

    def check_memory(self, measurements: Sequence[Measurement]) -> None:
        """CannotMeasure for the first one whose buffers do not fit a GPU, with what it needs and what is free."""
        gpus = self.gpus.of(flow for measurement in measurements for flow in measurement.flows)
        free = {name: self.gpus.device(name).free for name in gpus}
        for measurement in measurements:
            for gpu, size in self._needs(measurement).items():
                if size > free[gpu]:
                    needed, available = (units.show(amount, "GiB", 3) for amount in (size, free[gpu]))
                    cause = f"{measurement.scenarios[0]} needs {needed} of {gpu}'s memory, and {available} are free"
                    raise CannotMeasure(cause, hint="ask for smaller copies (--bytes), or free memory of that GPU")

    def _needs(self, measurement: Measurement) -> dict[str, int]:
        if measurement.technique is Technique.QUERIES:
            return {measurement.flows[0].dst: measurement.batch * QUERY}
        if measurement.technique is not Technique.COPIES:
            return {}
        needs: dict[str, int] = {}
        session = self.at_size(max(self.options.copy_sizes)) if self.options.copy_sizes else self
        for job in session.jobs(measurement):
            for end in (job.flow.src, job.flow.dst):
                if not is_host(end):
                    needs[end] = needs.get(end, 0) + job.bytes
        return needs


def duplex_jobs(jobs: Sequence[CopyJob]) -> set[int]:
    """The indices of jobs that a kernel copies from a host to a GPU, each with one of as many copies back."""
    paired: set[int] = set()
    for i, inbound in enumerate(jobs):
        if not (inbound.flow.sm and is_host(inbound.flow.src)):
            continue
        for k, back in enumerate(jobs):
            same = (inbound.bytes, inbound.copies, inbound.flow.dst) == (back.bytes, back.copies, back.flow.src)
            if same and back.flow.sm and is_host(back.flow.dst) and k not in paired:
                paired |= {i, k}
                break
    return paired
