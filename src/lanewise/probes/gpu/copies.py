"""Cells of copies: flows released together, tuned to end together, each one's rate while all of them run."""

from __future__ import annotations

import statistics
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lanewise._native import ProbeFailure
from lanewise.probes.gpu.session import engine, path, ran_together, touches_host, where_pages_lie
from lanewise.probes.gpu.window import Seen, balanced, common_window
from lanewise.probes.machine import in_words
from lanewise.results.estimate import fit_line
from lanewise.results.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lanewise._native import CudaRun
    from lanewise.perf.flow import Flow
    from lanewise.probes.gpu.cases import Cell
    from lanewise.probes.gpu.session import Bench, Job
    from lanewise.probes.gpu.telemetry import Watch

SECONDS = 0.025  # of one sample: long against the release (microseconds), short enough for whole matrices
MARK = 0.004  # between two marks: an event and a launch take some 5 us, which copies alone would not
MARK_BOTH = 0.025  # of a kernel for both ways, whose last blocks run some 50 us alone
PILOT = 2  # copies of each flow when nothing is known of its rate
LEAST = 4  # copies of the slowest flow in a sample
_HELD = "held too long"
_TURNS = "the flows took turns, so each rate is over the time that all of them took"
_OUTLASTED = "a copy outlasted the window, so this holds for times when others had ended"
LARGE_COPY = "host_to_device_memcpy_ce"


def copies(cell: Cell, bench: Bench) -> Iterator[Sample]:
    """Samples of every flow of the cell until the rule has enough; rows without a value and a reason where it fails."""
    reason = bench.no_peer(cell)
    if reason:
        yield from missing(cell, bench, reason)
        return
    jobs = bench.jobs(cell)
    natives = [bench.native(job, job.copies or PILOT) for job in jobs]
    with in_words():
        prepared = bench.cuda.prepare(natives)
    with closing(prepared) as run:
        try:
            yield from _sampled(cell, bench, jobs, run)
        except ProbeFailure as error:
            yield from missing(cell, bench, error.args[0])


def _sampled(cell: Cell, bench: Bench, jobs: Sequence[Job], run: CudaRun) -> Iterator[Sample]:
    notes, nodes = _pages(jobs, run)
    run.verify()
    pace = _tune(run, jobs, bench.most_copies)
    notes = [note or bench.unheld(cell) for note in notes]
    watch = bench.watch(cell.flows)
    rates: list[list[float]] = [[] for _ in jobs]
    while not all(bench.ask.rule.enough(values) for values in rates):
        with watch.running():
            seen = _seen(run, pace.each)
        for values, job, rate in zip(rates, jobs, seen.rates, strict=True):
            values.append(rate * job.bytes / 1e9)
        yield from _Rows(cell, jobs, pace.copies, nodes, notes, watch).of(seen)
    for scenario in cell.scenarios:
        if scenario == LARGE_COPY:
            bench.peaks[cell.flows[0].dst] = rates[0]


@dataclass(frozen=True, slots=True)
class _Pace:
    """For each flow how many marks a sample has and how many copies lie between two."""

    marks: list[int]
    each: list[int]

    @property
    def copies(self) -> list[int]:
        """Of each flow in a sample."""
        return [marks * each for marks, each in zip(self.marks, self.each, strict=True)]


def _tune(run: CudaRun, jobs: Sequence[Job], most: int) -> _Pace:
    """Copies of each flow so that all end about together: a short run tells rates, one like a sample warms up.

    Where that one cannot be queued before the hold times out, shorter ones are tried; ProbeFailure if none can.
    """
    rates, shorter = _seen(run, [1] * len(jobs)).rates, 0
    while True:
        pace = _pace(jobs, rates, shorter, most)
        run.resize(pace.marks, pace.each)
        try:
            rates = _seen(run, pace.each).rates
        except ProbeFailure as error:
            shorter += 1
            if _HELD not in error.args[0] or max(pace.copies) <= PILOT or all(job.copies for job in jobs):
                raise
        else:
            break
    if len(jobs) > 1:
        pace = _pace(jobs, rates, shorter, most)
        run.resize(pace.marks, pace.each)
    return pace


def _seen(run: CudaRun, each: Sequence[int]) -> Seen:
    """One run, its rates in copies a second."""
    seen = common_window([timing.marks for timing in run.run()])
    return replace(seen, rates=tuple(rate * copies for rate, copies in zip(seen.rates, each, strict=True)))


def _pace(jobs: Sequence[Job], rates: Sequence[float], shorter: int, most: int) -> _Pace:
    """Copies by rate; each `shorter` halves the time."""
    stated = [job.copies / rate for job, rate in zip(jobs, rates, strict=True) if job.copies]
    seconds, least, most = max(stated, default=SECONDS / 2**shorter), max(1, LEAST >> shorter), max(1, most >> shorter)
    each = [
        1 if job.copies else max(1, min(round(rate * (MARK_BOTH if job.both else MARK) / 2**shorter), most // LEAST))
        for job, rate in zip(jobs, rates, strict=True)
    ]
    marks = balanced([rate / n for rate, n in zip(rates, each, strict=True)], seconds, least, most // max(each))
    return _Pace([job.copies or count for job, count in zip(jobs, marks, strict=True)], each)


def _pages(jobs: Sequence[Job], run: CudaRun) -> tuple[list[str], list[str]]:
    """For each flow what is to be noted of its host buffer, and the NUMA node to record ('' without one)."""
    found = [
        where_pages_lie(pages, job.node) if touches_host(job.flow) else ("", "")
        for pages, job in zip(run.pages(), jobs, strict=True)
    ]
    return [note for _, note in found], [node for node, _ in found]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The samples that one run of a cell gives."""

    cell: Cell
    jobs: Sequence[Job]
    counts: Sequence[int]
    nodes: Sequence[str]
    notes: Sequence[str]
    watch: Watch

    def of(self, seen: Seen) -> Iterator[Sample]:
        """Goodput of each flow in the common window; of several their sum; of typed flows the makespan."""
        doubt = _TURNS if seen.turns else "" if seen.whole else _OUTLASTED
        for scenario in self.cell.scenarios:
            for i, (job, rate) in enumerate(zip(self.jobs, seen.rates, strict=True)):
                note = "; ".join(text for text in (self.notes[i], doubt) if text)
                yield Sample(
                    scenario, job.flow.name, "goodput", rate * job.bytes / 1e9, "GB/s", self._settings(i),
                    self._how([i]), path(job.flow), note,
                )  # fmt: skip
            if len(self.jobs) > 1:
                total = sum(rate * job.bytes for rate, job in zip(seen.rates, self.jobs, strict=True))
                yield self._of_all(scenario, "total", total / 1e9, "GB/s", doubt)
            if self.cell.makespan:
                yield self._of_all(scenario, "makespan", seen.makespan, "s", "")

    def _settings(self, i: int) -> dict[str, int]:
        """The size of a copy, and the place of a flow whose ends another one has too."""
        name, before = self.jobs[i].flow.name, [job.flow.name for job in self.jobs]
        place = {"flow": before[: i + 1].count(name)} if before.count(name) > 1 else {}
        return {"bytes": self.jobs[i].bytes, **place}

    def _of_all(self, scenario: str, metric: str, value: float, unit: str, note: str) -> Sample:
        how = self._how(range(len(self.jobs)))
        moved = [f"{job.flow.name} {n * job.bytes} B" for job, n in zip(self.jobs, self.counts, strict=True)]
        if metric == "makespan":
            how["moved"] = ", ".join(moved)
        paths = dict.fromkeys(path(job.flow) for job in self.jobs)
        return Sample(
            scenario, names(self.cell.flows), metric, value, unit, _bytes(self.jobs), how, ", ".join(paths), note
        )

    def _how(self, of: Sequence[int]) -> dict[str, str]:
        how = ran_together(self.cell.flows)
        how["engine"] = ", ".join(dict.fromkeys(engine(self.jobs[i].flow) for i in of))
        if any(self.jobs[i].both for i in of):
            how["kernel"] = "one for both ways"
        nodes = [self.nodes[i] for i in of if self.nodes[i]]
        if nodes:
            how["NUMA node"] = ", ".join(dict.fromkeys(nodes))
        return {**how, **self.watch.how(), "data": "verified"}


def sweep(cell: Cell, bench: Bench) -> Iterator[Sample]:
    """The cell at every size asked for, then latency and bandwidth of the line that fits each flow's times."""
    found: dict[tuple[str, str], dict[int, list[float]]] = {}
    last: dict[tuple[str, str], Sample] = {}
    for size in bench.ask.sizes:
        for sample in copies(cell, bench.at_size(size)):
            yield sample
            if sample.metric == "goodput" and sample.value:
                key = (sample.scenario, sample.flow)
                found.setdefault(key, {}).setdefault(size, []).append(size / (sample.value * 1e9))
                last[key] = sample
    for key, times in found.items():
        yield from _fit(last[key], times)


def _fit(of: Sample, times: Mapping[int, Sequence[float]]) -> Iterator[Sample]:
    fit = fit_line(list(times), [statistics.median(each) for each in times.values()])
    if fit is None:
        return
    note = f"fitted to {len(times)} sizes, the worst {100 * fit.worst:.0f} % off the line"
    fitted = (("fit_latency", fit.latency * 1e6, "us"), ("fit_bandwidth", fit.bandwidth / 1e9, "GB/s"))
    for metric, value, unit in fitted:
        yield Sample(of.scenario, of.flow, metric, value, unit, {}, of.how, of.path, note)


def missing(cell: Cell, bench: Bench, reason: str) -> Iterator[Sample]:
    """Every flow of a cell without a value, and why."""
    for scenario in cell.scenarios:
        for job in bench.jobs(cell):
            how = {**ran_together(cell.flows), "engine": engine(job.flow)}
            yield Sample(
                scenario, job.flow.name, "goodput", None, "GB/s", {"bytes": job.bytes}, how, path(job.flow), reason
            )


def names(flows: Sequence[Flow]) -> str:
    """Flows that ran together as one name, such as predict gives them."""
    return ", ".join(flow.name for flow in flows)


def _bytes(jobs: Sequence[Job]) -> dict[str, int]:
    """The size of a copy where all flows have the same."""
    sizes = {job.bytes for job in jobs}
    return {"bytes": sizes.pop()} if len(sizes) == 1 else {}


__all__ = ["copies", "missing", "names", "sweep"]
