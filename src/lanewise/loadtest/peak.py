"""The largest VALID rate of a system under test: warm-up, an Offline run for the bracket, then `serving.search`.

The search knows no generator; here its runs become loads, and LoadGen's results become its runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lanewise import units
from lanewise.loadtest.interference import DISTURBED
from lanewise.loadtest.load_run import (
    OFFLINE,
    OFFLINE_RUN,
    SEARCH,
    SERVER,
    WARM_UP,
    LoadGenResult,
    LoadRunner,
    LoadSpec,
)  # fmt: skip
from lanewise.loadtest.system import NO_STATISTICS, SystemStatistics
from lanewise.options.loadtest import PeakOptions
from lanewise.results.service_result import SearchRun
from lanewise.serving.durations import Durations, check_positive
from lanewise.serving.load import check_rate
from lanewise.serving.search import PeakEstimate, find_peak, known_within

LAG_SHARE = 0.1  # of the bound: a generator later than this at the percentile is itself the limit
WARM = 0.02  # share of all seconds for each warm-up, and for the Offline run
START = 0.84  # of the Offline rate, which no bound slows down, without a prediction
NEAR = 0.97  # of the prediction, whose error is a few per cent
SPEND = 0.97  # of all seconds is planned with: a last confirmation may take longer
LEAST_QUERIES = 1000  # of each Server run
WARM_RUNS = 6  # at most, each guessing the rate better


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """The run that is about to start, and how long the search still takes (s): probably `remaining`, or `at_most`."""

    number: int
    load: LoadSpec
    remaining: float
    at_most: float
    role: str = SEARCH
    division: str = ""  # Closed or Network, where both are searched


@dataclass(frozen=True, slots=True)
class PeakResult:
    """The peak of a system under test: `qps` is the target rate of `best`, the VALID run at it, or 0 without one.

    `interval` holds the true peak with 90 % chance by the search's own model (in simulated searches in 80 to 99 of 100,
    by the server's law); `bracket` is where the search began, based on
    `prediction` if there is one; `offline` the Offline rate in samples/s. `runs` are all,
    warm-ups included; `notes` limit what the answer is worth. `statistics` are those of the run at the peak, else the
    last one; `setup` names what was tested, with versions; logs are in `folder`.
    """

    options: PeakOptions
    prediction: float | None
    qps: float
    best: LoadGenResult | None
    confirmed: bool
    interval: tuple[float, float]
    bracket: tuple[float, float]
    offline: float
    runs: tuple[LoadGenResult, ...]
    reason: str
    notes: tuple[str, ...]
    statistics: SystemStatistics = NO_STATISTICS
    setup: Mapping[str, object] = field(default_factory=dict)
    folder: Path = Path()

    @property
    def search_runs(self) -> tuple[LoadGenResult, ...]:
        """The Server runs of the search."""
        return tuple(run for run in self.runs if run.role == SEARCH)

    @property
    def seconds(self) -> float:
        """Seconds of load in all."""
        return sum(run.seconds for run in self.runs)

    @property
    def generator_lag(self) -> float | None:
        """How late (s) the generator was at the percentile, where that is enough to be the limit itself; else None."""
        return _generator_lag(self.options, self.best) if self.best is not None else None


def find(
    runner: LoadRunner, options: PeakOptions, prediction: float | None = None,
    on_progress: Callable[[SearchProgress], None] = lambda _: None, earlier: Sequence[LoadGenResult] = (),
    on_run: Callable[[LoadGenResult], None] = lambda _: None,
) -> PeakResult:  # fmt: skip
    """The peak, searched for from `prediction` (queries/s) or from the Offline rate.

    `earlier` are finished runs of the same search; `on_run` receives each new one. A last confirmation may exceed
    `options.seconds`. CannotMeasure where a run does not fit into memory or the system fails, InputError for what is
    out of range; KeyboardInterrupt passes through.
    """
    if prediction is not None:
        check_rate(prediction)
    check_positive("latency bound", options.bound)
    return _Finder(runner, options, prediction, on_progress, list(earlier), on_run).find()


@dataclass
class _Finder:
    runner: LoadRunner
    options: PeakOptions
    prediction: float | None
    on_progress: Callable[[SearchProgress], None]
    runs: list[LoadGenResult]
    on_run: Callable[[LoadGenResult], None]

    def find(self) -> PeakResult:
        options, offline = self.options, self._offline()
        bracket = self._bracket(offline)
        shortest = min(max(1.0, 20.0 * options.bound), options.seconds)
        budget = max(SPEND * options.seconds - self._seconds(WARM_UP, OFFLINE_RUN), 0.5 * options.seconds)
        estimate = find_peak(
            lambda rate, seed, seconds: self._search(rate, seed, seconds, budget),
            durations=Durations(options.bound, shortest, options.seconds, LEAST_QUERIES, options.percentile),
            bracket=bracket, precision=options.within, seed=options.seed, most_runs=options.most_runs, budget=budget,
            earlier=[run.search_run() for run in self._of(SEARCH)],
        )  # fmt: skip
        return self._result(estimate, bracket, offline)

    def _of(self, *roles: str) -> list[LoadGenResult]:
        return [run for run in self.runs if run.role in roles]

    def _seconds(self, *roles: str) -> float:
        return sum(run.seconds for run in self._of(*roles))

    def _offline(self) -> float:
        """Samples a second without a bound: warm-ups guess it ever better, until one lasts long enough to believe."""
        if finished := self._of(OFFLINE_RUN):
            return finished[0].qps
        seconds, warm = WARM * self.options.seconds, self._of(WARM_UP)
        while not warm or (warm[-1].seconds < 0.4 * seconds and len(warm) < WARM_RUNS):
            guess = warm[-1].qps if warm else 0.2 * (self.prediction or 500.0)
            warm.append(self._run(WARM_UP, self._load(OFFLINE, guess, self.options.seed, seconds)))
        return self._run(OFFLINE_RUN, self._load(OFFLINE, warm[-1].qps, self.options.seed, seconds)).qps

    def _bracket(self, offline: float) -> tuple[float, float]:
        """Where the search begins, in the geometric middle; it may leave the bracket, as both ends may be wrong."""
        prediction = self.prediction
        start = START * offline if prediction is None else min(NEAR * prediction, offline)
        return start * (start / offline), offline  # in this order no rounding puts it above

    def _search(self, rate: float, seed: int, seconds: float, budget: float) -> SearchRun:
        at_most = max(seconds, budget - self._seconds(SEARCH))
        return self._run(SEARCH, self._load(SERVER, rate, seed, seconds), at_most).search_run()

    def _load(self, scenario: str, qps: float, seed: int, seconds: float) -> LoadSpec:
        options = self.options
        queries = LEAST_QUERIES if scenario == SERVER else max(1, round(qps * seconds))
        return LoadSpec(
            scenario, qps, seconds, queries, options.bound, options.percentile, seed, coalesce=options.coalesce
        )

    def _run(self, role: str, load: LoadSpec, at_most: float = 0.0) -> LoadGenResult:
        at_most = at_most or self.options.seconds - self._seconds(WARM_UP, OFFLINE_RUN, SEARCH)
        number = len(self._of(role)) + 1
        # Most searches end after one or two confirmations, each about as long as the longest run so far.
        longest = max([load.seconds, *(run.seconds for run in self.runs)])
        few = self.options.most_runs - number < 3 or load.seconds > 0.9 * longest > 5.0 * self.options.bound
        remaining = min(at_most, 2.0 * longest) if few and role == SEARCH and number > 4 else 0.8 * at_most
        self.on_progress(SearchProgress(number, load, max(remaining, min(load.seconds, at_most)), at_most, role))
        self.runs.append(replace(self.runner.run(load), role=role))
        self.on_run(self.runs[-1])
        return self.runs[-1]

    def _result(self, estimate: PeakEstimate, bracket: tuple[float, float], offline: float) -> PeakResult:
        runs = self._of(SEARCH)
        best = next((run for run in reversed(runs) if run.load.qps == estimate.rate and run.valid), None)
        notes = (*_notes(self.options, best, estimate, offline), *_above(best, runs), *_disturbances(runs))
        return PeakResult(
            self.options, self.prediction, 0.0 if best is None else estimate.rate, best,
            estimate.confirmed and best is not None, estimate.interval, bracket, offline, tuple(self.runs),
            estimate.reason, notes,
        )  # fmt: skip


def _generator_lag(options: PeakOptions, run: LoadGenResult) -> float | None:
    lag = run.lag.get(f"p{100 * options.percentile:g}", 0.0)
    return lag if lag > LAG_SHARE * options.bound else None


def _above(best: LoadGenResult | None, runs: Sequence[LoadGenResult]) -> Iterator[str]:
    """That a run above the peak was VALID, and why the peak is not its rate."""
    above = [run for run in runs if best is not None and run.valid and run.load.qps > best.load.qps]
    if best is not None and above:
        run = max(above, key=lambda run: run.load.qps)
        yield (
            f"a run of {run.seconds:.1f} s at {run.load.qps:,.0f} queries/s was VALID too: the peak is the rate of the "
            f"last confirmation ({best.seconds:.1f} s), chosen by all runs, and the interval holds what is likely"
        )


def _disturbances(runs: Sequence[LoadGenResult]) -> Iterator[str]:
    losses = [loss for run in runs for loss in run.losses]
    if losses:
        yield f"nodes were lost, and their runs count little: {'; '.join(losses)}"
    disturbed = [run for run in runs if run.disturbed and not run.losses]
    if disturbed:
        taken, still = max(run.interference or 0.0 for run in disturbed), max(run.still for run in disturbed)
        causes = [f"others took up to {100 * taken:.0f} % of the CPU time"] if taken > DISTURBED else []
        if still > 0.0:
            causes.append(f"it stood still for up to {units.readable(still, 's', 2)} of a run")
        refused = f"{len(disturbed)} of {len(runs)} runs {'was' if len(disturbed) == 1 else 'were'} refused"
        yield (
            f"{refused} while the machine was not quiet: {', and '.join(causes)}. Such runs count little: let nothing "
            "else run on it and search again"
        )


def _notes(options: PeakOptions, best: LoadGenResult | None, estimate: PeakEstimate, offline: float) -> tuple[str, ...]:
    if best is None:
        return (f"no rate was VALID: {estimate.reason}",)
    notes = []
    if (lag := _generator_lag(options, best)) is not None:
        took = f"{units.readable(lag, 's')} of the bound of {units.readable(options.bound, 's')}"
        notes.append(f"the generator is the limit: at the percentile it is late itself by {took}")
    if not estimate.confirmed:
        notes.append(f"not confirmed by a run of full length: {estimate.reason}")
    if best.load.qps > 1.02 * offline:
        notes.append(f"above the Offline rate of {offline:,.0f} samples/s, which should bound it")
    width = (estimate.interval[1] / max(estimate.interval[0], 1e-9) - 1.0) / 2.0
    if width == math.inf:
        notes.append("no rate was refused: the peak may lie higher; allow more runs")
    elif width > 1.5 * options.within:
        notes.append(f"{known_within(width)} only: more time would tell it better")
    return tuple(notes)
