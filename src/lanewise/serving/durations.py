"""What a search for a peak is made of: its runs, how long they last, and what it found."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lanewise.errors import InputError

# The standard deviation of the boundary that a run of n queries sees is about NOISE / sqrt(n), relative: late queries
# come in clusters, whose length and whose sensitivity to the rate grow alike towards saturation. Simulated with M/D/1,
# service 1 ms, p99 within 15 ms: 2.3 for runs of 10 s, 2.7 for 60 s.
NOISE = 2.5


@dataclass(frozen=True, slots=True)
class Trial:
    """One finished run: its target rate in queries/s, its verdict, and the latency in s at the bound's percentile.

    `hopeless` says that it was cut off because it could no longer become valid: then its verdict is certain. `offered`
    is the rate at which its queries came by chance, if known: its latency is that of this rate;
    `done` the share of its queries that it sent before it was cut off. `disturbed`: something else on the machine may
    be why it was refused.
    InputError for a rate that is not a positive number.
    """

    qps: float
    seed: int
    valid: bool
    latency: float
    queries: int
    reason: str = ""
    hopeless: bool = False
    offered: float = 0.0
    done: float = 0.0
    disturbed: bool = False

    def __post_init__(self) -> None:
        check_positive("rate of a trial", self.qps)


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

    def spread(self, trial: Trial) -> float:
        """The share by which the boundary that this run saw may lie off the true one (standard deviation)."""
        queries = max(trial.queries, 1)
        return NOISE / math.sqrt(queries) + self.bound * trial.qps / queries


@dataclass(frozen=True, slots=True)
class PeakEstimate:
    """What a search found, rates in queries/s, and why it stopped.

    `low` is the answer: the rate of the valid run it ended on, or 0 if no rate is known to meet the bound. `high` is
    the smallest rate above it that was refused, or inf. `interval` holds the true peak with 90 % chance by the
    search's own model of chance (in simulated M/D/1 searches it held it in 77 to 87 of 100); inf above the largest rate
    tried, 0 below the smallest. `confirmed` says that the last run, of full length, was valid at
    `low`.
    """

    low: float
    high: float
    interval: tuple[float, float]
    trials: tuple[Trial, ...]
    confirmed: bool
    reason: str

    @property
    def qps(self) -> float:
        """The answer: `low`."""
        return self.low

    @property
    def found(self) -> bool:
        """Whether any rate meets the bound."""
        return self.low > 0.0


def check_positive(name: str, value: float) -> None:
    """InputError unless the value is a number above 0."""
    if not 0.0 < value < math.inf:
        raise InputError(f"a {name} of {value}", hint="give a number above 0")
