"""Cells of small things: pointer chases, stream launches and scattered queries."""

from __future__ import annotations

import statistics
from contextlib import closing
from typing import TYPE_CHECKING

from lanewise._native import ProbeFailure
from lanewise.probes.gpu.cases import QUERY, Kind
from lanewise.probes.gpu.session import engine, path, ran_together, touches_host, where_pages_lie
from lanewise.probes.machine import in_words
from lanewise.results.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lanewise._native import CudaRun
    from lanewise.probes.gpu.cases import Cell
    from lanewise.probes.gpu.session import Bench

CHASE_STEPS = 100_000  # some 0.1 s, a tenth of nvbandwidth's
LAUNCHES = 100
# Queries between two marks: an event takes some 3 us of the copy engine, as long as a whole query of 150,528 B.
MARK = 256


def chase(cell: Cell, bench: Bench) -> Iterator[Sample]:
    """Nanoseconds of one dependent read by the destination GPU from the source's memory."""
    flow = cell.flows[0]
    reader, holder = bench.gpus.ordinal(flow.dst), bench.gpus.ordinal(flow.src)
    node = bench.gpus.node(flow) if touches_host(flow) else -1
    return _times(
        cell, bench, "chase_latency", "ns", 1e9, lambda: bench.cuda.chase(reader, holder, node, steps=CHASE_STEPS)
    )


def launch(cell: Cell, bench: Bench) -> Iterator[Sample]:
    """Microseconds of a small copy in a row of such, launched on a stream."""
    flow = cell.flows[0]
    src, dst = bench.gpus.ordinal(flow.src), bench.gpus.ordinal(flow.dst)
    node = bench.gpus.node(flow) if touches_host(flow) else -1
    return _times(cell, bench, "latency", "us", 1e6, lambda: bench.cuda.launch(src, dst, flow.p2p, LAUNCHES, node))


def _times(
    cell: Cell, bench: Bench, metric: str, unit: str, scale: float, once: Callable[[], float]
) -> Iterator[Sample]:
    flow, values = cell.flows[0], list[float]()
    how = {**ran_together(cell.flows), "engine": "SM" if cell.kind is Kind.CHASE else engine(flow)}
    reason = bench.no_peer(cell)
    watch = bench.watch(cell.flows)
    try:
        if not reason:
            once()  # warms up
        while not reason and not bench.ask.rule.enough(values):
            with watch.running():
                values.append(scale * once())
            said = {**how, **watch.how()}
            note = bench.unheld(cell)
            yield Sample(cell.scenarios[0], flow.name, metric, values[-1], unit, {}, said, path(flow), note)
    except ProbeFailure as error:
        reason = error.args[0]
    if reason:
        yield Sample(cell.scenarios[0], flow.name, metric, None, unit, {}, how, path(flow), reason)


def queries(cell: Cell, bench: Bench) -> Iterator[Sample]:
    """Goodput of scattered queries in batches, and that as a share of one large copy's where this was measured."""
    flow, node = cell.flows[0], bench.gpus.node(cell.flows[0])
    each = 1 if cell.method == "staged" else max(1, MARK // cell.batch)  # staged: a batch waits for an earlier mark
    marks = max(1, max(16, 512 // cell.batch) // each)
    with in_words():
        try:
            prepared = bench.cuda.prepare_queries(
                bench.gpus.ordinal(flow.dst), node, cell.method, bytes=QUERY, batch=cell.batch, batches=marks
            )
        except ProbeFailure as error:
            if cell.method != "batch":
                raise
            yield _query(cell, "goodput", None, "GB/s", {}, error.args[0])  # the driver is too old for that one
            return
    with closing(prepared) as run:
        try:
            run.resize([marks], [each])
            yield from _query_samples(cell, bench, run, marks * each * cell.batch * QUERY)
        except ProbeFailure as error:
            yield _query(cell, "goodput", None, "GB/s", {}, error.args[0])


def _query_samples(cell: Cell, bench: Bench, run: CudaRun, size: int) -> Iterator[Sample]:
    flow, values = cell.flows[0], list[float]()
    pages, note = where_pages_lie(run.pages()[0], bench.gpus.node(flow))
    run.verify()
    run.run()  # warms up
    watch, peak = bench.watch(cell.flows), bench.peaks.get(flow.dst)
    while not bench.ask.rule.enough(values):
        with watch.running():
            values.append(size / run.run()[0].marks[-1] / 1e9)
        how = {"NUMA node": pages, **watch.how(), "data": "verified"}
        yield _query(cell, "goodput", values[-1], "GB/s", how, note)
        if peak:
            share = 100 * values[-1] / statistics.median(peak)
            yield _query(cell, "share", share, "%", how, f"of copies of {bench.jobs(cell)[0].bytes:,} B")


def _query(cell: Cell, metric: str, value: float | None, unit: str, how: dict[str, str], note: str) -> Sample:
    said = {**ran_together(cell.flows), "engine": _ENGINES[cell.method], **how}
    flow = cell.flows[0]
    settings = {"bytes": QUERY, "batch": cell.batch}
    return Sample(cell.scenarios[0], flow.name, metric, value, unit, settings, said, path(flow), note)


_ENGINES = {"calls": "copy engine", "batch": "copy engine", "kernel": "SM", "staged": "CPU, then copy engine"}

__all__ = ["chase", "launch", "queries"]
