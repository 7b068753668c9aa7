"""The largest rate at which a service meets its latency bound, found by runs whose verdicts are partly chance.

What makes a run is the caller's: an event simulation or a load test of real machines. The search keeps the chance of
each possible peak, given all runs so far, and runs next where the peak is as likely above as below. Where verdicts are
certain that is bisection; where they contradict each other it repeats runs around the boundary until the peak is known
to the precision asked for (Waeber, Frazier, Henderson, "Bisection search with noisy responses", SIAM J. Control and
Optimization 51, 2013; Watson, Pelli, "QUEST", Perception & Psychophysics 33, 1983). It ends on a valid run at the
answer. What it does next depends on the finished runs alone, so a search that was cut off resumes from them. Real time
is dear: within a budget `serving.time_budget` says how long runs last, `serving.posterior` at which rate one confirms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lanewise.errors import InputError
from lanewise.serving import time_budget
from lanewise.serving.durations import Durations, PeakEstimate, Trial, check_positive

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lanewise.serving.posterior import Posterior

# How often a verdict has nothing to do with the rate: a hiccup of the host.
LAPSE = 0.02
# A trial whose latency puts the peak within CLOSE spreads of its rate says where the peak is, not only on which side.
CLOSE = 3.0
# The power of the rate by which latency grows around the bound, until trials tell: rho / (1 - rho) at a load of 0.85.
STEEPNESS = 6.0
# Chance left on each side of the interval.
OUTSIDE = 0.05
# The last runs are kept for confirmation, each further below the likeliest peak: with one left, two left, ...
CONFIRM_AT = (0.02, 0.25, 0.5)
CONFIRM_FIRST = 0.15
BEYOND = 1.1  # of the bracket's upper end is tried at least, once that end was valid
AGAIN = 3  # runs at a rate before a search goes down from it, where something else may be why they were refused


# Runs at a rate (queries/s) with a seed for a time (s).
RunFunction = Callable[[float, int, float], Trial]


def find_peak(
    run: RunFunction, *, durations: Durations, bracket: tuple[float, float] | None = None, start: float = 100.0,
    floor: float | None = None, ceiling: float | None = None, precision: float = 0.0025, seed: int = 1,
    most_runs: int = 40, earlier: Sequence[Trial] = (), on_trial: Callable[[Trial], None] | None = None,
    budget: float | None = None,
) -> PeakEstimate:  # fmt: skip
    """The largest rate (queries/s) whose runs are valid, within `precision` of the rate either way.

    It begins amid `bracket`, a prediction that may be wrong, else at `start`, and never leaves `floor` .. `ceiling`;
    without a floor that is the rate at which the longest run just has its fewest queries. `most_runs` counts those of
    `earlier` too, which are not repeated. `on_trial` is given each run as it ends; what `run` raises, KeyboardInterrupt
    too, goes through to the caller. `budget`: seconds of load that all runs together should take. InputError for rates,
    precision or counts out of range.
    """
    search = _Search(durations, bracket, start, floor, ceiling, precision, most_runs, budget)
    trials = list(earlier)
    seeds = _fresh_seeds(seed, trials)
    if trials and search.confirmed_by_last(trials):
        return search.known_peak(trials)
    while len(trials) < most_runs:
        step = search.next(trials)
        if isinstance(step, PeakEstimate):
            return step
        trial = run(step.qps, seeds(len(trials)), step.duration)
        trials.append(trial)
        if on_trial is not None:
            on_trial(trial)
        if step.confirms and trial.valid:
            return search.known_peak(trials)
    return search.unfinished(trials)


@dataclass(frozen=True, slots=True)
class _Step:
    qps: float
    duration: float
    confirms: bool = False


@dataclass(frozen=True, slots=True)
class _Search:
    """What was asked for; its methods depend on the finished trials alone."""

    durations: Durations
    bracket: tuple[float, float] | None
    start: float
    asked_floor: float | None
    asked_ceiling: float | None
    precision: float
    most_runs: int
    budget: float | None = None
    floor: float = field(init=False)
    ceiling: float = field(init=False)

    def __post_init__(self) -> None:
        if self.bracket is not None:
            low, high = self.bracket
            check_positive("lower end of the bracket", low)
            check_positive("upper end of the bracket", high)
            if low > high:
                raise InputError(f"the bracket {low:g} to {high:g} is empty", hint="give its lower end first")
        floor = self.asked_floor
        if floor is None:
            floor = self.durations.queries / self.durations.longest
        elif floor != 0.0:
            check_positive("floor", floor)
        ceiling = math.inf if self.asked_ceiling is None else self.asked_ceiling
        if self.asked_ceiling is not None:
            check_positive("ceiling", self.asked_ceiling)
        check_positive("rate to start from", self.start)
        if floor > ceiling:
            raise InputError(
                f"the ceiling, {ceiling:g} queries/s, is below the floor, {floor:g}",
                hint="raise the ceiling, or allow longer runs: a run needs enough queries for a verdict",
            )
        if not 1e-4 <= self.precision <= 0.5:
            raise InputError(f"a precision of {self.precision}", hint="give it as a share from 0.0001 to 0.5")
        if self.most_runs < 1:
            raise InputError(f"a search of {self.most_runs} runs", hint="allow 1 run or more")
        if self.budget is not None:
            check_positive("budget in s", self.budget)
        object.__setattr__(self, "floor", floor)
        object.__setattr__(self, "ceiling", ceiling)

    def next(self, trials: Sequence[Trial]) -> _Step | PeakEstimate:
        """The next run, or the end if floor or ceiling has settled it."""
        if not trials:
            first = math.sqrt(self.bracket[0] * self.bracket[1]) if self.bracket else self.start
            return self._hunt(first)
        accepted = [trial.qps for trial in trials if trial.valid]
        refused = [trial.qps for trial in trials if not trial.valid]
        if self.budget is not None and self._tells(trials) and not (max(accepted, default=0.0) >= self.ceiling):
            return self._within(trials, self.budget)
        if not refused:
            return self._up(trials, max(accepted))
        if not accepted:
            return self._down(trials, min(refused))
        return self._between(trials)

    def confirmed_by_last(self, trials: Sequence[Trial]) -> bool:
        """Whether the search had ended on the last of these trials, as one that is asked for again has."""
        last, before = trials[-1], trials[:-1]
        if not last.valid or len(before) >= self.most_runs:
            return False
        step = self.next(before)
        return isinstance(step, _Step) and step.confirms and math.isclose(step.qps, last.qps)

    def known_peak(self, trials: Sequence[Trial]) -> PeakEstimate:
        """The rate of the last trial, which confirmed it."""
        return self.peak(trials, trials[-1].qps, f"known within {100.0 * self.known(trials):.2g} %", True)

    def _tells(self, trials: Sequence[Trial]) -> bool:
        """Whether the latency of any run puts the peak somewhere, so that chances say where to look."""
        bound = self.durations.bound
        return any(not trial.hopeless and bound / 4.0 < trial.latency < 4.0 * bound for trial in trials)

    def _up(self, trials: Sequence[Trial], top: float) -> _Step | PeakEstimate:
        if top >= self.ceiling:
            return self.peak(trials, top, f"valid up to the ceiling of {self.ceiling:g} queries/s", True)
        if self.bracket is None:
            return self._hunt(top * _growth(trials))
        low, high = self.bracket
        if top < high:
            return self._hunt(high)
        # The upper end is expected to bound the peak, which lies just above it if above it at all.
        above = [trial for trial in trials if trial.qps > high]
        return self._hunt(top * (_growth(above) if above else min(max(high / low, BEYOND), 2.0)))

    def _down(self, trials: Sequence[Trial], bottom: float) -> _Step | PeakEstimate:
        if bottom <= self.floor:
            return self.unfinished(trials)
        if trials[-1].disturbed and sum(trial.qps == bottom for trial in trials) < AGAIN:
            return self._hunt(bottom)
        if self.bracket is not None and bottom > self.bracket[0]:
            return self._hunt(self.bracket[0])
        return self._hunt(bottom / _growth(trials))

    def _hunt(self, qps: float) -> _Step:
        """A short run, but of full length at the ends, where one run settles the search."""
        qps = min(max(qps, self.floor), self.ceiling)
        at_end = qps in (self.floor, self.ceiling)
        if self.budget is not None:
            seconds = self.durations.of(qps, time_budget.HUNT)
            return _Step(qps, min(seconds, max(time_budget.HUNT * self.budget, self.durations.shortest)))
        return _Step(qps, self.durations.of(qps, self.precision if at_end else 0.5))

    def _between(self, trials: Sequence[Trial]) -> _Step | PeakEstimate:
        if self.budget is not None:
            return self._within(trials, self.budget)
        left = self.most_runs - len(trials)
        share = self.known(trials)
        if share > self.precision and left > len(CONFIRM_AT):
            qps = self._quantiles(trials, 0.5)[0]
            return _Step(qps, self.durations.of(qps, max(share / 4.0, self.precision)))
        chance = CONFIRM_AT[left - 1] if left <= len(CONFIRM_AT) else CONFIRM_FIRST
        qps = min(self._quantiles(trials, chance)[0], self._below_refused(trials))
        return _Step(qps, self.durations.of(qps, self.precision), confirms=True)

    def _within(self, trials: Sequence[Trial], budget: float) -> _Step | PeakEstimate:
        """Exploring while time is left for confirmations and the peak is not known; then confirming, ever lower."""
        belief = self._belief(trials)
        middle, share = math.exp(belief.quantiles(0.5)[0]), self.known(trials)
        spent = [(trial.queries / trial.qps, trial.valid) for trial in trials]
        plan = time_budget.TimeBudget(budget, self.durations.of(middle, time_budget.FINE * self.precision))
        if plan.explores(spent, self.most_runs, share <= time_budget.KNOWN * self.precision):
            return _Step(middle, plan.exploration(self.durations.of(middle, max(share / 8.0, self.precision / 4.0))))
        seconds = plan.confirmation(spent)
        left, best = self.most_runs - len(trials), self._confirmed(trials, plan)
        if (left == 1 or plan.over(spent)) and best > 0.0:
            return self.peak(trials, best, f"known within {100.0 * share:.2g} %", True)
        qps = middle * (1.0 - time_budget.below(left, plan.over(spent)) * self.precision)
        if left == 1:
            certain = belief.rate(time_budget.CERTAIN, max(1, round(middle * seconds)))
            qps = min(qps, max(certain, middle * (1.0 - time_budget.LOWEST * self.precision)))
        qps = max(qps, self.floor)
        # Early stopping asks more of a short run, the more so the less latency depends on the rate.
        if belief.valid(math.log(qps), max(1, round(qps * seconds))) < time_budget.LIKELY:
            seconds = max(seconds, min(2.0 * seconds, plan.left(spent)))
        return _Step(qps, seconds, confirms=True)

    def _confirmed(self, trials: Sequence[Trial], plan: time_budget.TimeBudget) -> float:
        """The largest rate up to the likeliest peak with a valid run of a confirmation's length; 0 if there is none."""
        middle = self._quantiles(trials, 0.5)[0]
        long = [trial for trial in trials if plan.counts(trial.queries / trial.qps)]
        return max(
            (trial.qps for trial in long if trial.valid and trial.qps <= middle * (1.0 + 0.15 * self.precision)),
            default=0.0,
        )

    def _belief(self, trials: Sequence[Trial]) -> Posterior:
        from lanewise.serving.posterior import Posterior, Seen

        bound = self.durations.bound
        seen = [
            Seen(t.offered or t.qps, t.latency / bound, t.queries, t.valid, t.done if t.hopeless else 1.0, t.disturbed)
            for t in trials
        ]
        return Posterior(
            seen, self.durations.percentile, self.precision / 8.0, self.bracket[1] if self.bracket else math.inf
        )

    def _below_refused(self, trials: Sequence[Trial]) -> float:
        """Half a precision below the lowest rate that a run of full length refused; inf if none did.

        Lucky short runs can make the chances too sure of too high a peak; steps of this size leave that behind.
        """
        refused = [
            trial.qps
            for trial in trials
            if not trial.valid and 2 * trial.queries >= trial.qps * self.durations.of(trial.qps, self.precision)
        ]
        return min(refused, default=math.inf) * (1.0 - 0.5 * self.precision)

    def known(self, trials: Sequence[Trial]) -> float:
        """Half the width of the interval that holds the peak, as a share of its rate."""
        low, high = self._quantiles(trials, OUTSIDE, 1.0 - OUTSIDE)
        return max((high / low - 1.0) / 2.0, 1e-9)

    def _quantiles(self, trials: Sequence[Trial], *chances: float) -> list[float]:
        """The rates below which the peak lies with these chances."""
        if self.budget is not None:
            return [math.exp(end) for end in self._belief(trials).quantiles(*chances)]
        import numpy as np

        rates = [trial.qps for trial in trials]
        low = math.log(max(min(rates) / 2.0, min(self.floor, min(rates))))
        high = math.log(min(max(rates) * 2.0, max(self.ceiling, max(rates))))
        grid = np.linspace(low, high, 2 + math.ceil((high - low) / (self.precision / 8.0)))
        weights = np.exp(self._log_chances(trials, grid))
        below = np.cumsum(weights)
        return [math.exp(float(np.interp(chance * below[-1], below, grid))) for chance in chances]

    def _log_chances(self, trials: Sequence[Trial], grid: NDArray[np.float64]) -> NDArray[np.float64]:
        import numpy as np

        found: NDArray[np.float64] = np.zeros_like(grid)
        steepness = self._steepness(trials)
        for trial in trials:
            spread = self.durations.spread(trial)
            shift = self._shift(trial, steepness)
            away = (grid - math.log(trial.qps) - shift) / spread
            if abs(shift) < CLOSE * spread:
                found += np.log(LAPSE + np.exp(-0.5 * away**2))
                continue
            # Too far off for its latency to say how far: a logistic curve of that standard deviation, about the rate.
            steps = np.clip((grid - math.log(trial.qps)) / spread * (math.pi / math.sqrt(3.0)), -40.0, 40.0)
            valid = 0.5 * (1.0 + np.tanh(steps / 2.0))
            lapse = 1e-9 if trial.hopeless else LAPSE
            found += np.log(lapse + (1.0 - 2.0 * lapse) * (valid if trial.valid else 1.0 - valid))
        found -= found.max()
        return found

    def _shift(self, trial: Trial, steepness: float) -> float:
        """How far above the rate (logarithm) the trial's latency puts the peak; inf if it has none to go by."""
        if trial.hopeless or not 0.0 < trial.latency < math.inf:
            return math.inf
        return math.log(self.durations.bound / trial.latency) / steepness

    def _steepness(self, trials: Sequence[Trial]) -> float:
        """By what power of the rate the latency grows around the bound: a line through the trials near it."""
        bound = self.durations.bound
        near = [trial for trial in trials if bound / 4.0 < trial.latency < bound * 4.0]
        rates = [math.log(trial.qps) for trial in near]
        mean = sum(rates) / max(len(rates), 1)
        pull = 0.03**2  # the weight of STEEPNESS: that of a trial 3 % off
        product = sum((rate - mean) * math.log(trial.latency / bound) for rate, trial in zip(rates, near, strict=True))
        square = sum((rate - mean) ** 2 for rate in rates)
        return min(max((product + STEEPNESS * pull) / (square + pull), 2.0), 50.0)

    def peak(self, trials: Sequence[Trial], low: float, reason: str, confirmed: bool) -> PeakEstimate:
        """The result with the answer `low`."""
        high = min((trial.qps for trial in trials if not trial.valid and trial.qps > low), default=math.inf)
        if not any(trial.valid for trial in trials):
            interval = (0.0, high)
        elif all(trial.valid for trial in trials) and not (self.budget is not None and self._tells(trials)):
            interval = (low, high)
        else:
            interval_low, interval_high = self._quantiles(trials, OUTSIDE, 1.0 - OUTSIDE)
            # The answer may lie below what the chances say, where runs at full length refused what they preferred.
            interval = (min(interval_low, low) if low else interval_low, interval_high)
        return PeakEstimate(low, high, interval, tuple(trials), confirmed, reason)

    def unfinished(self, trials: Sequence[Trial]) -> PeakEstimate:
        """The result where no run confirmed an answer: no rate is valid, or all runs are used up."""
        if not any(trial.valid for trial in trials):
            lowest = min(trials, key=lambda trial: trial.qps)
            why = f": {lowest.reason}" if lowest.reason else ""
            return self.peak(trials, 0.0, f"no rate down to {lowest.qps:g} queries/s meets the bound{why}", False)
        top = math.inf
        if self.budget is not None and not all(trial.valid for trial in trials):
            plan = time_budget.TimeBudget(
                self.budget, self.durations.of(trials[-1].qps, time_budget.FINE * self.precision)
            )
            if best := self._confirmed(trials, plan):
                return self.peak(trials, best, f"all {self.most_runs} runs are used up", True)
        if not all(trial.valid for trial in trials):
            top = self._quantiles(trials, 0.5)[0]
        accepted = [trial.qps for trial in trials if trial.valid]
        low = max((qps for qps in accepted if qps <= top), default=min(accepted))
        return self.peak(trials, low, f"all {self.most_runs} runs are used up", False)


def _growth(trials: Sequence[Trial]) -> float:
    return 2.0 if sum(not trial.disturbed for trial in trials) < 3 else 4.0


def _fresh_seeds(first: int, trials: Sequence[Trial]) -> Callable[[int], int]:
    """The seed of the run after so many others; above every seed of `trials`, should these have been other ones."""
    shift = max((trial.seed - first - index for index, trial in enumerate(trials)), default=0)
    return lambda done: first + done + max(shift, 0)
