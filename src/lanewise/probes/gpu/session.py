"""What measuring any cell of GPU copies needs: the driver, GPUs by name, sizes, and the words for how it was done."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.errors import CannotMeasure
from lanewise.perf.flow import Flow
from lanewise.probes.gpu.cases import QUERY, Cell, Kind
from lanewise.probes.gpu.names import ANY_NODE, Gpus, is_host
from lanewise.probes.gpu.telemetry import Watch
from lanewise.probes.machine import SYS, UNKNOWN, where
from lanewise.results.estimate import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from lanewise._native import Cuda, CudaFlow

MIB = 2**20
# Large enough that the gap between two copies (some 2 us) is below 0.2 % of one, and beyond any cache of a CPU or GPU.
HOST_COPY, DEVICE_COPY = 256 * MIB, 512 * MIB
# What a flow with a size is cut into, as its rate while others run shows only in whole copies.
PIECES, PIECE = 16, 4 * MIB
STAGED_COPY = 128 * MIB  # the driver cuts these into many commands, and only so many wait behind the hold


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """What to measure: `flows` typed by the user, and `cases` by name, set or pattern (neither: the default set).

    `devices` are names of GPUs (none: all); `bytes` of one copy (0: 256 MiB from or to a host,
    512 MiB between GPUs, 128 MiB where the driver stages); `node`
    the host memory's NUMA node (None: the GPU's own); without `p2p` two GPUs go through host memory; `sizes` are those
    of a sweep, with a fit of latency and bandwidth.
    """

    flows: tuple[Flow, ...] = ()
    cases: tuple[str, ...] = ()
    devices: str = ""
    bytes: int = 0
    node: int | None = None
    p2p: bool = True
    sizes: tuple[int, ...] = ()
    # Half a percent for the median, as results are compared to one percent; each sample takes 20 to 40 ms.
    rule: Rule = field(default_factory=lambda: Rule(least=5, most=15, width=0.005))


@dataclass(frozen=True, slots=True)
class Job:
    """A flow and what one copy of it is: `copies` 0 where it goes on as long as the others.

    `both`: one kernel copies it and the flow the other way, as two kernels hinder each other.
    """

    flow: Flow
    bytes: int
    copies: int = 0
    node: int = ANY_NODE
    both: bool = False


@dataclass(slots=True)
class Bench:
    """The driver with what was asked; `peaks` holds large host-to-device copies in GB/s by GPU, for comparison."""

    cuda: Cuda
    gpus: Gpus
    ask: GpuAsk
    make_flow: Callable[..., CudaFlow]
    most_copies: int
    sys: Path = SYS
    peaks: dict[str, list[float]] = field(default_factory=dict)

    def at_size(self, size: int) -> Bench:
        """The same bench with copies of `size` bytes."""
        return replace(self, ask=replace(self.ask, bytes=size))

    def jobs(self, cell: Cell) -> list[Job]:
        """What each flow of a cell copies."""
        jobs = [self._job(flow) for flow in cell.flows]
        both = both_ways(jobs)
        return [replace(job, both=i in both) for i, job in enumerate(jobs)]

    def _job(self, flow: Flow) -> Job:
        on_host = touches_host(flow)
        size = self.ask.bytes or (HOST_COPY if on_host else DEVICE_COPY if flow.p2p else STAGED_COPY)
        node = self.gpus.node(flow) if on_host else ANY_NODE
        if flow.size is None:
            return Job(flow, size, 0, node)
        pieces = 1 if self.ask.bytes else min(PIECES, flow.size // PIECE)
        copies = min(self.most_copies, max(1, math.ceil(flow.size / size), int(pieces)))
        return Job(flow, max(1, round(flow.size / copies)), copies, node)

    def native(self, job: Job, copies: int) -> CudaFlow:
        """The flow as the driver is asked for it."""
        src, dst = self.gpus.ordinal(job.flow.src), self.gpus.ordinal(job.flow.dst)
        flow = job.flow
        return self.make_flow(
            src=src, dst=dst, bytes=job.bytes, copies=copies, node=job.node, sm=flow.sm, read=flow.read, p2p=flow.p2p,
            both=job.both,
        )  # fmt: skip

    def watch(self, flows: Sequence[Flow]) -> Watch:
        """Links and clocks of the GPUs at the ends of these flows."""
        return Watch({gpu: self.gpus.device(gpu).pci for gpu in self.gpus.of(flows)}, self.sys)

    def no_peer(self, cell: Cell) -> str:
        """Why a cell cannot run: a GPU that has to reach another's memory and cannot; '' where all can."""
        for flow in cell.flows:
            if is_pair(flow) and flow.sm and not flow.p2p:
                return f"{flow.name}: a kernel reaches another GPU's memory only with P2P"
            if not is_pair(flow) or not flow.p2p:
                continue
            by, other = (flow.dst, flow.src) if flow.read else (flow.src, flow.dst)
            if not self.cuda.can_peer(self.gpus.ordinal(by), self.gpus.ordinal(other)):
                return f"{by} has no peer access to {other}"
        return ""

    def unheld(self, cell: Cell) -> str:
        """What is to be noted of a cell whose copies the driver does not let be held; '' of others."""
        if self.cuda.holds_staged or not any(is_pair(flow) and not flow.p2p for flow in cell.flows):
            return ""
        return "not released together: the driver waits for a staged copy's turn while it queues it"

    def check_memory(self, cells: Sequence[Cell]) -> None:
        """CannotMeasure for the first cell whose buffers a GPU has no room for, with what is asked and what is free."""
        free = {name: self.gpus.device(name).free for name in self.gpus.of([f for c in cells for f in c.flows])}
        for cell in cells:
            for gpu, asked in self._needs(cell).items():
                if asked > free[gpu]:
                    shown = [units.show(size, "GiB", 3) for size in (asked, free[gpu])]
                    cause = f"{cell.scenarios[0]} needs {shown[0]} of {gpu}'s memory, and {shown[1]} are free"
                    raise CannotMeasure(cause, hint="ask for smaller copies (--bytes), or free memory of that GPU")

    def _needs(self, cell: Cell) -> dict[str, int]:
        needs: dict[str, int] = {}
        sizes = self.ask.sizes or (0,)
        bench = self.at_size(max(sizes)) if self.ask.sizes and cell.kind is Kind.COPIES else self
        for job in bench.jobs(cell) if cell.kind is Kind.COPIES else ():
            for end in (job.flow.src, job.flow.dst):
                if not is_host(end):
                    needs[end] = needs.get(end, 0) + job.bytes
        if cell.kind is Kind.QUERIES:
            needs[cell.flows[0].dst] = cell.batch * QUERY
        return needs


def both_ways(jobs: Sequence[Job]) -> set[int]:
    """The places of those that a kernel copies from a host to a GPU, each with one of as many copies back."""
    found: set[int] = set()
    for i, there in enumerate(jobs):
        if not (there.flow.sm and is_host(there.flow.src)):
            continue
        for k, back in enumerate(jobs):
            same = (there.bytes, there.copies, there.flow.dst) == (back.bytes, back.copies, back.flow.src)
            if same and back.flow.sm and is_host(back.flow.dst) and k not in found:
                found |= {i, k}
                break
    return found


def touches_host(flow: Flow) -> bool:
    """Whether host memory is at one end."""
    return is_host(flow.src) or is_host(flow.dst)


def is_pair(flow: Flow) -> bool:
    """Whether it joins two GPUs."""
    return not touches_host(flow) and flow.src != flow.dst


def engine(flow: Flow) -> str:
    """What copies."""
    return "SM" if flow.sm else "copy engine"


def path(flow: Flow) -> str:
    """The kind of path, in the words of predictions as far as the driver tells it."""
    if is_host(flow.src):
        return "host to device"
    if is_host(flow.dst):
        return "device to host"
    if flow.src == flow.dst:
        return "GPU memory"
    return "peer" if flow.p2p else "peer, staged"


def ran_together(flows: Sequence[Flow]) -> dict[str, str]:
    """What a sample's `how` says of all flows that ran together, in the notation that predict reads."""
    how = {}
    if all(flow.src != flow.dst for flow in flows):
        how["flows"] = ", ".join(flow.name + " read" * flow.read + " sm" * flow.sm for flow in flows)
    pairs = [flow for flow in flows if is_pair(flow)]
    if pairs:
        how["p2p"] = "on" if all(flow.p2p for flow in pairs) else "off"
    return how


def where_pages_lie(pages: Mapping[int, int], asked: int) -> tuple[str, str]:
    """How the NUMA node of a host buffer is recorded, and a note where its pages lie elsewhere than asked."""
    text = where(pages)
    if text == UNKNOWN:
        return text, "the kernel does not say where the host buffer's pages lie"
    if asked == ANY_NODE or text == str(asked):
        return text, ""
    return f"{text} (asked {asked})", f"host buffer on NUMA node {text}, not on {asked} as asked"


__all__ = ["Bench", "GpuAsk", "Job", "engine", "is_pair", "path", "ran_together", "touches_host", "where_pages_lie"]
