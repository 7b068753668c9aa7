"""The generator's own ceiling on this host: the largest rate that is VALID on a system that answers at once.

Rates are doubled until one is not valid, then the gap is halved. A load test at more than half of this ceiling measures
the generator as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lanewise.errors import CannotMeasure
from lanewise.loadtest.load_run import LoadGenResult, LoadRunner, LoadSpec
from lanewise.loadtest.loadgen import LoadGenRunner, RunnerSetup, needs_loadgen
from lanewise.serving.verdict import minimum_queries

PLAIN, COALESCED = "plain", "coalesced"
MODES = (PLAIN, COALESCED)
FLAGGED_ABOVE = 0.5  # of the ceiling: a peak is flagged where the generator alone does not hold it twice
_LATE = 10  # queries that may be late in the shortest run


@dataclass(frozen=True, slots=True)
class GeneratorCeiling:
    """The largest valid rate of a mode in queries/s, and the least that was not (inf: none tried failed).

    Of the run at the ceiling: `latency`, and `lag`, how late queries were issued; in s.
    """

    mode: str
    qps: float
    failed: float
    runs: int
    latency: Mapping[str, float] = field(default_factory=dict)
    lag: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class CeilingSearch:
    """How a ceiling is looked for: the first rate, length of a run in s, `tries` of each rate, gap at the end."""

    start: float = 50_000.0
    seconds: float = 2.0
    tries: int = 2
    precision: float = 0.05
    bound: float = 0.015
    percentile: float = 0.99


def null_runner(folder: Path, at_once: bool = False) -> LoadGenRunner:
    """A runner on the null system; its answers take the path of a real system's, or return within the call."""
    needs_loadgen()
    from lanewise._native import NullSystem

    return LoadGenRunner(NullSystem(), folder, RunnerSetup(direct=at_once))


def ceilings(
    runner: LoadRunner,
    effort: CeilingSearch,
    modes: tuple[str, ...] = MODES,
    say: Callable[[str], object] = lambda _: None,
) -> Iterator[GeneratorCeiling]:
    """The ceiling of each mode, as it is found; `say` hears of every run."""
    for mode in modes:
        yield _search(runner, effort, mode, say)


def holds(runner: LoadRunner, effort: CeilingSearch, mode: str, rate: float) -> bool:
    """Whether one of some runs at a rate is VALID on a system that answers at once; CannotMeasure without memory."""
    return _attempt(runner, effort, mode, rate)[0].valid


def doubt(folder: Path, load: LoadSpec) -> str:
    """What to doubt of a Server load: that the generator alone does not hold twice its rate; '' where it does."""
    twice = load.qps / FLAGGED_ABOVE
    effort = CeilingSearch(bound=load.bound, percentile=load.percentile)
    try:
        if holds(null_runner(folder), effort, COALESCED if load.coalesce else PLAIN, twice):
            return ""
    except (CannotMeasure, KeyboardInterrupt) as error:  # the result is there: it is not lost for this
        why = error.cause if isinstance(error, CannotMeasure) else "interrupted"
        return f"whether the generator holds twice this rate was not tried: {why}"
    return (
        f"the generator alone does not hold twice this rate here ({twice:,.0f} queries/s within the bound): above half "
        "of its own ceiling a result tells of the generator too"
    )


def _search(runner: LoadRunner, effort: CeilingSearch, mode: str, say: Callable[[str], object]) -> GeneratorCeiling:
    low, high, best, runs, note = 0.0, math.inf, None, 0, ""
    rate = effort.start
    while high - low > effort.precision * high or math.isinf(high):
        try:
            run, attempts = _attempt(runner, effort, mode, rate)
        except CannotMeasure as error:
            if best is None:
                raise
            note = f"not tried further: {error.cause}"
            break
        runs += attempts
        say(f"{mode}: {rate:,.0f} queries/s {'VALID' if run.valid else 'not valid'}")
        low, high, best = (rate, high, run) if run.valid else (low, rate, best)
        if high < 1.0:
            break
        rate = 2.0 * low if math.isinf(high) else (low + high) / 2.0
    if best is None:
        raise CannotMeasure(
            f"not even {rate:,.0f} queries/s were valid on a system that does nothing",
            hint="let nothing else run on this machine, or give a larger --bound",
        )
    return GeneratorCeiling(mode, low, high, runs, best.latency, best.lag, note)


def _attempt(runner: LoadRunner, effort: CeilingSearch, mode: str, rate: float) -> tuple[LoadGenResult, int]:
    """The first valid run of some at a rate, else the last one; something else on the machine may disturb one."""
    enough = minimum_queries(_LATE, effort.percentile)
    for attempt in range(1, effort.tries + 1):
        run = runner.run(
            LoadSpec(
                qps=rate, seconds=effort.seconds, queries=enough, bound=effort.bound, percentile=effort.percentile,
                seed=attempt, coalesce=mode == COALESCED,
            )
        )  # fmt: skip
        if run.valid:
            break
    return run, attempt
