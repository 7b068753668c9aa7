"""The CUDA probe: copies between hosts and GPUs, latency by pointer chase and by launch, scattered queries.

All copies of all flows are queued behind a held kernel, released at once and timed by device events. Each path is warm,
and its data compared outside the timed part. Host buffers lie on the GPU's own NUMA node unless the options name
another, and their pages are verified.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lanewise.errors import CannotMeasure, MissingDependency
from lanewise.installed import cuda_driver
from lanewise.perf.flow import parse_flows
from lanewise.probes.gpu import cases
from lanewise.probes.gpu.cases import Measurement, Technique
from lanewise.probes.gpu.conditions import conditions
from lanewise.probes.gpu.flows import check_sizes, measured_flow, typed_text
from lanewise.probes.gpu.names import Gpus
from lanewise.probes.gpu.session import GpuSession
from lanewise.probes.machine import SYS, native_errors, needs_linux
from lanewise.results.observation import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from lanewise._native import Cuda, CudaFlow
    from lanewise.options.measure_gpu import MeasureGpuOptions
    from lanewise.perf.flow import Flow
    from lanewise.probes.gpu.cases import GpuCase
    from lanewise.results.sample import Sample

_SWEEP_CASES = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_write_ce",
                "device_to_device_memcpy_no_p2p")  # fmt: skip


class GpuProbe:
    """Measures copies of the GPUs that the driver shows."""

    source = Source.MEASURED

    def __init__(self, cuda: Cuda, make_flow: Callable[..., CudaFlow] | None = None, sys: Path = SYS) -> None:
        from lanewise import _native

        self.cuda = cuda
        self.gpus = Gpus(cuda.devices)
        self._make_flow = make_flow or _native.CudaFlow
        self._most_copies = _native.CUDA_MOST_COPIES
        self._sys = sys

    def conditions(self) -> dict[str, str]:
        """Driver, GPUs and links, for a run's `machine`."""
        return conditions(self.gpus, self.cuda.driver, self._sys)

    def run(self, plan: MeasureGpuOptions) -> Iterator[Sample]:
        """Each sample as soon as it is taken; closing the iterator frees buffers and streams."""
        from lanewise.probes.gpu.copies import copies, sweep
        from lanewise.probes.gpu.latency import chase, launch
        from lanewise.probes.gpu.queries import queries

        measurements = self.measurements(plan)
        session = GpuSession(self.cuda, self.gpus, plan, self._make_flow, self._most_copies, self._sys)
        measure = {Technique.COPIES: sweep if plan.copy_sizes else copies, Technique.CHASE: chase,
                   Technique.LAUNCH: launch, Technique.QUERIES: queries}  # fmt: skip
        with native_errors():
            session.check_memory(measurements)
            for measurement in measurements:
                yield from measure[measurement.technique](measurement, session)

    def measurements(self, plan: MeasureGpuOptions) -> list[Measurement]:
        """What is measured, in order; InputError, UnknownName or CannotMeasure for what cannot be."""
        gpus = self.gpus.names(plan.devices)
        selected = cases.select_cases(plan.case_names or _default_cases(plan))
        if any(case.technique is Technique.QUERIES for case in selected):  # their share is that of a large copy
            selected = cases.select_cases([*(case.name for case in selected), "host_to_device_memcpy_ce"])
        measurements = cases.measurements(selected, gpus, not plan.no_p2p)
        if plan.flows:
            flows = parse_flows(plan.flows, not plan.no_p2p)
            check_sizes(flows, sweep=bool(plan.copy_sizes))
            measurements.insert(0, Measurement((typed_text(flows),), flows, makespan=not plan.copy_sizes))
        if not measurements:
            cause = f"{', '.join(case.name for case in selected)}: no two GPUs among {', '.join(gpus)}"
            raise CannotMeasure(cause, hint="name cases of one GPU: lanewise measure gpu --list")
        return [replace(row, flows=tuple(self._flow(flow, plan.node) for flow in row.flows)) for row in measurements]

    def _flow(self, flow: Flow, node: int | None) -> Flow:
        measured = measured_flow(flow, node)
        for gpu in self.gpus.of([measured]):
            self.gpus.device(gpu)  # UnknownName
        return measured


def open_gpus(library: str = "") -> GpuProbe:
    """A probe over the CUDA driver in the file `library` (empty: that of `installed.cuda_driver`).

    MissingDependency where there is no driver or it shows no GPU.
    """
    needs_linux("copies of GPUs")
    from lanewise._native import Cuda, ProbeFailure

    try:
        return GpuProbe(Cuda(library or cuda_driver()))
    except ProbeFailure as error:
        cause, hint = (*error.args, "")[:2]
        raise MissingDependency(cause, hint=hint or "see what is installed: lanewise doctor") from None


def skipped_cases(selected: Sequence[GpuCase], measurements: Sequence[Measurement]) -> list[str]:
    """Selected cases without a measurement, for want of a second GPU."""
    scenarios = {scenario for measurement in measurements for scenario in measurement.scenarios}
    return [case.name for case in selected if case.name not in scenarios]


def _default_cases(plan: MeasureGpuOptions) -> tuple[str, ...]:
    return () if plan.flows else _SWEEP_CASES if plan.copy_sizes else cases.DEFAULT
