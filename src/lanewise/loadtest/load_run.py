"""One run of a load test: the load that LoadGen sends, the memory that it takes, and what LoadGen reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lanewise.errors import CannotMeasure
from lanewise.loadtest.interference import DISTURBED
from lanewise.results.service_result import SearchRun

SERVER, OFFLINE, SINGLE_STREAM, MULTI_STREAM = "Server", "Offline", "SingleStream", "MultiStream"
WARM_UP, OFFLINE_RUN, SEARCH = "warm-up", "offline", "search"  # roles of a run in a peak search
# A thread that sleeps sees what one core does, and queries that come behind late ones are late as well.
KNOCK_ON = 4.0  # queries that may be late for each that came while the machine stood still
# B at the peak with LoadGen 6.0.17: 323 and 169 measured (benchmarks/loadgen_memory.py), and room for a log that lags.
PER_QUERY = 510
PER_SAMPLE = 250  # of each sample in a query of many
_SHARE = 0.9  # of what is free, so that others can still breathe


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
    """What LoadGen reported of a run. Times in s, rates in 1/s; None is unknown.

    It took `seconds` and completed `qps`. `valid` is LoadGen's verdict, early stopping included, `reasons` why not.
    `latency` has p50, p90, p99, p99.9, mean, max from the scheduled time; `lag` the same of issued minus scheduled: how
    late the generator itself was. `late` queries were above the bound. `ended_early`: cut off as it could no longer
    become valid. `folder` holds LoadGen's logs; `settings` what LoadGen says it used. `interference` is the share of
    the CPU time that other processes and the hypervisor took meanwhile, 0 where a quarter and more was idle; `still`
    how long the machine stood still in all, in pieces of 4 ms and more, as a thread sees it that only sleeps. `role` in
    a peak search: warm-up, offline or search. `losses`: of queries sent to nodes, each node lost in the run.
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
    interference: float | None = None
    still: float = 0.0
    role: str = SEARCH
    losses: tuple[str, ...] = ()

    def latency_at(self, percentile: float) -> float:
        """The latency in s at that percentile (0..1), NaN if the run has none."""
        return self.latency.get(f"p{100 * percentile:g}", math.nan)

    @property
    def offered(self) -> float:
        """The rate in queries/s at which the queries of a Server run arrived by chance, 0 where that is unknown."""
        rate = self.queries / self.seconds if self.seconds > 0 else 0.0
        # More than chance apart: then the run took longer than its queries arrived, or was cut off while many waited.
        deviations = abs(rate / self.load.qps - 1.0) * math.sqrt(max(self.queries, 1))
        return rate if deviations < 5.0 else 0.0

    @property
    def disturbed(self) -> bool:
        """Whether it may have been refused because a node was lost, other work took the machine's time, or the machine
        stood still."""
        if self.valid:
            return False
        if self.losses:
            return True
        shared = self.interference is not None and self.interference > DISTURBED
        return shared or 0 < self.late <= KNOCK_ON * self.load.qps * self.still

    def search_run(self) -> SearchRun:
        """The run as the peak search reads it."""
        load = self.load
        completed = min(1.0, self.queries / max(load.queries, load.qps * load.seconds))
        return SearchRun(
            load.qps, load.seed, self.valid and not self.ended_early, self.latency_at(load.percentile), self.queries,
            "; ".join(self.reasons), self.seconds, self.ended_early, completed, self.offered, self.disturbed,
        )  # fmt: skip


class LoadRunner(Protocol):
    """Runs one load on a system under test that stays loaded between runs."""

    def run(self, load: LoadSpec) -> LoadGenResult:
        """CannotMeasure where the system failed; what KeyboardInterrupt cut off keeps its logs."""


def memory_needed(load: LoadSpec) -> int:
    """Bytes that LoadGen will take at the peak of a run, its queries and their log; not the system's own.

    LoadGen makes all queries before it issues the first.
    """
    due = load.qps * load.seconds
    if load.scenario == SERVER:
        return PER_QUERY * math.ceil(max(load.queries, due))
    if load.scenario == OFFLINE:
        return PER_SAMPLE * math.ceil(max(load.queries, 1.1 * due))
    per_query = PER_QUERY + (PER_SAMPLE * load.samples if load.scenario == MULTI_STREAM else 0)
    return per_query * math.ceil(max(load.queries, 2.0 * due))


def check_memory(load: LoadSpec, free: int | None) -> None:
    """CannotMeasure with what is needed and what is `free` where a run does not fit."""
    need = memory_needed(load)
    if free is None or need <= _SHARE * free:
        return
    seconds = math.floor(_SHARE * free / need * load.seconds)
    shorter = (
        f"a run of {seconds} s fits" if seconds >= 1 and load.qps * seconds >= load.queries else "ask for a lower rate"
    )
    raise CannotMeasure(
        f"LoadGen makes its queries beforehand: this run needs {_gb(need)} of memory, {_gb(free)} are free",
        hint=f"{shorter}, or free memory",
    )


def _gb(count: int) -> str:
    return f"{count / 1e9:.3g} GB"
