"""Measurements of scattered queries: batches gathered from host memory, also as a share of one large copy's rate."""

from __future__ import annotations

import statistics
from contextlib import closing
from typing import TYPE_CHECKING

from lanewise._native import ProbeFailure
from lanewise.probes.gpu.cases import QUERY
from lanewise.probes.gpu.flows import buffer_node, concurrent_flows, path
from lanewise.probes.machine import native_errors
from lanewise.probes.sampling import sample_until
from lanewise.results.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lanewise._native import CudaRun
    from lanewise.probes.gpu.cases import Measurement
    from lanewise.probes.gpu.session import GpuSession

# Queries between two timestamps: an event takes some 3 us of the copy engine, as long as a whole query of 150,528 B.
INTERVAL = 256
_ENGINES = {"calls": "copy engine", "batch": "copy engine", "kernel": "SM", "staged": "CPU, then copy engine"}


def queries(measurement: Measurement, session: GpuSession) -> Iterator[Sample]:
    """Goodput of scattered queries in batches, and that as a share of one large copy's where this was measured."""
    flow, batch = measurement.flows[0], measurement.batch
    # staged: a batch waits for an earlier timestamp
    batches_each = 1 if measurement.method == "staged" else max(1, INTERVAL // batch)
    timestamps = max(1, max(16, 512 // batch) // batches_each)
    with native_errors():
        try:
            prepared = session.cuda.prepare_queries(
                session.gpus.ordinal(flow.dst), session.gpus.node(flow), measurement.method, bytes=QUERY, batch=batch,
                batches=timestamps,
            )  # fmt: skip
        except ProbeFailure as error:
            if measurement.method != "batch":
                raise
            yield _sample(measurement, "goodput", None, "GB/s", {}, error.args[0])  # the driver is too old for that one
            return
    with closing(prepared) as run:
        try:
            run.resize([timestamps], [batches_each])
            yield from _samples(measurement, session, run, timestamps * batches_each * batch * QUERY)
        except ProbeFailure as error:
            yield _sample(measurement, "goodput", None, "GB/s", {}, error.args[0])


def _samples(measurement: Measurement, session: GpuSession, run: CudaRun, size: int) -> Iterator[Sample]:
    flow = measurement.flows[0]
    node, note = buffer_node(run.pages()[0], session.gpus.node(flow))
    run.verify()
    run.run()  # warms up
    telemetry = session.telemetry(measurement)
    large = session.host_copy_rates.get(flow.dst)

    def measure() -> Iterator[Sample]:
        with telemetry.recording():
            rate = size / run.run()[0].timestamps[-1]
        how = {"NUMA node": node, **telemetry.how(), "data": "verified"}
        yield _sample(measurement, "goodput", rate, "GB/s", how, note)
        if large:
            share = rate / statistics.median(large)
            size_note = f"of copies of {session.jobs(measurement)[0].bytes:,} B"
            yield _sample(measurement, "share", share, "%", how, size_note)

    return sample_until(session.options.rule, "goodput", measure)


def _sample(
    measurement: Measurement, metric: str, value: float | None, unit: str, more: Mapping[str, str], note: str
) -> Sample:
    how = {**concurrent_flows(measurement.flows), "engine": _ENGINES[measurement.method], **more}
    settings = {"bytes": QUERY, "batch": measurement.batch}
    flow = measurement.flows[0]
    return Sample(measurement.scenarios[0], flow.name, metric, value, unit, settings, how, path(flow), note)
