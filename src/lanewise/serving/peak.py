"""The largest rate of a simulated service that keeps its bound, with what the GPUs and paths would allow without it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lanewise.errors import InputError
from lanewise.results.service_result import Tried
from lanewise.serving.advice import BUSY, advice, doubts, not_busy
from lanewise.serving.ceiling import ceiling
from lanewise.serving.durations import Durations, Trial
from lanewise.serving.queues import md1_peak
from lanewise.serving.search import find_peak
from lanewise.serving.simulation import Simulation, SimulationInput
from lanewise.serving.simulation_result import percentile_of, service_result, verdict_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import lanewise._native as _native
    from lanewise.perf.flow import Flow
    from lanewise.results.service_result import ServiceResult
    from lanewise.serving.durations import PeakEstimate
    from lanewise.serving.load import ServiceLoad
    from lanewise.topology.model import System

STEPS = 100  # intervals for which use over time is kept
LONGEST = 30.0  # simulated seconds of a run of a search, or more where so few queries come that it costs nothing
CHEAP = 1e6  # queries
MOST = 5e6  # queries of a single run unless its length is asked for, as what is late stays in memory
TOO_MANY = 1e10  # queries of a single run that would take an hour
PERIODS = 3  # of traffic that comes again and again
PRECISION = 0.0025  # relative, of a peak


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How a peak is searched for: relative precision, first seed, most runs, and who is told of each run."""

    precision: float = PRECISION
    seed: int = 1
    most_runs: int = 40
    on_trial: Callable[[Trial], None] | None = None


def at_rate(
    simulation: Simulation, rates: Sequence[float], ask: SimulationInput
) -> tuple[tuple[ServiceResult, ...], _native.Outcome]:
    """Every service at its rate, and the run itself, which holds the trace."""
    outcome = simulation.run(rates, ask)
    return tuple(_told(simulation, place, rates, ask, outcome) for place in range(len(rates))), outcome


def _told(
    simulation: Simulation, place: int, rates: Sequence[float], ask: SimulationInput, outcome: _native.Outcome
) -> ServiceResult:
    """The result with its ceiling, advice and doubts; of a service that is late with nothing full, the stage."""
    served, found = simulation.served[place], service_result(simulation, place, rates[place], ask, outcome)
    most = ceiling(simulation, place, rates).qps
    limit, helps = found.limit, advice(simulation, place, rates, most)
    if not found.valid and max(each.mean for each in found.busy) < BUSY:
        limit, helps = not_busy(served, found)
    note = "; ".join(filter(None, [*doubts(simulation, served, ask.duration), found.note]))
    alone = len(rates) == 1 and not simulation.background
    # Beside others the ceiling depends on how they share, so only the gains are told.
    return replace(found, limit=limit, advice=helps, note=note, steady=most if alone else None)


def find(
    simulation: Simulation, place: int, rates: Sequence[float], sought: SearchOptions
) -> tuple[PeakEstimate, Durations, dict[int, float]]:
    """The search, its policy, and how long the run of each seed lasted; InputError without a target rate."""
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
        lasted[seed] = duration
        out = simulation.run(asked, SimulationInput(duration, seed, hopeless=place))
        mine = out.services[place]
        verdict = verdict_of(load, mine)
        latency = mine.percentile(percentile_of(load))
        return Trial(qps, seed, verdict.valid and not out.ended_early, latency, mine.counted, verdict.reason,
                     hopeless=out.ended_early)  # fmt: skip

    lasted: dict[int, float] = {}
    longest = max(LONGEST, CHEAP / most)
    shortest = min(max([1.0, *(flow.every for flow in simulation.background)]), longest)
    durations = Durations(load.workload.bound, shortest, longest)
    found = find_peak(
        run, durations=durations, bracket=(0.985 * bound, bound) if bound else None, start=most,
        ceiling=(bound or most) if alone else None, precision=sought.precision, seed=sought.seed,
        most_runs=sought.most_runs, on_trial=sought.on_trial,
    )  # fmt: skip
    return found, durations, lasted


def at_peak(
    simulation: Simulation, place: int, rates: Sequence[float], sought: SearchOptions, trace: int = 0
) -> tuple[tuple[ServiceResult, ...], _native.Outcome]:
    """All services with that one at its peak, or at the lowest rate tried if none keeps the bound.

    The run that decided is run once more with its seed and length, now with everything kept.
    """
    found, durations, lasted = find(simulation, place, rates, sought)
    best = [trial for trial in found.trials if trial.valid and trial.qps == found.low]
    last = best[-1] if best else min(found.trials, key=lambda trial: trial.qps)
    asked = [last.qps if index == place else rate for index, rate in enumerate(rates)]
    loaded, outcome = at_rate(
        simulation, asked, SimulationInput(lasted[last.seed], last.seed, steps=STEPS, trace=trace)
    )
    low, high = found.interval
    if high == math.inf:  # valid at the ceiling: nothing above it can be, and one run may have been lucky
        low, high = last.qps * max(0.0, 1.0 - durations.spread(last)), last.qps
    tried = tuple(
        Tried(trial.qps, trial.latency, trial.valid, trial.queries, trial.seed, trial.reason) for trial in found.trials
    )
    mine = loaded[place]
    others = (each for each in loaded if each is not mine and not each.valid)
    broken = [f"beside it {each.name} is INVALID: {each.reason}" for each in others]
    mine = replace(
        mine, reason=mine.reason if best else found.reason, peak=(low, high), tried=tried,
        note="; ".join(filter(None, [*broken, mine.note])),
    )  # fmt: skip
    return (*loaded[:place], mine, *loaded[place + 1 :]), outcome


def simulate(
    system: System, loads: Sequence[ServiceLoad], background: Sequence[Flow] = (), seconds: float | None = None,
    seed: int = 1, trace: int = 0,
) -> tuple[tuple[ServiceResult, ...], Simulation, _native.Outcome]:  # fmt: skip
    """Loads at their rates, with the simulation and its run; InputError for what cannot be answered."""
    simulation = Simulation(system, loads, background)
    if seconds is not None and not 0.0 < seconds < math.inf:
        raise InputError(f"a run of {seconds:g} s", hint="give seconds above zero")
    rates = [load.qps for load in loads]
    if seconds is None:
        seconds = _seconds(simulation)
    asked = seconds * sum(load.qps for load in loads if load.scenario == "server")
    if asked > TOO_MANY:
        raise InputError(
            f"a run of {seconds:g} s is {asked:.2g} queries", hint="give fewer seconds; millions of queries tell enough"
        )
    samples = None
    if len(loads) == 1 and loads[0].scenario == "offline":
        samples = max(loads[0].samples, round(seconds * ceiling(simulation, 0, rates).qps))
    found, outcome = at_rate(simulation, rates, SimulationInput(seconds, seed, STEPS, trace, samples=samples))
    return found, simulation, outcome


def seek(
    system: System,
    load: ServiceLoad,
    beside: Sequence[ServiceLoad],
    background: Sequence[Flow],
    sought: SearchOptions,
    trace: int = 0,
) -> tuple[tuple[ServiceResult, ...], Simulation, _native.Outcome]:
    """The peak of one load, then the others beside it at their rates, with the simulation and its last run."""
    loads = [load if load.scenario != "server" else replace(load, qps=load.qps or 1.0), *beside]
    simulation = Simulation(system, loads, background)
    found, outcome = at_peak(simulation, 0, [each.qps for each in loads], sought, trace)
    return found, simulation, outcome


def _seconds(simulation: Simulation) -> float:
    """Long enough for a steady picture: many bounds and periods, and queries enough for each percentile's tail."""
    loads = [served.load for served in simulation.served]
    rates = [load.qps for load in loads if load.scenario == "server"]
    wanted = [100.0 * load.workload.bound for load in loads]
    wanted += [1e5 / rate for rate in rates if rate > 0.0]
    wanted += [PERIODS * flow.every for flow in simulation.background]
    return min(max(wanted), MOST / sum(rates)) if sum(rates) > 0.0 else max(wanted)
