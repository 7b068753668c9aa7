"""One run of a load test: what is asked of it and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

SERVER, OFFLINE, SINGLE_STREAM, MULTI_STREAM = "Server", "Offline", "SingleStream", "MultiStream"


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """What a run sends: `qps` is the target rate (samples/s in Offline; unused in the stream scenarios), `bound` the
    latency bound in s that `percentile` of the answers must meet, `seconds` and `queries` the least of a run.

    `coalesce` lets LoadGen hand over the queries due together in one call; `samples` are those of a MultiStream query.
    """

    scenario: str = SERVER
    qps: float = 0.0
    seconds: float = 10.0
    queries: int = 1000
    bound: float = 0.015
    percentile: float = 0.99
    seed: int = 1
    accuracy: bool = False
    coalesce: bool = False
    samples: int = 8


@dataclass(frozen=True, slots=True)
class LoadGenResult:
    """What a run gave. Times in s, rates in 1/s; None is unknown.

    `valid` is LoadGen's verdict, early stopping included, `reasons` why not. `latency` has p50, p90, p99, p99.9, mean,
    max from the scheduled time; `lag` the same of issued minus scheduled: how late the generator itself was. `late`
    queries were above the bound. `ended_early`: cut off as it could no longer become valid. `folder` holds LoadGen's
    logs; `settings` what LoadGen says it used. `others` is the share of the CPU time that other
    processes and the hypervisor took meanwhile, 0 where a quarter and more was idle; `still` how
    long the machine stood still in all, in pieces of 4 ms and more, as a thread sees it that only sleeps.
    """

    load: LoadSpec
    valid: bool
    reasons: tuple[str, ...]
    queries: int
    seconds: float
    qps: float  # completed
    latency: Mapping[str, float]
    late: int
    lag: Mapping[str, float] = field(default_factory=dict)
    ended_early: bool = False
    folder: Path | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    others: float | None = None
    still: float = 0.0


class LoadRunner(Protocol):
    """Runs one load on a system under test that stays loaded between runs."""

    def run(self, load: LoadSpec) -> LoadGenResult:
        """CannotMeasure where the system failed; what KeyboardInterrupt cut off keeps its logs."""
