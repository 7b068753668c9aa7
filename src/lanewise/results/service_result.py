"""An inference service under load as plain data: what a report draws, a run saves and two runs compare.

Who made it does not matter: the event simulation, or a load test of real machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lanewise.results.observation import Source
from lanewise.results.search_run import SearchRun


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a query's time goes: seconds spent in `name`, the mean of all queries and of the slowest ones.

    The slowest are those at or above the percentile that the bound is for.
    """

    name: str
    mean: float
    slowest: float


@dataclass(frozen=True, slots=True)
class ResourceUtilization:
    """A link, window, engine or GPU: its use (0..1) on average, and in each interval of the run.

    `kind` is link, window, engine, GPU or other.
    """

    name: str
    mean: float
    series: tuple[float, ...] = ()
    kind: str = "link"


@dataclass(frozen=True, slots=True)
class Advice:
    """A change worth making: what it is, and what it would bring (QPS at the peak, as a ratio of today's)."""

    says: str
    gain: float | None = None


@dataclass(frozen=True, slots=True)
class ServiceResult:
    """One service at one rate: latency percentiles, where time went, what was busy, and whether the bound held.

    `percentiles` are (share 0..1, latency s), ascending; `series_step` is the width in s of the intervals of each
    ResourceUtilization.series. `peak` is the interval in QPS in which the largest valid rate lies, with the
    `search_runs` that found it; both are empty where a single rate was asked. `steady` is the rate in QPS that GPUs and
    paths allow without any bound.
    """

    name: str
    workload: str
    scenario: str
    system: str
    source: Source
    qps: float
    answered: float
    queries: int
    late: int
    bound: float
    percentile: float
    latency: float
    valid: bool
    reason: str
    limit: str
    basis: str
    rests_on: tuple[str, ...] = ()
    percentiles: tuple[tuple[float, float], ...] = ()
    stages: tuple[Stage, ...] = ()
    utilization: tuple[ResourceUtilization, ...] = ()
    series_step: float = 0.0
    batch: float = 0.0
    peak: tuple[float, float] | None = None
    search_runs: tuple[SearchRun, ...] = ()
    steady: float | None = None
    advice: tuple[Advice, ...] = ()
    goodput: float = 0.0
    duration: float = 0.0
    seed: int = 0
    settings: Mapping[str, int] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    note: str = ""
