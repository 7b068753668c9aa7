"""The largest VALID rate of a system under test: warm-up, an Offline run for the bracket, then `serving.search`.

The search knows no generator; here its runs become loads, and outcomes become its trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lanewise import units
from lanewise.errors import InputError
from lanewise.loadtest.interference import DISTURBED
from lanewise.loadtest.load_run import OFFLINE, SERVER, LoadGenResult, LoadRunner, LoadSpec
from lanewise.serving.durations import Durations, PeakEstimate, Trial
from lanewise.serving.load import check_rate
from lanewise.serving.search import find_peak

LAG_SHARE = 0.1  # of the bound: a generator later than this at the percentile is itself the limit
WARM = 0.02  # share of all seconds for each warm-up, and for the Offline run
START = 0.84  # of the Offline rate, which no bound slows down, without a prediction
NEAR = 0.97  # of the prediction, whose error is a few per cent
SPEND = 0.97  # of all seconds is planned with: a last confirmation may take longer
# A thread that sleeps sees what one core does, and queries that come behind late ones are late as well.
KNOCK_ON = 4.0  # queries that may be late for each that came while the machine stood still
WARM_RUNS = 6  # at most, each guessing the rate better


@dataclass(frozen=True, slots=True)
class PeakAsk:
    """What is searched for: the largest rate whose `percentile` keeps `bound` (s), within `precision` (relative).

    At most `most_runs` Server runs and about `seconds` of load, warm-ups and the Offline run included; a last
    confirmation may take longer. The search begins at `prediction` (queries/s). `least` queries at least in each run.
    InputError for what is out of range.
    """

    bound: float = 0.015
    percentile: float = 0.99
    precision: float = 0.02
    most_runs: int = 12
    seconds: float = 150.0
    seed: int = 1
    prediction: float | None = None
    coalesce: bool = False
    least: int = 1000

    def __post_init__(self) -> None:
        for name, value in (("latency bound", self.bound), ("time for the search", self.seconds)):
            if not 0.0 < value < math.inf:
                raise InputError(f"a {name} of {value} s", hint="give seconds above 0")
        if not 0.0 < self.percentile < 1.0:
            raise InputError(f"a percentile of {self.percentile}", hint="give a share between 0 and 1, such as 0.99")
        if self.most_runs < 1 or self.least < 1:
            raise InputError("a search without runs or queries", hint="allow 1 run and 1 query or more")
        if self.prediction is not None:
            check_rate(self.prediction)


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """What is about to run, and how long the search will still take at most and as far as can be told now (s)."""

    number: int
    load: LoadSpec
    left: float
    at_most: float
    kind: str = "search"


@dataclass(frozen=True, slots=True)
class Done:
    """A finished run of a search; `kind` is warm-up, offline or search."""

    kind: str
    outcome: LoadGenResult


@dataclass(frozen=True, slots=True)
class PeakResult:
    """The answer: `qps` is the target rate of the VALID run `outcome`, or 0 and None if no rate was VALID.

    `interval` holds the true peak with 90 % chance by the search's own model (in simulated searches in 80 to 99 of 100,
    by the server's law), `bracket` is where it began. `seconds` of
    load were run; `notes` say what limits the answer's worth.
    """

    ask: PeakAsk
    qps: float
    outcome: LoadGenResult | None
    confirmed: bool
    interval: tuple[float, float]
    bracket: tuple[float, float]
    offline: float
    runs: tuple[Done, ...]
    reason: str
    notes: tuple[str, ...]

    @property
    def trials(self) -> tuple[LoadGenResult, ...]:
        """The Server runs of the search."""
        return tuple(run.outcome for run in self.runs if run.kind == "search")

    @property
    def seconds(self) -> float:
        """Seconds of load in all."""
        return sum(run.outcome.seconds for run in self.runs)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the Server runs, in their order."""
        return tuple(outcome.load.seed for outcome in self.trials)


def find(
    runner: LoadRunner, ask: PeakAsk, on_progress: Callable[[SearchProgress], None] = lambda _: None,
    earlier: Sequence[Done] = (), on_run: Callable[[Done], None] = lambda _: None,
) -> PeakResult:  # fmt: skip
    """Search for the peak; what `earlier` holds of the same search is not run again, `on_run` is given each run.

    CannotMeasure where a run does not fit into memory or the system fails; KeyboardInterrupt goes through.
    """
    return _Finder(runner, ask, on_progress, list(earlier), on_run).find()


@dataclass
class _Finder:
    runner: LoadRunner
    ask: PeakAsk
    on_progress: Callable[[SearchProgress], None]
    runs: list[Done]
    on_run: Callable[[Done], None]

    def find(self) -> PeakResult:
        offline = self._offline()
        bracket = self._bracket(offline)
        earlier = [self._trial(run.outcome) for run in self.runs if run.kind == "search"]
        ask = self.ask
        shortest = max(1.0, 20.0 * ask.bound)
        durations = Durations(ask.bound, min(shortest, ask.seconds), ask.seconds, ask.least, ask.percentile)
        budget = max(SPEND * ask.seconds - self._spent(("warm-up", "offline")), 0.5 * ask.seconds)
        peak = find_peak(
            lambda qps, seed, seconds: self._search(qps, seed, seconds, budget), durations=durations, bracket=bracket,
            precision=ask.precision, seed=ask.seed, most_runs=ask.most_runs, earlier=earlier, budget=budget,
        )  # fmt: skip
        return self._found(peak, bracket, offline)

    def _spent(self, kinds: Sequence[str]) -> float:
        return sum(run.outcome.seconds for run in self.runs if run.kind in kinds)

    def _offline(self) -> float:
        """Samples a second without a bound: warm-ups guess it ever better, until one lasts long enough to believe."""
        known = [run.outcome.qps for run in self.runs if run.kind == "offline"]
        if known:
            return known[0]
        seconds = WARM * self.ask.seconds
        warm = [run.outcome for run in self.runs if run.kind == "warm-up"]
        while not warm or (warm[-1].seconds < 0.4 * seconds and len(warm) < WARM_RUNS):
            guess = warm[-1].qps if warm else 0.2 * (self.ask.prediction or 500.0)
            warm.append(self._run("warm-up", self._load(OFFLINE, guess, self.ask.seed, seconds), 0.0))
        return self._run("offline", self._load(OFFLINE, warm[-1].qps, self.ask.seed, seconds), 0.0).qps

    def _bracket(self, offline: float) -> tuple[float, float]:
        """Where the search begins, in the geometric middle; it may leave the bracket, as both ends may be wrong."""
        expected = self.ask.prediction
        start = START * offline if expected is None else min(NEAR * expected, offline)
        return start * (start / offline), offline  # in this order no rounding puts it above

    def _search(self, qps: float, seed: int, seconds: float, budget: float) -> Trial:
        left = max(seconds, budget - self._spent(("search",)))
        return self._trial(self._run("search", self._load(SERVER, qps, seed, seconds), left))

    def _load(self, scenario: str, qps: float, seed: int, seconds: float) -> LoadSpec:
        ask = self.ask
        queries = ask.least if scenario == SERVER else max(1, round(qps * seconds))
        return LoadSpec(scenario, qps, seconds, queries, ask.bound, ask.percentile, seed, coalesce=ask.coalesce)

    def _run(self, kind: str, load: LoadSpec, at_most: float) -> LoadGenResult:
        at_most = at_most or self.ask.seconds - self._spent(("warm-up", "offline", "search"))
        number = sum(run.kind == kind for run in self.runs) + 1
        # Most searches end after one or two confirmations, each about as long as the longest run so far.
        longest = max([load.seconds, *(run.outcome.seconds for run in self.runs)])
        few = self.ask.most_runs - number < 3 or load.seconds > 0.9 * longest > 5.0 * self.ask.bound
        left = min(at_most, 2.0 * longest) if few and kind == "search" and number > 4 else 0.8 * at_most
        self.on_progress(SearchProgress(number, load, max(left, min(load.seconds, at_most)), at_most, kind))
        outcome = self.runner.run(load)
        self.runs.append(Done(kind, outcome))
        self.on_run(self.runs[-1])
        return outcome

    def _trial(self, outcome: LoadGenResult) -> Trial:
        valid = outcome.valid and not outcome.ended_early
        return Trial(
            outcome.load.qps, outcome.load.seed, valid, at(outcome, self.ask.percentile), outcome.queries,
            "; ".join(outcome.reasons), outcome.ended_early, offered(outcome),
            min(1.0, outcome.queries / max(outcome.load.queries, outcome.load.qps * outcome.load.seconds)),
            disturbed(outcome),
        )  # fmt: skip

    def _found(self, peak: PeakEstimate, bracket: tuple[float, float], offline: float) -> PeakResult:
        tried = [run.outcome for run in self.runs if run.kind == "search"]
        best = next((each for each in reversed(tried) if each.load.qps == peak.low and each.valid), None)
        notes = (*_notes(self.ask, best, peak, offline), *_disturbances(tried))
        low = peak.low if best is not None else 0.0
        return PeakResult(
            self.ask, low, best, peak.confirmed and best is not None, peak.interval, bracket, offline,
            tuple(self.runs), peak.reason, notes,
        )  # fmt: skip


def offered(outcome: LoadGenResult) -> float:
    """The rate in queries/s at which the queries of a Server run came by chance, 0 where that cannot be told."""
    rate = outcome.queries / outcome.seconds if outcome.seconds > 0 else 0.0
    # More than chance apart: then the run took longer than its queries came, or was cut off while many waited.
    apart = abs(rate / outcome.load.qps - 1.0) * math.sqrt(max(outcome.queries, 1))
    return rate if apart < 5.0 else 0.0


def at(times: LoadGenResult, share: float) -> float:
    """The latency in s at that percentile, NaN if the run did not tell."""
    return times.latency.get(f"p{100 * share:g}", math.nan)


def late_itself(ask: PeakAsk, outcome: LoadGenResult) -> float | None:
    """How late (s) the generator was at the percentile, where that is enough to be the limit itself; else None."""
    lag = outcome.lag.get(f"p{100 * ask.percentile:g}", 0.0)
    return lag if lag > LAG_SHARE * ask.bound else None


def disturbed(outcome: LoadGenResult) -> bool:
    """Whether a run may have been refused because something else took the machine's time, or it stood still."""
    if outcome.valid:
        return False
    beside = outcome.others is not None and outcome.others > DISTURBED
    return beside or 0 < outcome.late <= KNOCK_ON * outcome.load.qps * outcome.still


def _disturbances(tried: Sequence[LoadGenResult]) -> Iterator[str]:
    hit = [outcome for outcome in tried if disturbed(outcome)]
    if hit:
        taken, still = max(each.others or 0.0 for each in hit), max(each.still for each in hit)
        yield (
            f"{len(hit)} of {len(tried)} runs were refused while the machine was not quiet: others took up to "
            f"{100 * taken:.0f} % of the CPU time, and it stood still for up to {units.readable(still, 's', 2)} of a "
            "run. These runs count little: let nothing else run on it and search again"
        )


def _notes(ask: PeakAsk, best: LoadGenResult | None, peak: PeakEstimate, offline: float) -> tuple[str, ...]:
    found = []
    if best is None:
        return (f"no rate was VALID: {peak.reason}",)
    if (lag := late_itself(ask, best)) is not None:
        took = f"{units.readable(lag, 's')} of the bound of {units.readable(ask.bound, 's')}"
        found.append(f"the generator is the limit: at the percentile it is late itself by {took}")
    if not peak.confirmed:
        found.append(f"not confirmed by a run of full length: {peak.reason}")
    if best.load.qps > 1.02 * offline:
        found.append(f"above the Offline rate of {offline:,.0f} samples/s, which should bound it")
    width = (peak.interval[1] / max(peak.interval[0], 1e-9) - 1.0) / 2.0
    if width == math.inf:
        found.append("no rate was refused: the peak may lie higher; allow more runs")
    elif width > 1.5 * ask.precision:
        found.append(f"known within {100 * width:.2g} % only: more time would tell it better")
    return tuple(found)
