"""Measurements of one flow alone: pointer chases, stream launches, and queries gathered from host memory."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import closing

from lanewise._native import ProbeFailure
from lanewise.options.measure_gpu import MeasureGpuOptions
from lanewise.probes.gpu.cases import CHASE, QUERY, GpuTest
from lanewise.probes.gpu.flows import buffer_node, engine
from lanewise.probes.gpu.gpus import Gpus
from lanewise.probes.sampling import sample_until
from lanewise.results.sample import Sample

CHASE_STEPS = 100_000  # some 0.1 s, a tenth of nvbandwidth's
LAUNCHES = 100
# Queries between two timestamps: an event takes some 3 us of the copy engine, as long as a whole query of 150,528 B.
INTERVAL = 256
_ENGINES = {"calls": "copy engine", "batch": "copy engine", "kernel": "SM", "staged": "CPU, then copy engine"}


def latency(test: GpuTest, gpus: Gpus, options: MeasureGpuOptions) -> Iterator[Sample]:
    """Seconds of one read in a chain of them by the destination GPU, or of one small copy in a row on a stream."""
    (flow,) = test.flows
    src, dst, node = gpus.ordinal_or_host(flow.src), gpus.ordinal_or_host(flow.dst), gpus.host_node(flow)
    is_chase = test.technique == CHASE
    metric, display_unit, by = ("chase_latency", "ns", "SM") if is_chase else ("latency", "us", engine(flow))
    telemetry = gpus.telemetry(test.flows)

    def seconds() -> float:
        if is_chase:
            return gpus.cuda.chase(dst, src, node, steps=CHASE_STEPS)
        return gpus.cuda.launch(src, dst, flow.p2p, LAUNCHES, node)

    def sample(value: float | None, note: str) -> Sample:
        return test.sample(metric, value, display_unit=display_unit, how={"engine": by, **telemetry.how()}, note=note)

    def measure() -> Iterator[Sample]:
        with telemetry.recording():
            value = seconds()
        yield sample(value, gpus.unheld(test.flows))

    reason = gpus.unreachable(test.flows)
    try:
        if not reason:
            seconds()  # warms up
            yield from sample_until(options.rule, metric, measure)
    except ProbeFailure as error:
        reason = error.args[0]
    if reason:
        yield sample(None, reason)


def queries(test: GpuTest, gpus: Gpus, options: MeasureGpuOptions, large_copies: Sequence[Sample]) -> Iterator[Sample]:
    """Goodput of scattered queries in batches, and that as a share of the rate of `large_copies` of the same flow."""
    (flow,) = test.flows
    batch, settings = test.batch, {"bytes": QUERY, "batch": test.batch}
    method = {"engine": _ENGINES[test.method]}  # and the NUMA node, once the buffers are there
    # staged: a batch waits for an earlier timestamp
    batches_per_timestamp = 1 if test.method == "staged" else max(1, INTERVAL // batch)
    timestamp_count = max(1, max(16, 512 // batch) // batches_per_timestamp)
    size = timestamp_count * batches_per_timestamp * batch * QUERY
    compared = [sample for sample in large_copies if sample.flow == flow.name]
    largest = max((sample.settings["bytes"] for sample in compared), default=0)
    large = [sample.value for sample in compared if sample.value and sample.settings["bytes"] == largest]

    def unmeasured(error: ProbeFailure) -> Sample:
        return test.sample("goodput", None, display_unit="GB/s", how=method, note=error.args[0], settings=settings)

    try:
        prepared = gpus.cuda.prepare_queries(
            device=gpus.device(flow.dst).ordinal,
            node=gpus.host_node(flow),
            method=test.method,
            bytes=QUERY,
            batch=batch,
            batches=timestamp_count,
        )
    except ProbeFailure as error:
        if test.method != "batch":
            raise
        yield unmeasured(error)  # too old a driver for that one
        return
    with closing(prepared):
        telemetry = gpus.telemetry(test.flows)

        def measure() -> Iterator[Sample]:
            with telemetry.recording():
                rate = size / prepared.run()[0].timestamps[-1]
            how = {**method, **telemetry.how(), "data": "verified"}
            yield test.sample("goodput", rate, display_unit="GB/s", how=how, note=note, settings=settings)
            if large:
                share, of = rate / statistics.median(large), f"of copies of {largest:,} B"
                yield test.sample("share", share, display_unit="%", how=how, note=of, settings=settings)

        try:
            prepared.resize([timestamp_count], [batches_per_timestamp])
            method["NUMA node"], note = buffer_node(prepared.pages()[0], gpus.host_node(flow))
            prepared.verify()
            prepared.run()  # warms up
            yield from sample_until(options.rule, "goodput", measure)
        except ProbeFailure as error:
            yield unmeasured(error)
