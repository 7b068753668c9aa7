"""The CUDA probe: copies between hosts and GPUs, latency by pointer chase and by launch, scattered queries.

All copies of all flows are queued behind a closed gate, released at once and timed by device events. Each path is warm,
and its data compared outside the timed part. Host buffers are on the GPU's own NUMA node unless the options name
another, and their pages are verified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.errors import CannotMeasure, MissingDependency
from lanewise.installed import cuda_driver
from lanewise.options.measure_gpu import MeasureGpuOptions
from lanewise.perf.flow import Flow, parse_flows
from lanewise.probes.gpu import cases
from lanewise.probes.gpu.cases import GpuTest
from lanewise.probes.gpu.flows import is_host, measurable_flow, typed_text
from lanewise.probes.gpu.gpus import Gpus
from lanewise.probes.machine import SYS, native_errors, needs_linux
from lanewise.results.sample import Sample

if TYPE_CHECKING:
    from lanewise._native import Cuda

_LARGE_COPY = "host_to_device_memcpy_ce"  # what the rates of queries are compared with
_SWEEP_CASES = (_LARGE_COPY, "device_to_host_memcpy_ce", "device_to_device_memcpy_write_ce",
                "device_to_device_memcpy_no_p2p")  # fmt: skip


class GpuProbe:
    """Measures copies of the GPUs that the driver shows."""

    def __init__(self, cuda: Cuda, sys: Path = SYS) -> None:
        self.gpus = Gpus(cuda, sys)

    def machine_facts(self) -> dict[str, str]:
        """Driver, GPUs and links, for a run's record of the machine."""
        return self.gpus.machine_facts()

    def run(self, options: MeasureGpuOptions) -> Iterator[Sample]:
        """Each sample as soon as it is taken; closing the iterator frees buffers and streams."""
        from lanewise.probes.gpu.copies import copies, sweep
        from lanewise.probes.gpu.one_flow import latency, queries

        tests = self.tests(options)
        large_copies: list[Sample] = []
        with native_errors():
            self._check_memory(tests, options)
            for test in tests:
                if test.technique == cases.QUERIES:
                    yield from queries(test, self.gpus, options, large_copies)
                elif test.technique != cases.COPIES:
                    yield from latency(test, self.gpus, options)
                else:
                    for sample in (sweep if options.copy_sizes else copies)(test, self.gpus, options):
                        if sample.scenario == _LARGE_COPY and sample.metric == "goodput":
                            large_copies.append(sample)
                        yield sample

    def tests(self, options: MeasureGpuOptions) -> list[GpuTest]:
        """The typed flows, then the cases: each test is measured once; InputError, UnknownName or CannotMeasure."""
        gpus = self.gpus.names(options.devices)
        default = () if options.flows else _SWEEP_CASES if options.copy_sizes else cases.DEFAULT
        selected = cases.select_cases(options.case_names or default)
        if any(case.technique == cases.QUERIES for case in selected):
            selected = cases.select_cases([*(case.name for case in selected), _LARGE_COPY])
        p2p = not options.no_p2p
        tests = [
            replace(test, flows=self._measurable_flows(test.flows, options))
            for test in cases.gpu_tests(selected, gpus, p2p)
        ]
        if options.flows:
            flows = self._measurable_flows(parse_flows(options.flows, p2p), options)
            tests.insert(0, GpuTest((typed_text(flows),), flows))
        if not tests:
            cause = f"{', '.join(case.name for case in selected)}: no two GPUs among {', '.join(gpus)}"
            raise CannotMeasure(cause, hint="name cases of one GPU: lanewise measure gpu --list")
        return tests

    def skipped_cases(self, options: MeasureGpuOptions) -> list[str]:
        """Selected cases without a test, for want of a second GPU."""
        names = {name for test in self.tests(options) for name in test.scenarios}
        return [case.name for case in cases.select_cases(options.case_names) if case.name not in names]

    def _measurable_flows(self, flows: Sequence[Flow], options: MeasureGpuOptions) -> tuple[Flow, ...]:
        checked = tuple(measurable_flow(flow, options.node, sweep=bool(options.copy_sizes)) for flow in flows)
        for end in (end for flow in checked for end in (flow.src, flow.dst)):
            self.gpus.ordinal_or_host(end)  # UnknownName
        return checked

    def _check_memory(self, tests: Sequence[GpuTest], options: MeasureGpuOptions) -> None:
        """CannotMeasure for the first one whose buffers do not fit a GPU, with what it needs and what is free."""
        for test in tests:
            for gpu, size in _needs(test, options).items():
                free = self.gpus.device(gpu).free
                if size > free:
                    needed, available = (units.show(amount, "GiB", 3) for amount in (size, free))
                    cause = f"{test.scenarios[0]} needs {needed} of {gpu}'s memory, and {available} are free"
                    raise CannotMeasure(cause, hint="ask for smaller copies (--bytes), or free memory of that GPU")


def _needs(test: GpuTest, options: MeasureGpuOptions) -> Counter[str]:
    """Bytes of the buffers on each GPU."""
    from lanewise.probes.gpu.copies import copy_plan

    needs: Counter[str] = Counter()
    for flow in test.flows:
        size = max(options.copy_sizes) if options.copy_sizes else copy_plan(flow, options).copy_bytes
        size = {cases.COPIES: size, cases.QUERIES: test.batch * cases.QUERY}.get(test.technique, 0)
        for gpu in (end for end in (flow.src, flow.dst) if not is_host(end)):
            needs[gpu] += size
    return needs


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
