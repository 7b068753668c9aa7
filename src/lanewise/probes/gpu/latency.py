"""Measurements of latency: pointer chases and stream launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lanewise._native import ProbeFailure
from lanewise.probes.gpu.cases import Measurement
from lanewise.probes.gpu.flows import concurrent_flows, engine, path
from lanewise.probes.gpu.session import GpuSession
from lanewise.probes.sampling import sample_until
from lanewise.results.sample import Sample

CHASE_STEPS = 100_000  # some 0.1 s, a tenth of nvbandwidth's
LAUNCHES = 100


def chase(measurement: Measurement, session: GpuSession) -> Iterator[Sample]:
    """Seconds of one dependent read by the destination GPU from the source's memory."""
    flow = measurement.flows[0]
    reader, holder, node = session.gpus.ordinal(flow.dst), session.gpus.ordinal(flow.src), session.gpus.node(flow)

    def seconds() -> float:
        return session.cuda.chase(reader, holder, node, steps=CHASE_STEPS)

    return _samples(measurement, session, "chase_latency", "ns", "SM", seconds)


def launch(measurement: Measurement, session: GpuSession) -> Iterator[Sample]:
    """Seconds of a small copy in a row of such, launched on a stream."""
    flow = measurement.flows[0]
    src, dst, node = session.gpus.ordinal(flow.src), session.gpus.ordinal(flow.dst), session.gpus.node(flow)

    def seconds() -> float:
        return session.cuda.launch(src, dst, flow.p2p, LAUNCHES, node)

    return _samples(measurement, session, "latency", "us", engine(flow), seconds)


def _samples(
    measurement: Measurement, session: GpuSession, metric: str, unit: str, engine: str, measure: Callable[[], float]
) -> Iterator[Sample]:
    flow = measurement.flows[0]
    how = {**concurrent_flows(measurement.flows), "engine": engine}
    telemetry = session.telemetry(measurement)

    def sample(value: float | None, note: str) -> Sample:
        name = measurement.scenarios[0]
        return Sample(name, flow.name, metric, value, unit, {}, {**how, **telemetry.how()}, path(flow), note)

    def run() -> Iterator[Sample]:
        with telemetry.recording():
            value = measure()
        yield sample(value, session.unheld(measurement))

    reason = session.unreachable(measurement)
    try:
        if not reason:
            measure()  # warms up
            yield from sample_until(session.options.rule, metric, run)
    except ProbeFailure as error:
        reason = error.args[0]
    if reason:
        yield sample(None, reason)
