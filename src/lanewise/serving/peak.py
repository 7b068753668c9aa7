"""The largest rate of a simulated service that keeps its bound, with what the GPUs and paths would allow without it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lanewise.errors import InputError
from lanewise.results.loaded import Advice, Tried
from lanewise.serving.answer import answer, percentile_of, verdict_of
from lanewise.serving.ceiling import RAISE, WORTH, apart, ceiling
from lanewise.serving.queues import md1_peak
from lanewise.serving.search import Durations, Trial, find_peak
from lanewise.serving.simulation import Ask, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import lanewise._native as _native
    from lanewise.perf.flow import Flow
    from lanewise.results.loaded import Loaded
    from lanewise.serving.load import Load
    from lanewise.serving.search import Peak
    from lanewise.topology.model import System

STEPS = 100  # intervals for which use over time is kept
LONGEST = 30.0  # simulated seconds of a run of a search, or more where so few queries come that it costs nothing
CHEAP = 1e6  # queries
MOST = 5e6  # queries of a single run, as what is late stays in memory
FASTER = f"{100 * (RAISE - 1):g} %"
PRECISION = 0.0025  # relative, of a peak


@dataclass(frozen=True, slots=True)
class Sought:
    """How a peak is searched for: relative precision, first seed, most runs, and who is told of each run."""

    precision: float = PRECISION
    seed: int = 1
    most_runs: int = 40
    on_trial: Callable[[Trial], None] | None = None


def at_rate(simulation: Simulation, rates: Sequence[float], ask: Ask) -> tuple[tuple[Loaded, ...], _native.Outcome]:
    """Every service at its rate, and the run itself, which holds the trace."""
    outcome = simulation.run(rates, ask)
    alone = len(rates) == 1 and not simulation.background
    made = []
    for place, rate in enumerate(rates):
        found, most = answer(simulation, place, rate, ask, outcome), ceiling(simulation, place, rates).qps
        # Beside others the ceiling depends on how they share, so only the gains are told.
        made.append(replace(found, steady=most if alone else None, advice=advice(simulation, place, rates, most)))
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

    longest = max(LONGEST, CHEAP / most)
    return find_peak(
        run, durations=Durations(load.workload.bound, longest=longest),
        bracket=(0.985 * bound, bound) if bound else None, start=most,
        ceiling=(bound or most) if alone else None, precision=sought.precision, seed=sought.seed,
        most_runs=sought.most_runs, on_trial=sought.on_trial,
    )  # fmt: skip


def at_peak(
    simulation: Simulation, place: int, rates: Sequence[float], sought: Sought, trace: int = 0
) -> tuple[tuple[Loaded, ...], _native.Outcome]:
    """All services with that one at its peak, or at the lowest rate tried if none keeps the bound; and that run."""
    found = find(simulation, place, rates, sought)
    qps = found.qps if found.found else min(trial.qps for trial in found.trials)
    asked = [qps if index == place else rate for index, rate in enumerate(rates)]
    ask = Ask(_seconds(simulation.served[place].load, qps), found.trials[-1].seed, steps=STEPS, trace=trace)
    loaded, outcome = at_rate(simulation, asked, ask)
    mine = loaded[place]
    reason = mine.reason if found.found else found.reason
    low, high = found.interval
    if high == math.inf:  # valid at the ceiling: nothing above it can be, and one run may have been lucky
        low, high = qps * (1.0 - sought.precision), qps
    tried = tuple(
        Tried(trial.qps, trial.latency, trial.valid, trial.queries, trial.seed, trial.reason) for trial in found.trials
    )
    mine = replace(mine, valid=found.found, reason=reason, peak=(low, high), tried=tried)
    return (*loaded[:place], mine, *loaded[place + 1 :]), outcome


def simulate(
    system: System, loads: Sequence[Load], background: Sequence[Flow] = (), seconds: float | None = None,
    seed: int = 1, trace: int = 0,
) -> tuple[tuple[Loaded, ...], Simulation, _native.Outcome]:  # fmt: skip
    """Loads at their rates, with the simulation and its run; InputError for what cannot be answered."""
    simulation = Simulation(system, loads, background)
    if seconds is not None and not 0.0 < seconds < math.inf:
        raise InputError(f"a run of {seconds:g} s", hint="give seconds above zero")
    rates = [load.qps for load in loads]
    if seconds is None:
        seconds = max(_seconds(load, rate) for load, rate in zip(loads, rates, strict=True))
    samples = None
    if len(loads) == 1 and loads[0].scenario == "offline":
        samples = max(loads[0].samples, round(seconds * ceiling(simulation, 0, rates).qps))
    found, outcome = at_rate(simulation, rates, Ask(seconds, seed, STEPS, trace, samples=samples))
    return found, simulation, outcome


def seek(
    system: System, load: Load, beside: Sequence[Load], background: Sequence[Flow], sought: Sought, trace: int = 0
) -> tuple[tuple[Loaded, ...], Simulation, _native.Outcome]:
    """The peak of one load, then the others beside it at their rates, with the simulation and its last run."""
    loads = [load if load.scenario != "server" else replace(load, qps=load.qps or 1.0), *beside]
    simulation = Simulation(system, loads, background)
    found, outcome = at_peak(simulation, 0, [each.qps for each in loads], sought, trace)
    return found, simulation, outcome


def _seconds(load: Load, qps: float) -> float:
    """Long enough for a steady picture: a hundred bounds, and queries enough for the percentile's tail."""
    if qps <= 0.0:
        return 100.0 * load.workload.bound
    return min(max(100.0 * load.workload.bound, 1e5 / qps), MOST / qps)


def advice(simulation: Simulation, place: int, rates: Sequence[float], today: float) -> tuple[Advice, ...]:
    """What to change first: each limit faster by a quarter, the GPUs faster, GPUs on links of their own."""
    limits = {index for index in ceiling(simulation, place, rates).limits if index is not None}
    made = []
    for index in sorted(limits):
        gain = ceiling(simulation, place, rates, raised=index).qps / today
        made.append(Advice(f"{simulation.resources[index].name} faster by {FASTER}", gain))
    gain = ceiling(simulation, place, rates, gpus=RAISE).qps / today
    made.append(Advice(f"GPUs that serve {FASTER} more each", gain))
    made.append(Advice("each GPU on links of its own (lanewise plan places GPUs)", apart(simulation, place) / today))
    worth = [each for each in made if each.gain is not None and each.gain > 1.0 + WORTH]
    return tuple(sorted(worth, key=lambda each: -(each.gain or 0.0)))
