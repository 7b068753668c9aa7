"""Measurements of copies: flows released together, tuned to end together, the rate of each while all of them run."""

from __future__ import annotations

import statistics
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lanewise._native import ProbeFailure
from lanewise.probes.gpu.flows import buffer_node, concurrent_flows, engine, path, touches_host
from lanewise.probes.gpu.window import CommonWindow, balanced, common_window
from lanewise.probes.machine import native_errors
from lanewise.probes.sampling import sample_until
from lanewise.results.estimate import fit_line
from lanewise.results.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lanewise._native import CudaRun
    from lanewise.probes.gpu.cases import Measurement
    from lanewise.probes.gpu.session import CopyJob, GpuSession

SECONDS = 0.025  # of one sample: long against the release (microseconds), short enough for whole matrices
INTERVAL = 0.004  # between two timestamps: an event and a launch take some 5 us, which copies alone would not
DUPLEX_INTERVAL = 0.025  # of a kernel for both directions, whose last blocks run some 50 us alone
PILOT = 2  # copies of each flow when nothing is known of its rate
LEAST = 4  # copies of the slowest flow in a sample
_HELD = "held too long"
_IN_TURNS = "the flows took turns, so each rate is over the time that all of them took"
_OUTLASTED = "a copy outlasted the window, so this holds for times when others had ended"
LARGE_COPY = "host_to_device_memcpy_ce"


def copies(measurement: Measurement, session: GpuSession) -> Iterator[Sample]:
    """Samples of every flow until the rule has enough; rows without a value and a reason where it fails."""
    reason = session.unreachable(measurement)
    if reason:
        yield from _not_measured(measurement, session, reason)
        return
    jobs = session.jobs(measurement)
    with native_errors():
        prepared = session.cuda.prepare([session.native(job, job.copies or PILOT) for job in jobs])
    rates: list[float] = []
    with closing(prepared) as run:
        try:
            series = _CopySeries(measurement, session, jobs, run)
            for sample in sample_until(session.options.rule, "goodput", series.measure):
                if sample.metric == "goodput" and sample.value is not None:
                    rates.append(sample.value)
                yield sample
        except ProbeFailure as error:
            yield from _not_measured(measurement, session, error.args[0])
    if LARGE_COPY in measurement.scenarios and rates:
        session.host_copy_rates[measurement.flows[0].dst] = rates


def sweep(measurement: Measurement, session: GpuSession) -> Iterator[Sample]:
    """The measurement at every size of the options, then latency and bandwidth of the line that fits the times."""
    seconds: dict[tuple[str, str], dict[int, list[float]]] = {}
    last: dict[tuple[str, str], Sample] = {}
    for size in session.options.copy_sizes:
        for sample in copies(measurement, session.at_size(size)):
            yield sample
            if sample.metric == "goodput" and sample.value:
                key = (sample.scenario, sample.flow)
                seconds.setdefault(key, {}).setdefault(size, []).append(size / sample.value)
                last[key] = sample
    for key, by_size in seconds.items():
        yield from _fit(last[key], by_size)


def _fit(sample: Sample, seconds: Mapping[int, Sequence[float]]) -> Iterator[Sample]:
    fit = fit_line(list(seconds), [statistics.median(times) for times in seconds.values()])
    if fit is None:
        return
    note = f"fitted to {len(seconds)} sizes, the worst {100 * fit.worst:.0f} % off the line"
    fitted = (("fit_latency", fit.latency, "us"), ("fit_bandwidth", fit.bandwidth, "GB/s"))
    for metric, value, unit in fitted:
        yield replace(sample, metric=metric, value=value, display_unit=unit, settings={}, note=note)


def _not_measured(measurement: Measurement, session: GpuSession, reason: str) -> Iterator[Sample]:
    """Every flow without a value, and why."""
    for scenario in measurement.scenarios:
        for job in session.jobs(measurement):
            how = {**concurrent_flows(measurement.flows), "engine": engine(job.flow)}
            yield Sample(
                scenario, job.flow.name, "goodput", None, "GB/s", {"bytes": job.bytes}, how, path(job.flow), reason
            )


class _CopySeries:
    """A measurement tuned and verified; `measure` runs it once."""

    def __init__(
        self, measurement: Measurement, session: GpuSession, jobs: Sequence[CopyJob], run: CudaRun
    ) -> None:  # fmt: skip
        self._measurement, self._jobs, self._run = measurement, jobs, run
        buffers = [
            buffer_node(pages, job.node) if touches_host(job.flow) else ("", "")
            for pages, job in zip(run.pages(), jobs, strict=True)
        ]
        self._nodes = [node for node, _ in buffers]
        run.verify()
        self._schedule = _tune(run, jobs, session.most_copies)
        self._notes = [note or session.unheld(measurement) for _, note in buffers]
        self._telemetry = session.telemetry(measurement)

    def measure(self) -> Iterator[Sample]:
        """Goodput of each flow in the common window; of several their sum; of typed flows the makespan."""
        with self._telemetry.recording():
            window = _window(self._run, self._schedule)
        doubt = _IN_TURNS if window.in_turns else "" if window.complete else _OUTLASTED
        rates = [rate * job.bytes for rate, job in zip(window.rates, self._jobs, strict=True)]
        for scenario in self._measurement.scenarios:
            for i, (job, rate) in enumerate(zip(self._jobs, rates, strict=True)):
                note = "; ".join(text for text in (self._notes[i], doubt) if text)
                yield Sample(
                    scenario, job.flow.name, "goodput", rate, "GB/s", self._settings(i), self._how([i]),
                    path(job.flow), note,
                )  # fmt: skip
            if len(self._jobs) > 1:
                yield self._sample_of_all(scenario, "total", sum(rates), "GB/s", doubt)
            if self._measurement.makespan:
                yield self._sample_of_all(scenario, "makespan", window.makespan, "s", "")

    def _settings(self, i: int) -> dict[str, int]:
        """The size of a copy, and the number of a flow between the same ends as another one."""
        names = [job.flow.name for job in self._jobs]
        number = {"flow": names[: i + 1].count(names[i])} if names.count(names[i]) > 1 else {}
        return {"bytes": self._jobs[i].bytes, **number}

    def _sample_of_all(self, scenario: str, metric: str, value: float, unit: str, note: str) -> Sample:
        how = self._how(range(len(self._jobs)))
        if metric == "makespan":
            counts = self._schedule.copies
            how["moved"] = ", ".join(
                f"{job.flow.name} {count * job.bytes} B" for job, count in zip(self._jobs, counts, strict=True)
            )
        sizes = {job.bytes for job in self._jobs}
        settings = {"bytes": sizes.pop()} if len(sizes) == 1 else {}
        paths = ", ".join(dict.fromkeys(path(job.flow) for job in self._jobs))
        return Sample(scenario, self._measurement.flow_names, metric, value, unit, settings, how, paths, note)

    def _how(self, indices: Sequence[int]) -> dict[str, str]:
        how = concurrent_flows(self._measurement.flows)
        how["engine"] = ", ".join(dict.fromkeys(engine(self._jobs[i].flow) for i in indices))
        if any(self._jobs[i].duplex for i in indices):
            how["kernel"] = "one for both ways"
        nodes = dict.fromkeys(self._nodes[i] for i in indices if self._nodes[i])
        if nodes:
            how["NUMA node"] = ", ".join(nodes)
        return {**how, **self._telemetry.how(), "data": "verified"}


@dataclass(frozen=True, slots=True)
class _Schedule:
    """For each flow the number of timestamps in a sample, and the number of copies before each timestamp."""

    timestamps: list[int]
    copies_each: list[int]

    @property
    def copies(self) -> list[int]:
        """Of each flow in a sample."""
        return [number * copies for number, copies in zip(self.timestamps, self.copies_each, strict=True)]


def _tune(run: CudaRun, jobs: Sequence[CopyJob], most: int) -> _Schedule:
    """Copies of each flow so that all end about together: a short run tells rates, one like a sample warms up.

    Where that one cannot be queued before the hold times out, shorter ones are tried; ProbeFailure if none can.
    """
    pilot = _Schedule([job.copies or PILOT for job in jobs], [1] * len(jobs))
    rates, halvings = _window(run, pilot).rates, 0
    while True:
        schedule = _schedule(jobs, rates, halvings, most)
        run.resize(schedule.timestamps, schedule.copies_each)
        try:
            rates = _window(run, schedule).rates
        except ProbeFailure as error:
            halvings += 1
            if _HELD not in error.args[0] or max(schedule.copies) <= PILOT or all(job.copies for job in jobs):
                raise
        else:
            break
    if len(jobs) > 1:
        schedule = _schedule(jobs, rates, halvings, most)
        run.resize(schedule.timestamps, schedule.copies_each)
    return schedule


def _window(run: CudaRun, schedule: _Schedule) -> CommonWindow:
    """One run, its rates in copies a second."""
    window = common_window([timing.timestamps for timing in run.run()])
    rates = tuple(rate * copies for rate, copies in zip(window.rates, schedule.copies_each, strict=True))
    return replace(window, rates=rates)


def _schedule(jobs: Sequence[CopyJob], rates: Sequence[float], halvings: int, most: int) -> _Schedule:
    """Copies by rate, in copies a second; each halving halves the time of a sample."""
    sized = [job.copies / rate for job, rate in zip(jobs, rates, strict=True) if job.copies]
    seconds = max(sized, default=SECONDS / 2**halvings)
    least, most = max(1, LEAST >> halvings), max(1, most >> halvings)
    copies_each = [1 if job.copies else _copies_in_interval(job, rate, halvings, most)
                   for job, rate in zip(jobs, rates, strict=True)]  # fmt: skip
    per_second = [rate / copies for rate, copies in zip(rates, copies_each, strict=True)]
    numbers = balanced(per_second, seconds, least, most // max(copies_each))
    return _Schedule([job.copies or number for job, number in zip(jobs, numbers, strict=True)], copies_each)


def _copies_in_interval(job: CopyJob, rate: float, halvings: int, most: int) -> int:
    interval = DUPLEX_INTERVAL if job.duplex else INTERVAL
    copies: int = round(rate * interval / 2**halvings)
    return max(1, min(copies, most // LEAST))
