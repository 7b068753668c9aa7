"""One run of a search for a service's peak, simulated or real."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lanewise.errors import InputError


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
