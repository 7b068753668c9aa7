"""An inference service under load as plain data: what a report draws, a run saves and two runs compare.

Who made it does not matter: the event simulation, or a load test of real machines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from lanewise.errors import InputError
from lanewise.results.network_share import NetworkShare
from lanewise.results.observation import Source


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
    """A link, window, engine or GPU: its use (0..1), the `mean` and a `series` of one value an interval of the run.

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
class SearchRun:
    """One run of a peak search: its target `rate` in queries/s and its verdict.

    `latency` (s) is that at the percentile of the bound, inf or NaN where the run gave none; `duration` (s) is how long
    load was sent. `hopeless`: the run was cut off because it could no longer become valid, so its verdict is certain;
    `completed` is the share of its queries sent until then. `offered` is the rate in queries/s at which queries arrived
    by chance, 0 where unknown: the latency is that of this rate. `disturbed`: other work on the machine may be why the
    run is not valid. InputError for a rate that is not a positive number.
    """

    rate: float
    seed: int
    valid: bool
    latency: float
    queries: int
    reason: str = ""
    duration: float = 0.0
    hopeless: bool = False
    completed: float = 1.0
    offered: float = 0.0
    disturbed: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.rate < math.inf:
            raise InputError(f"a search run at {self.rate} queries/s", hint="give a rate above 0")


@dataclass(frozen=True, slots=True)
class ServiceResult:
    """One service at one rate: latency percentiles, time by stage, utilisation, and whether the bound was met.

    `qps` and `answered` are the rates (queries/s) sent and answered, `goodput` (B/s) that of the input; `latency` (s)
    is that at `percentile` (share), to be within `bound` (s); `batch` is the mean batch in samples, `duration` (s) the
    time of the run. `percentiles` are (share 0..1, latency s), ascending; `series_step` is the width in s of the
    intervals of each ResourceUtilization.series. `peak` is the interval in QPS that contains the largest valid rate,
    with the `search_runs` that found it; both are empty for a single rate. `steady` is the rate in QPS that
    GPUs and paths allow without any bound. `network` compares a service in the Network division with Closed.
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
    network: NetworkShare | None = None
