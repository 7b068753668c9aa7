"""The CUDA probe: copies between hosts and GPUs, measured. Latency by pointer chase and by launch, queries gathered.

How a number is got: all copies of all flows queued behind a held kernel, released at once and timed by device events;
each path warmed up; at least five samples, more until the median's interval is narrow; data compared outside the timed
part; host buffers on the GPU's own NUMA node unless asked otherwise, their pages verified.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.errors import CannotMeasure, InputError, MissingDependency
from lanewise.installed import cuda_driver
from lanewise.probes.gpu.cases import DEFAULT, Case, Cell, Kind, cells, pick
from lanewise.probes.gpu.conditions import conditions
from lanewise.probes.gpu.names import Gpus, as_measured
from lanewise.probes.gpu.session import Bench, GpuAsk
from lanewise.probes.machine import SYS, in_words, needs_linux
from lanewise.results.observation import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from lanewise._native import Cuda, CudaFlow
    from lanewise.perf.flow import Flow
    from lanewise.results.sample import Sample

SWEEP = tuple(4**i for i in range(6, 16))  # 4 KiB to 1 GiB
_SWEPT = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_write_ce",
          "device_to_device_memcpy_no_p2p")  # fmt: skip


class GpuProbe:
    """Measures what is asked of the GPUs that the driver shows."""

    source = Source.MEASURED

    def __init__(self, cuda: Cuda, make_flow: Callable[..., CudaFlow] | None = None, sys: Path = SYS) -> None:
        from lanewise import _native

        self.cuda = cuda
        self.gpus = Gpus(cuda.devices)
        self._make_flow = make_flow or _native.CudaFlow
        self._most_copies = _native.CUDA_MOST_COPIES
        self._sys = sys

    def conditions(self) -> dict[str, str]:
        """What the measurements were made on and under, for a run's `machine`."""
        return conditions(self.gpus, self.cuda.driver, self._sys)

    def plan(self, ask: GpuAsk) -> list[Cell]:
        """What is to be measured, in order; InputError, UnknownName or CannotMeasure for what cannot be."""
        _check(ask)
        gpus = self.gpus.names(ask.devices)
        found: list[Cell] = []
        if ask.flows:
            typed = ", ".join(_typed(flow) for flow in ask.flows)
            flows = tuple(replace(flow, p2p=flow.p2p and ask.p2p) for flow in ask.flows)
            found.append(self._named(Cell((typed,), flows, makespan=not ask.sizes), ask))
        chosen = pick(ask.cases or (() if ask.flows else _SWEPT if ask.sizes else DEFAULT))
        if any(case.kind is Kind.QUERIES for case in chosen):
            chosen = pick([*(case.name for case in chosen), "host_to_device_memcpy_ce"])  # what shares are of
        found += [self._named(cell, ask) for cell in cells(chosen, gpus, ask.p2p)]
        if not found:
            cause = f"{', '.join(case.name for case in chosen)}: no two GPUs among {', '.join(gpus)}"
            raise CannotMeasure(cause, hint="name cases of one GPU: lanewise measure gpu --list")
        return found

    def _named(self, cell: Cell, ask: GpuAsk) -> Cell:
        return replace(cell, flows=tuple(as_measured(flow, self.gpus, ask.node) for flow in cell.flows))

    def samples(self, ask: GpuAsk) -> Iterator[Sample]:
        """Every sample as soon as it is there; closing the iterator frees what it holds."""
        from lanewise.probes.gpu.copies import copies, sweep
        from lanewise.probes.gpu.small import chase, launch, queries

        plan = self.plan(ask)
        bench = Bench(self.cuda, self.gpus, ask, self._make_flow, self._most_copies, self._sys)
        ways = {Kind.COPIES: sweep if ask.sizes else copies, Kind.CHASE: chase, Kind.LAUNCH: launch,
                Kind.QUERIES: queries}  # fmt: skip
        with in_words():
            bench.check_memory(plan)
            for cell in plan:
                yield from ways[cell.kind](cell, bench)


def open_gpus(library: str = "") -> GpuProbe:
    """A probe over the CUDA driver; MissingDependency where there is none or it shows no GPU.

    `library` is the driver's file, else that of `installed.cuda_driver`.
    """
    needs_linux("copies of GPUs")
    from lanewise._native import Cuda, ProbeFailure

    try:
        return GpuProbe(Cuda(library or cuda_driver()))
    except ProbeFailure as error:
        cause, hint = (*error.args, "")[:2]
        raise MissingDependency(cause, hint=hint or "see what is installed: lanewise doctor") from None


def left_out(cases: Sequence[Case], planned: Sequence[Cell]) -> list[str]:
    """Cases that were asked for and have nothing to measure here, for want of a second GPU."""
    there = {scenario for cell in planned for scenario in cell.scenarios}
    return [case.name for case in cases if case.name not in there]


def _check(ask: GpuAsk) -> None:
    if ask.bytes < 0 or (ask.sizes and min(ask.sizes) <= 0):
        raise InputError("a copy has at least one byte", hint="for example --bytes '64 MiB'")
    sized = [flow.name for flow in ask.flows if flow.size is not None]
    if ask.sizes and sized:
        raise InputError(f"{sized[0]} has a size, and a sweep takes many", hint="leave the size out, or --sweep")
    if any(flow.size == 0 for flow in ask.flows):
        raise InputError("a flow of no bytes cannot be timed", hint="leave the size out, or give one above zero")


def _typed(flow: Flow) -> str:
    return flow.name + " read" * flow.read + " sm" * flow.sm + (f" {_volume(flow.size)}" if flow.size else "")


def _volume(size: float) -> str:
    """Bytes in the largest unit that holds them whole, as users type them: no separators."""
    for unit in ("GiB", "MiB", "KiB"):
        if units.from_si(size, unit).is_integer():
            return f"{units.from_si(size, unit):.0f} {unit}"
    return f"{size:.0f} B"


__all__ = ["SWEEP", "GpuProbe", "left_out", "open_gpus"]
