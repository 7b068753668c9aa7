"""How long the runs of a peak search last."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lanewise.errors import InputError
from lanewise.results.search_run import SearchRun

# The standard deviation of the boundary that a run of n queries sees is about NOISE / sqrt(n), relative: late queries
# come in clusters, whose length and whose sensitivity to the rate grow alike towards saturation. Simulated with M/D/1,
# service 1 ms, p99 within 15 ms: 2.3 for runs of 10 s, 2.7 for 60 s.
NOISE = 2.5


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

    def of(self, qps: float, share: float) -> float:
        """Seconds of a run at `qps` that tells rates apart which differ by this share."""
        need = max(self.bound / share, (NOISE / share) ** 2 / qps, self.queries / qps)
        return min(max(need, self.shortest), self.longest)

    def deviation(self, run: SearchRun) -> float:
        """The standard deviation of the boundary that this run measured, as a share of the rate."""
        queries = max(run.queries, 1)
        return NOISE / math.sqrt(queries) + self.bound * run.rate / queries


def check_positive(name: str, value: float) -> None:
    """InputError unless the value is a number above 0."""
    if not 0.0 < value < math.inf:
        raise InputError(f"a {name} of {value}", hint="give a number above 0")
