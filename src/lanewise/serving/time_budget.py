"""How a search for a peak spends real time: how long its runs last, and how sure of its verdict each confirmation is.

A run near the peak tells where it is however it ends, so time spent there is never lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# All found by simulating M/D/1, M/M/1, batched and several servers: benchmarks/peak_search.py.
HUNT = 0.05  # the precision, and the share of the budget, of runs that only look for the region of the peak
KNOWN = 0.8  # exploring ends once half the interval is this many precisions wide
FINE = 0.35  # a confirmation tells rates apart that differ by this share of the precision, if the budget allows
EXPLORE = 0.25  # the largest share of the budget for one exploring run
CONFIRM = 0.1  # and for one confirmation
RESERVE = 1.0  # confirmations that time is kept for
BELOW = (0.2, 0.3, 0.4)  # precisions below the likeliest peak: confirmations with four runs left or more, three, two
LIKELY = 0.35  # a confirmation less likely to be valid than this takes twice the time, where there is time
OVERTIME = 0.6  # and once time is used up without a valid run
CERTAIN = 0.9  # chance of being valid of a confirmation that is the last
LOWEST = 2.5  # but no further below the likeliest peak, in precisions
RUNS = len(BELOW) + 1  # kept for confirmations
Spent = Sequence[tuple[float, bool]]  # seconds and verdict of each run


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """A `budget` in s, and the seconds that a confirmation needs for the precision asked for."""

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

    def exploration(self, seconds: float) -> float:
        """Seconds of an exploring run that would take so many."""
        return min(seconds, EXPLORE * self.budget)

    def over(self, spent: Spent) -> bool:
        """Whether no time is left for another confirmation."""
        return self.remaining(spent) < 0.5 * self.full

    def confirmation(self, spent: Spent) -> float:
        """Seconds of the next confirmation: all that is left, but no less than makes it one."""
        return max(min(self.full, self.remaining(spent)), 0.55 * self.full)


def below(runs_left: int, over: bool) -> float:
    """How far below the likeliest peak to confirm with so many runs left, in precisions; `over`: with no time left."""
    return OVERTIME if over else BELOW[min(max(RUNS - runs_left, 0), len(BELOW) - 1)]
