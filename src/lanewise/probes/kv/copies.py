"""Blocks between GPU and host memory, or two GPUs: by a call a block, one call for all, or a kernel."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import closing

from lanewise import units
from lanewise._native import BlockRun, CudaBlocks, ProbeFailure
from lanewise.blocks.pieces import Pieces
from lanewise.errors import CannotMeasure
from lanewise.options.measure_kv import COPIES, MeasureKvOptions
from lanewise.perf.flow import Flow
from lanewise.probes.gpu.flows import buffer_node, how_of_flows, is_host, path_kind, touches_host
from lanewise.probes.gpu.gpus import Gpus
from lanewise.probes.machine import available
from lanewise.probes.sampling import sample_until
from lanewise.results.block_rows import GOODPUT, block_scenario, block_settings, block_values
from lanewise.results.sample import Sample

PEAK_PIECE = 64 << 20  # long enough that a call costs nothing beside it
_ENGINE = {"kernel": "SM"}

Peaks = dict[tuple[str, ...], dict[str, float]]


def block_copies(options: MeasureKvOptions, pieces: Pieces, gpus: Gpus) -> Iterator[Sample]:
    """Samples of every software in each direction and both at once, after long copies whose rate is the peak."""
    assert options.memory is not None
    there, back = Flow(options.start.name, options.memory.name), Flow(options.memory.name, options.start.name)
    directions = ((there,), (back,), (there, back))
    long = Pieces(-(-max(round(pieces.total), options.peak_bytes) // PEAK_PIECE), float(PEAK_PIECE))
    if options.peak_bytes < PEAK_PIECE:
        long = Pieces(1, float(options.peak_bytes))
    _check_host_memory(max(pieces.total, long.total), directions[-1])
    peaks: Peaks = {}
    for flows in directions:
        values: dict[str, list[float]] = {}
        for sample in _BlockCopies(flows, long, COPIES[0], gpus, options).samples({}):
            if sample.metric == GOODPUT and sample.value:
                values.setdefault(sample.flow, []).append(sample.value)
            yield sample
        peaks[tuple(flow.name for flow in flows)] = {name: statistics.median(own) for name, own in values.items()}
    for software in options.software or options.possible_software:
        for flows in directions:
            yield from _BlockCopies(flows, pieces, software, gpus, options).samples(peaks)


class _BlockCopies:
    """The runs of some flows by one software: verified once, then measured once for each sample."""

    def __init__(
        self, flows: Sequence[Flow], pieces: Pieces, software: str, gpus: Gpus, options: MeasureKvOptions
    ) -> None:
        self._flows, self._pieces, self._software, self._gpus = flows, pieces, software, gpus
        self._rule = options.rule
        self._how = {**how_of_flows(flows), "engine": _ENGINE.get(software, "copy engine")}
        self._note = ""

    def samples(self, peaks: Peaks) -> Iterator[Sample]:
        """Samples until the rule has enough, with shares of the peaks; rows without value where a copy fails."""
        reason = self._gpus.unreachable(self._flows)
        if not reason:
            try:
                run = self._gpus.cuda.prepare_blocks([self._native(flow) for flow in self._flows])
            except ProbeFailure as error:
                if not self._software.startswith("cuMemcpyBatchAsync"):
                    raise
                reason = error.args[0]  # too old a driver for that one
            else:
                with closing(run):
                    yield from self._series(run, peaks)
        if reason:
            for flow in self._flows:
                yield self._sample(flow.name, GOODPUT, None, "GB/s", reason)

    def _series(self, run: BlockRun, peaks: Peaks) -> Iterator[Sample]:
        for flow, pages in zip(self._flows, run.pages(), strict=True):
            if touches_host(flow):
                self._how["NUMA node"], self._note = buffer_node(pages, self._gpus.host_node(flow))
        run.verify()
        self._how["data"] = "verified"
        run.run()  # warms up
        telemetry = self._gpus.telemetry(self._flows)
        peak = peaks.get(tuple(flow.name for flow in self._flows), {})

        def measure() -> Iterator[Sample]:
            with telemetry.recording():
                seconds = run.run()
            self._how |= telemetry.how()
            for flow, own in zip(self._flows, seconds, strict=True):
                for metric, value, unit in block_values(self._pieces, own):
                    yield self._sample(flow.name, metric, value, unit, self._note)
                if flow.name in peak:
                    share = self._pieces.total / own / peak[flow.name]
                    yield self._sample(flow.name, "share", share, "%", f"of copies of {units.size(PEAK_PIECE)}")
            if len(self._flows) > 1:
                together = ", ".join(flow.name for flow in self._flows)
                total = self._pieces.total * len(self._flows) / max(seconds)
                yield self._sample(together, "total", total, "GB/s", self._note)

        yield from sample_until(self._rule, GOODPUT, measure)

    def _native(self, flow: Flow) -> CudaBlocks:
        return CudaBlocks(
            self._gpus.ordinal_or_host(flow.src), self._gpus.ordinal_or_host(flow.dst), round(self._pieces.size),
            self._pieces.count, self._software, self._gpus.host_node(flow),
        )  # fmt: skip

    def _sample(self, flow: str, metric: str, value: float | None, unit: str, note: str) -> Sample:
        path = ", ".join(dict.fromkeys(path_kind(each) for each in self._flows if each.name in flow))
        return Sample(
            block_scenario(self._software, len(self._flows) > 1), flow, metric, value, unit,
            block_settings(self._pieces), dict(self._how), path, note,
        )  # fmt: skip


def _check_host_memory(size: float, flows: Sequence[Flow]) -> None:
    """Pinned memory is touched, and a machine without it would kill processes rather than refuse it."""
    needed = size * sum(is_host(end) for flow in flows for end in (flow.src, flow.dst))
    free = available()
    if free is not None and needed > free:
        cause = f"buffers of {needed / 1e9:.2f} GB of host memory are needed, {free / 1e9:.2f} GB are free"
        raise CannotMeasure(cause, hint="move fewer blocks: --blocks '1024 x 64 KiB'")
