"""The largest rate at which a service meets its latency bound, from runs whose verdicts are partly chance.

The caller runs them: an event simulation or a load test of real machines. The search keeps the chance of each possible
peak, given all runs so far, and runs next where the peak is as likely above as below. Where verdicts are certain that
is bisection; where they contradict each other it repeats runs around the boundary until the peak is known to the
wanted precision (Waeber, Frazier, Henderson, "Bisection search with noisy responses", SIAM J. Control and
Optimization 51, 2013; Watson, Pelli, "QUEST", Perception & Psychophysics 33, 1983). It ends on a valid run at the
answer. The next run depends on the finished runs alone, so an interrupted search resumes from them. Within a budget of
real time `serving.durations` sets the length of runs. `serving.posterior` holds the two models of chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lanewise.errors import InputError
from lanewise.results.service_result import SearchRun
from lanewise.serving.durations import EXPLORE, Durations, TimeBudget, check_positive, confirmation_below
from lanewise.serving.posterior import FixedNoisePosterior, Posterior

# Chance outside the interval, on each side.
OUTSIDE = 0.05
# The last runs are reserved for confirmation, each further below the likeliest peak: with one left, two left, ...
CONFIRM_AT = (0.02, 0.25, 0.5)
CONFIRM_FIRST = 0.15
BEYOND = 1.1  # factor above the bracket's upper end that is run at least, once that end was valid
AGAIN = 3  # runs at a rate before a search goes down from it, where other work may be why they were refused
# Of searches within a budget; from simulations of M/D/1, M/M/1, batched and several servers: benchmarks/peak_search.py.
HUNT = 0.05  # the precision, and the share of the budget, of runs that only look for the region of the peak
KNOWN = 0.8  # exploring ends once half the interval is this many precisions wide
FINE = 0.35  # a confirmation tells rates apart that differ by this share of the precision, if the budget allows
LIKELY = 0.35  # a confirmation less likely to be valid than this takes twice the time, where there is time
CERTAIN = 0.9  # chance of being valid of a confirmation that is the last
LOWEST = 2.5  # but no further below the likeliest peak, in precisions


# Runs at a rate (queries/s) with a seed for a time (s).
RunFunction = Callable[[float, int, float], "SearchRun"]


@dataclass(frozen=True, slots=True)
class PeakEstimate:
    """What a search returns, rates in queries/s, and why it stopped.

    `rate` is the answer: that of the valid run it ended on, or 0 if no rate is known to meet the bound. `refused` is
    the smallest rate above it that was not valid, or inf. `interval` holds the true peak with 90 % chance by the
    search's own model of chance (in simulated M/D/1 searches the peak was within it in 77 to 87 of 100);
    inf above the largest rate run, 0 below the smallest. `confirmed`: a run of full length was valid at `rate`.
    """

    rate: float
    refused: float
    interval: tuple[float, float]
    runs: tuple[SearchRun, ...]
    confirmed: bool
    reason: str


def find_peak(
    run: RunFunction, *, durations: Durations, bracket: tuple[float, float] | None = None, start: float = 100.0,
    floor: float | None = None, ceiling: float | None = None, precision: float = 0.0025, seed: int = 1,
    most_runs: int = 40, earlier: Sequence[SearchRun] = (), on_run: Callable[[SearchRun], None] = lambda _: None,
    budget: float | None = None,
) -> PeakEstimate:  # fmt: skip
    """The largest rate (queries/s) whose runs are valid, within `precision` of the rate either way.

    It begins amid `bracket`, a prediction that may be wrong, else at `start`, and never leaves `floor` .. `ceiling`;
    without a floor that is the rate at which the longest run just has its fewest queries. `most_runs` counts those of
    `earlier` too, which are not repeated. `on_run` receives each run as it ends; what `run` raises, KeyboardInterrupt
    too, passes through to the caller. `budget`: seconds of load that all runs together should take. InputError for
    rates, precision or counts out of range.
    """
    search = _Search(durations, bracket, start, floor, ceiling, precision, most_runs, budget)
    runs = list(earlier)
    next_seed = _fresh_seeds(seed, runs)
    if runs and search.confirmed_by_last(runs):
        return search.confirmed_peak(runs)
    while len(runs) < most_runs:
        step = search.next(runs)
        if isinstance(step, PeakEstimate):
            return step
        runs.append(run(step.rate, next_seed(len(runs)), step.duration))
        on_run(runs[-1])
        if step.confirms and runs[-1].valid:
            return search.confirmed_peak(runs)
    return search.unfinished(runs)


@dataclass(frozen=True, slots=True)
class _Step:
    rate: float
    duration: float
    confirms: bool = False


class _Search:
    """The settings of a search; its methods depend on the finished runs alone.

    The last posterior is kept: several questions are asked after each run, and the next has one run more.
    """

    def __init__(
        self, durations: Durations, bracket: tuple[float, float] | None, start: float, floor: float | None,
        ceiling: float | None, precision: float, most_runs: int, budget: float | None,
    ) -> None:  # fmt: skip
        if bracket is not None:
            low, high = bracket
            check_positive("lower end of the bracket", low)
            check_positive("upper end of the bracket", high)
            if low > high:
                raise InputError(f"the bracket {low:g} to {high:g} is empty", hint="give its lower end first")
        if floor is None:
            floor = durations.queries / durations.longest
        elif floor != 0.0:
            check_positive("floor", floor)
        if ceiling is None:
            ceiling = math.inf
        else:
            check_positive("ceiling", ceiling)
        check_positive("rate to start from", start)
        if floor > ceiling:
            raise InputError(
                f"the ceiling, {ceiling:g} queries/s, is below the floor, {floor:g}",
                hint="raise the ceiling, or allow longer runs: a run needs enough queries for a verdict",
            )
        if not 1e-4 <= precision <= 0.5:
            raise InputError(f"a precision of {precision}", hint="give it as a share from 0.0001 to 0.5")
        if most_runs < 1:
            raise InputError(f"a search of {most_runs} runs", hint="allow 1 run or more")
        if budget is not None:
            check_positive("budget in s", budget)
        self.durations, self.bracket, self.start, self.floor, self.ceiling = durations, bracket, start, floor, ceiling
        self.precision, self.most_runs, self.budget = precision, most_runs, budget
        self._last: Posterior | None = None

    def next(self, runs: Sequence[SearchRun]) -> _Step | PeakEstimate:
        """The next run, or the end if floor or ceiling has settled it."""
        if not runs:
            return self._hunt(math.sqrt(self.bracket[0] * self.bracket[1]) if self.bracket else self.start)
        accepted = [run.rate for run in runs if run.valid]
        refused = [run.rate for run in runs if not run.valid]
        if self.budget is not None and self._near(runs) and not (max(accepted, default=0.0) >= self.ceiling):
            return self._budgeted(runs, self.budget)
        if not refused:
            return self._up(runs, max(accepted))
        if not accepted:
            return self._down(runs, min(refused))
        return self._between(runs)

    def confirmed_by_last(self, runs: Sequence[SearchRun]) -> bool:
        """Whether the last of these runs ended the search: true where a search that is complete is started again."""
        last, before = runs[-1], runs[:-1]
        if not last.valid or len(before) >= self.most_runs:
            return False
        step = self.next(before)
        return isinstance(step, _Step) and step.confirms and math.isclose(step.rate, last.rate)

    def confirmed_peak(self, runs: Sequence[SearchRun]) -> PeakEstimate:
        """The rate of the last run, which confirmed it."""
        return self.peak(runs, runs[-1].rate, known_within(self.half_width(runs)), True)

    def _near(self, runs: Sequence[SearchRun]) -> bool:
        """Whether the latency of any run is near enough to the bound to locate the peak."""
        bound = self.durations.bound
        return any(not run.hopeless and bound / 4.0 < run.latency < 4.0 * bound for run in runs)

    def _up(self, runs: Sequence[SearchRun], top: float) -> _Step | PeakEstimate:
        if top >= self.ceiling:
            return self.peak(runs, top, f"valid up to the ceiling of {self.ceiling:g} queries/s", True)
        if self.bracket is None:
            return self._hunt(top * _growth(runs))
        low, high = self.bracket
        if top < high:
            return self._hunt(high)
        # The upper end is expected to bound the peak, which lies just above it if above it at all.
        above = [run for run in runs if run.rate > high]
        return self._hunt(top * (_growth(above) if above else min(max(high / low, BEYOND), 2.0)))

    def _down(self, runs: Sequence[SearchRun], bottom: float) -> _Step | PeakEstimate:
        if bottom <= self.floor:
            return self.unfinished(runs)
        if runs[-1].disturbed and sum(run.rate == bottom for run in runs) < AGAIN:
            return self._hunt(bottom)
        if self.bracket is not None and bottom > self.bracket[0]:
            return self._hunt(self.bracket[0])
        return self._hunt(bottom / _growth(runs))

    def _hunt(self, rate: float) -> _Step:
        """A short run, but of full length at the ends, where one run settles the search."""
        rate = min(max(rate, self.floor), self.ceiling)
        if self.budget is not None:
            seconds = self.durations.seconds(rate, HUNT)
            return _Step(rate, min(seconds, max(HUNT * self.budget, self.durations.shortest)))
        return _Step(rate, self.durations.seconds(rate, self.precision if rate in (self.floor, self.ceiling) else 0.5))

    def _between(self, runs: Sequence[SearchRun]) -> _Step | PeakEstimate:
        if self.budget is not None:
            return self._budgeted(runs, self.budget)
        runs_left = self.most_runs - len(runs)
        share = self.half_width(runs)
        if share > self.precision and runs_left > len(CONFIRM_AT):
            rate = self._quantiles(runs, 0.5)[0]
            return _Step(rate, self.durations.seconds(rate, max(share / 4.0, self.precision)))
        chance = CONFIRM_AT[runs_left - 1] if runs_left <= len(CONFIRM_AT) else CONFIRM_FIRST
        rate = min(self._quantiles(runs, chance)[0], self._below_refused(runs))
        return _Step(rate, self.durations.seconds(rate, self.precision), confirms=True)

    def _budgeted(self, runs: Sequence[SearchRun], budget: float) -> _Step | PeakEstimate:
        """Exploring while time is left for confirmations and the peak is not known; then confirming, ever lower."""
        posterior = self._posterior(runs)
        middle, share = math.exp(posterior.quantiles(0.5)[0]), self.half_width(runs)
        spent = [(run.queries / run.rate, run.valid) for run in runs]
        plan = TimeBudget(budget, self.durations.seconds(middle, FINE * self.precision))
        if plan.explores(spent, self.most_runs, share <= KNOWN * self.precision):
            seconds = self.durations.seconds(middle, max(share / 8.0, self.precision / 4.0))
            return _Step(middle, min(seconds, EXPLORE * budget))
        seconds = plan.confirmation(spent)
        runs_left, best = self.most_runs - len(runs), self._best_confirmed(runs, plan)
        if (runs_left == 1 or plan.over(spent)) and best > 0.0:
            return self.peak(runs, best, known_within(share), True)
        rate = middle * (1.0 - confirmation_below(runs_left, plan.over(spent)) * self.precision)
        if runs_left == 1:
            certain = posterior.rate(CERTAIN, max(1, round(middle * seconds)))
            rate = min(rate, max(certain, middle * (1.0 - LOWEST * self.precision)))
        rate = max(rate, self.floor)
        # Early stopping demands more of a short run, the more so the less latency depends on the rate.
        if posterior.valid(math.log(rate), max(1, round(rate * seconds))) < LIKELY:
            seconds = max(seconds, min(2.0 * seconds, plan.remaining(spent)))
        return _Step(rate, seconds, confirms=True)

    def _best_confirmed(self, runs: Sequence[SearchRun], plan: TimeBudget) -> float:
        """The largest rate up to the likeliest peak with a valid run of a confirmation's length; 0 if there is none."""
        top = self._quantiles(runs, 0.5)[0] * (1.0 + 0.15 * self.precision)
        long = [run for run in runs if plan.counts(run.queries / run.rate)]
        return max((run.rate for run in long if run.valid and run.rate <= top), default=0.0)

    def _posterior(self, runs: Sequence[SearchRun]) -> Posterior:
        most = self.bracket[1] if self.bracket else math.inf
        if self._last is None or self._last.runs != tuple(runs):
            step = self.precision / 8.0
            self._last = Posterior(runs, self.durations.bound, self.durations.percentile, step, most, self._last)
        return self._last

    def _below_refused(self, runs: Sequence[SearchRun]) -> float:
        """Half a precision below the lowest rate that a run of full length refused; inf if none did.

        Lucky short runs can make the chances too sure of too high a peak; steps of this size leave that behind.
        """
        refused = [
            run.rate for run in runs
            if not run.valid and 2 * run.queries >= run.rate * self.durations.seconds(run.rate, self.precision)
        ]  # fmt: skip
        return min(refused, default=math.inf) * (1.0 - 0.5 * self.precision)

    def half_width(self, runs: Sequence[SearchRun]) -> float:
        """Half the width of the interval that holds the peak, as a share of its rate."""
        low, high = self._quantiles(runs, OUTSIDE, 1.0 - OUTSIDE)
        return max((high / low - 1.0) / 2.0, 1e-9)

    def _quantiles(self, runs: Sequence[SearchRun], *chances: float) -> list[float]:
        """The rates below which the peak lies with these chances."""
        if self.budget is not None:
            return [math.exp(end) for end in self._posterior(runs).quantiles(*chances)]
        posterior = FixedNoisePosterior(runs, self.durations, self.precision / 8.0, self.floor, self.ceiling)
        return [math.exp(end) for end in posterior.quantiles(*chances)]

    def peak(self, runs: Sequence[SearchRun], rate: float, reason: str, confirmed: bool) -> PeakEstimate:
        """The result with the answer `rate`."""
        refused = min((run.rate for run in runs if not run.valid and run.rate > rate), default=math.inf)
        if not any(run.valid for run in runs):
            interval = (0.0, refused)
        elif all(run.valid for run in runs) and not (self.budget is not None and self._near(runs)):
            interval = (rate, refused)
        else:
            low, high = self._quantiles(runs, OUTSIDE, 1.0 - OUTSIDE)
            # The answer may be below what the posterior says, where runs at full length refused what they preferred.
            interval = (min(low, rate) if rate else low, high)
        return PeakEstimate(rate, refused, interval, tuple(runs), confirmed, reason)

    def unfinished(self, runs: Sequence[SearchRun]) -> PeakEstimate:
        """The result where no run confirmed an answer: no rate is valid, or all runs are used up."""
        accepted = [run.rate for run in runs if run.valid]
        if not accepted:
            lowest = min(runs, key=lambda run: run.rate)
            why = f": {lowest.reason}" if lowest.reason else ""
            return self.peak(runs, 0.0, f"no rate down to {lowest.rate:g} queries/s meets the bound{why}", False)
        reason, top = f"all {self.most_runs} runs are used up", math.inf
        if len(accepted) < len(runs):
            if self.budget is not None:
                plan = TimeBudget(self.budget, self.durations.seconds(runs[-1].rate, FINE * self.precision))
                if best := self._best_confirmed(runs, plan):
                    return self.peak(runs, best, reason, True)
            top = self._quantiles(runs, 0.5)[0]
        best = max((rate for rate in accepted if rate <= top), default=min(accepted))
        return self.peak(runs, best, reason, False)


def known_within(share: float) -> str:
    """'known within 1.5 %' of a share of the rate; with two digits below 10 %."""
    percent = 100.0 * share
    return f"known within {percent:.2g} %" if percent < 9.95 else f"known within {percent:.0f} %"


def _growth(runs: Sequence[SearchRun]) -> float:
    return 2.0 if sum(not run.disturbed for run in runs) < 3 else 4.0


def _fresh_seeds(first: int, runs: Sequence[SearchRun]) -> Callable[[int], int]:
    """The seed of the run after so many others; above every seed of `runs`, should these have been other ones."""
    shift = max((run.seed - first - index for index, run in enumerate(runs)), default=0)
    return lambda count: first + count + max(shift, 0)
