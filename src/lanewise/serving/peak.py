"""The largest rate of a simulated service that keeps its bound, with what the GPUs and paths would allow without it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lanewise.errors import InputError
from lanewise.results.loaded import Advice, Tried
from lanewise.serving.answer import answer, percentile_of, verdict_of
from lanewise.serving.ceiling import RAISE, WORTH, ceiling
from lanewise.serving.queues import md1_peak
from lanewise.serving.search import Durations, Trial, find_peak
from lanewise.serving.simulation import Ask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import lanewise._native as _native
    from lanewise.results.loaded import Loaded
    from lanewise.serving.search import Peak
    from lanewise.serving.simulation import Simulation

STEPS = 100  # intervals for which use over time is kept
LONGEST = 30.0  # simulated seconds of a run


@dataclass(frozen=True, slots=True)
class Sought:
    """How a peak is searched for: relative precision, first seed, most runs, and who is told of each run."""

    precision: float = 0.0025
    seed: int = 1
    most_runs: int = 40
    on_trial: Callable[[Trial], None] | None = None


def at_rate(simulation: Simulation, rates: Sequence[float], ask: Ask) -> tuple[tuple[Loaded, ...], _native.Outcome]:
    """Every service at its rate, and the run itself, which holds the trace."""
    outcome = simulation.run(rates, ask)
    found = [answer(simulation, place, rates[place], ask, outcome) for place in range(len(rates))]
    made = []
    for place, each in enumerate(found):
        most = ceiling(simulation, place, rates)
        made.append(replace(each, steady=most.qps, advice=advice(simulation, place, rates, most.qps)))
    return tuple(made), outcome


def find(simulation: Simulation, place: int, rates: Sequence[float], sought: Sought) -> Peak:
    """The search alone; InputError for a scenario that has no target rate."""
    load = simulation.served[place].load
    if load.scenario != "server":
        raise InputError(
            f"the {load.scenario} scenario has no target rate to search for", hint="ask for it without --peak"
        )
    most = ceiling(simulation, place, rates).qps
    alone = len(simulation.served) == 1 and not simulation.background
    # Nothing passes more than `most` queries a second, so the backlog is at least that of one server of that rate.
    bound = md1_peak(1.0 / most, load.workload.bound, load.workload.percentile)

    def run(qps: float, seed: int, duration: float) -> Trial:
        asked = [qps if index == place else rate for index, rate in enumerate(rates)]
        out = simulation.run(asked, Ask(duration, seed, hopeless=place))
        mine = out.services[place]
        verdict = verdict_of(load, mine)
        latency = mine.percentile(percentile_of(load))
        return Trial(qps, seed, verdict.valid and not out.ended_early, latency, mine.counted, verdict.reason,
                     hopeless=out.ended_early)  # fmt: skip

    return find_peak(
        run, durations=Durations(load.workload.bound, shortest=min(1.0, LONGEST), longest=LONGEST),
        bracket=(0.985 * bound, bound) if bound else None, start=most,
        ceiling=(bound or most) if alone else None, precision=sought.precision, seed=sought.seed,
        most_runs=sought.most_runs, on_trial=sought.on_trial,
    )  # fmt: skip


def at_peak(
    simulation: Simulation, place: int, rates: Sequence[float], sought: Sought, trace: int = 0
) -> tuple[Loaded, _native.Outcome]:
    """The service at its peak, or at the lowest rate tried if none keeps the bound; and that last run."""
    found = find(simulation, place, rates, sought)
    qps = found.qps if found.found else min(trial.qps for trial in found.trials)
    asked = [qps if index == place else rate for index, rate in enumerate(rates)]
    ask = Ask(_seconds(simulation, place, qps), found.trials[-1].seed, steps=STEPS, trace=trace)
    loaded, outcome = at_rate(simulation, asked, ask)
    mine = loaded[place]
    reason = mine.reason if found.found else found.reason
    low, high = found.interval
    if high == math.inf:  # valid up to the ceiling, above which nothing settles
        high = max(low, qps)
    return replace(
        mine, valid=found.found, reason=reason, peak=(low, high),
        tried=tuple(
            Tried(trial.qps, trial.latency, trial.valid, trial.queries, trial.seed, trial.reason)
            for trial in found.trials
        ),
    ), outcome  # fmt: skip


def offline(simulation: Simulation, seconds: float = 5.0) -> Loaded:
    """A lone service with all its samples there at once: as many as keep it busy for about so many seconds."""
    load = simulation.served[0].load
    most = ceiling(simulation, 0, [0.0]).qps
    ask = Ask(max(seconds, load.samples / most), steps=STEPS, samples=max(load.samples, round(seconds * most)))
    return at_rate(simulation, [0.0], ask)[0][0]


def _seconds(simulation: Simulation, place: int, qps: float) -> float:
    """Long enough for a steady picture: a hundred bounds, and queries enough for the percentile's tail."""
    bound = simulation.served[place].load.workload.bound
    return min(max(100.0 * bound, 1e5 / qps), LONGEST)


def advice(simulation: Simulation, place: int, rates: Sequence[float], today: float) -> tuple[Advice, ...]:
    """What to change first: each limit faster by a quarter, the GPUs faster, GPUs on a host of their own; best first."""
    limits = {index for index in ceiling(simulation, place, rates).limits if index is not None}
    made = []
    for index in sorted(limits):
        gain = ceiling(simulation, place, rates, raised=index).qps / today
        made.append(Advice(f"{simulation.resources[index].name} faster by {RAISE - 1:.0%}", gain))
    gain = ceiling(simulation, place, rates, gpus=RAISE).qps / today
    made.append(Advice(f"GPUs that serve {RAISE - 1:.0%} more each", gain))
    worth = [each for each in made if each.gain is not None and each.gain > 1.0 + WORTH]
    return tuple(sorted(worth, key=lambda each: -(each.gain or 0.0)))
