"""How long the runs of a peak search last, and how a search spends a budget of real time.

A run near the peak tells where it is however it ends, so time spent there is never lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.errors import InputError
from lanewise.results.service_result import SearchRun

# The standard deviation of the boundary that a run of n queries sees is about NOISE / sqrt(n), relative: late queries
# come in clusters, whose length and whose sensitivity to the rate grow alike towards saturation. Simulated with M/D/1,
# service 1 ms, p99 within 15 ms: 2.3 for runs of 10 s, 2.7 for 60 s.
NOISE = 2.5
# All from simulations of M/D/1, M/M/1, batched and several servers: benchmarks/peak_search.py.
EXPLORE = 0.25  # the largest share of the budget for one exploring run
CONFIRM = 0.1  # and for one confirmation
RESERVE = 1.0  # confirmations that time is kept for
BELOW = (0.2, 0.3, 0.4)  # precisions below the likeliest peak: confirmations with four runs left or more, three, two
OVERTIME = 0.6  # and once time is used up without a valid run
RUNS = len(BELOW) + 1  # kept for confirmations
Spent = Sequence[tuple[float, bool]]  # seconds and verdict of each run


@dataclass(frozen=True, slots=True)
class Durations:
    """How long runs last, in s: shortest while little is known, long enough in the end to tell the peak's precision.

    `bound` is the latency bound in s: above saturation by a share e the backlog grows by e seconds a second, so that
    only runs longer than bound / e show it. `queries` are the fewest of a run, `percentile` that of the bound.
    InputError for what is not positive.
    """

    bound: float
    shortest: float = 1.0
    longest: float = 600.0
    queries: int = 1000
    percentile: float = 0.99

    def __post_init__(self) -> None:
        check_positive("latency bound", self.bound)
        check_positive("shortest run", self.shortest)
        check_positive("number of queries", self.queries)
        if not self.longest >= self.shortest:
            raise InputError(
                f"the longest run, {self.longest} s, is shorter than the shortest, {self.shortest} s",
                hint="give the longest run at least as many seconds as the shortest",
            )

    def seconds(self, qps: float, share: float) -> float:
        """Seconds of a run at `qps` that tells rates apart which differ by this share."""
        need = max(self.bound / share, (NOISE / share) ** 2 / qps, self.queries / qps)
        return min(max(need, self.shortest), self.longest)

    def deviation(self, run: SearchRun) -> float:
        """The standard deviation of the boundary that this run measured, as a share of the rate."""
        queries = max(run.queries, 1)
        return NOISE / math.sqrt(queries) + self.bound * run.rate / queries


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """A `budget` in s, and the seconds that a confirmation needs for the wanted precision."""

    budget: float
    need: float

    @property
    def full(self) -> float:
        """Seconds of a confirmation."""
        return min(self.need, CONFIRM * self.budget)

    def counts(self, seconds: float) -> bool:
        """Whether a run was long enough to be a confirmation."""
        return seconds >= 0.5 * self.full

    def remaining(self, spent: Spent) -> float:
        """Seconds of the budget that are left, 0 or more."""
        return max(0.0, self.budget - sum(seconds for seconds, _ in spent))

    def explores(self, spent: Spent, most_runs: int, precise: bool) -> bool:
        """Whether another run may look for the peak instead of confirming it."""
        time = self.remaining(spent) > RESERVE * self.full + 0.5 * EXPLORE * self.budget
        return time and most_runs - len(spent) > RUNS and not precise

    def over(self, spent: Spent) -> bool:
        """Whether no time is left for another confirmation."""
        return self.remaining(spent) < 0.5 * self.full

    def confirmation(self, spent: Spent) -> float:
        """Seconds of the next confirmation: all that is left, but no less than makes it one."""
        return max(min(self.full, self.remaining(spent)), 0.55 * self.full)


def confirmation_below(runs_left: int, over: bool) -> float:
    """How far below the likeliest peak to confirm with so many runs left, in precisions; `over`: with no time left."""
    return OVERTIME if over else BELOW[min(max(RUNS - runs_left, 0), len(BELOW) - 1)]


def check_positive(name: str, value: float) -> None:
    """InputError unless the value is a number above 0."""
    if not 0.0 < value < math.inf:
        raise InputError(f"a {name} of {value}", hint="give a number above 0")
