"""The generator's own ceiling on this host: the largest rate that is VALID on a system that answers at once.

Rates are doubled until one is INVALID, then the gap is halved. A load test at more than half of this ceiling measures
the generator as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lanewise.errors import CannotMeasure
from lanewise.loadtest.load_run import LoadGenResult, LoadRunner, LoadSpec
from lanewise.loadtest.loadgen import LoadGenRunner, RunnerSetup, needs_loadgen
from lanewise.options.loadtest import SelftestOptions
from lanewise.serving.verdict import minimum_queries

PLAIN, COALESCED = "plain", "coalesced"
MODES = (PLAIN, COALESCED)
FLAGGED_ABOVE = 0.5  # of the ceiling: a peak is flagged where the generator alone does not hold it twice
_LATE = 10  # queries that may be late in the shortest run


@dataclass(frozen=True, slots=True)
class GeneratorCeiling:
    """The largest valid rate of a mode, `qps` (queries/s), and the least that `failed` (None: none that was tried).

    Of the run at the ceiling: `latency`, and `lag`, how late queries were issued; in s.
    """

    mode: str
    qps: float
    failed: float | None
    runs: int
    latency: Mapping[str, float] = field(default_factory=dict)
    lag: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


def null_runner(folder: Path, at_once: bool = False) -> LoadGenRunner:
    """A runner on the null system; its answers take the path of a real system's, or return within the call."""
    needs_loadgen()
    from lanewise._native import NullSystem

    return LoadGenRunner(NullSystem(), folder, RunnerSetup(direct=at_once))


def ceilings(
    runner: LoadRunner, options: SelftestOptions, say: Callable[[str], object] = lambda _: None
) -> Iterator[GeneratorCeiling]:
    """The ceiling of each mode, as soon as it is known; `say` gets a line for every run."""
    for mode in options.modes:
        yield _search(runner, options, mode, say)


def holds(runner: LoadRunner, load: LoadSpec) -> bool:
    """Whether one of some runs is VALID on a system that answers at once; CannotMeasure without memory."""
    return _attempt(runner, load, SelftestOptions().tries)[0].valid


def doubts(folder: Path, load: LoadSpec, say: Callable[[str], object]) -> tuple[str, ...]:
    """What to doubt of a Server load: that the generator alone does not hold twice its rate; nothing where it does."""
    say("trying the generator alone at twice the rate")
    twice = load.qps / FLAGGED_ABOVE
    try:
        short = _load(twice, SelftestOptions(bound=load.bound), load.percentile, load.coalesce)
        if holds(null_runner(folder / "generator"), short):
            return ()
    except CannotMeasure as error:  # the result is there: it is not lost for this
        return (f"whether the generator holds twice this rate was not tried: {error.cause}",)
    return (
        f"the generator alone does not hold twice this rate here ({twice:,.0f} queries/s within the bound): above half "
        "of its own ceiling a result tells of the generator too",
    )


def _search(runner: LoadRunner, options: SelftestOptions, mode: str, say: Callable[[str], object]) -> GeneratorCeiling:
    low, high, best, runs, note = 0.0, math.inf, None, 0, ""
    rate = options.start
    while high - low > options.precision * high or math.isinf(high):
        try:
            run, attempts = _attempt(runner, _load(rate, options, coalesce=mode == COALESCED), options.tries)
        except CannotMeasure as error:
            if best is None:
                raise
            note = f"not tried further: {error.cause}"
            break
        runs += attempts
        say(f"{mode}: {rate:,.0f} queries/s {'VALID' if run.valid else 'INVALID'}")
        low, high, best = (rate, high, run) if run.valid else (low, rate, best)
        if high < 1.0:
            break
        rate = 2.0 * low if math.isinf(high) else (low + high) / 2.0
    if best is None:
        raise CannotMeasure(
            f"not even {rate:,.0f} queries/s were valid on a system that does nothing",
            hint="let nothing else run on this machine, or give a larger --bound",
        )
    return GeneratorCeiling(mode, low, high if math.isfinite(high) else None, runs, best.latency, best.lag, note)


def _load(rate: float, options: SelftestOptions, percentile: float = 0.99, coalesce: bool = False) -> LoadSpec:
    return LoadSpec(
        qps=rate, seconds=options.seconds, queries=minimum_queries(_LATE, percentile), bound=options.bound,
        percentile=percentile, coalesce=coalesce,
    )  # fmt: skip


def _attempt(runner: LoadRunner, load: LoadSpec, tries: int) -> tuple[LoadGenResult, int]:
    """The first valid run of some of a load, else the last one; something else on the machine may disturb one."""
    for attempt in range(1, tries + 1):
        run = runner.run(replace(load, seed=attempt))
        if run.valid:
            break
    return run, attempt
