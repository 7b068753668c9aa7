"""The largest rate of a simulated service that keeps its bound, with what the GPUs and paths would allow without it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from weakref import WeakKeyDictionary

import lanewise._native as _native
from lanewise.errors import InputError
from lanewise.perf.flow import Flow
from lanewise.results.plan import Service
from lanewise.results.service_result import SearchRun, ServiceResult
from lanewise.serving.ceiling import BUSY, advice, ceiling, doubts, stage_limit
from lanewise.serving.durations import Durations
from lanewise.serving.load import ServiceLoad, load_of
from lanewise.serving.queues import md1_peak
from lanewise.serving.search import PeakEstimate, find_peak
from lanewise.serving.simulation import Simulation, SimulationInput
from lanewise.serving.simulation_result import percentile_of, reason_of, service_result
from lanewise.topology.model import System

STEPS = 100  # intervals for which use over time is kept
LONGEST = 30.0  # simulated seconds of a run of a search, or more where so few queries come that it costs nothing
CHEAP = 1e6  # queries
MOST = 5e6  # queries of a single run whose length the user does not set, as late queries stay in memory
TOO_MANY = 1e10  # queries of a single run that would take an hour
PERIODS = 3  # of traffic that comes again and again
PRECISION = 0.0025  # relative, of a peak
OFFLINE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How a peak is searched for: relative precision, first seed, most runs, and who is called after each run."""

    precision: float = PRECISION
    seed: int = 1
    most_runs: int = 40
    on_run: Callable[[SearchRun], None] = lambda _: None


def at_rates(
    simulation: Simulation, rates: Sequence[float], run: SimulationInput, outcome: _native.Outcome | None = None
) -> tuple[tuple[ServiceResult, ...], _native.Outcome]:
    """Every service at its rate, and the run itself, which holds the trace; it is not run again if `outcome` is its."""
    outcome = outcome or simulation.run(rates, run)
    return tuple(_result(simulation, place, rates, run, outcome) for place in range(len(rates))), outcome


def _result(
    simulation: Simulation, place: int, rates: Sequence[float], run: SimulationInput, outcome: _native.Outcome
) -> ServiceResult:
    """The result with its ceiling, advice and doubts; of a service that is late with nothing full, the stage."""
    deployment = simulation.deployments[place]
    result = service_result(simulation, place, rates[place], run, outcome)
    most = ceiling(simulation, place, rates).qps
    limit, changes = result.limit, advice(simulation, place, rates, most)
    if not result.valid and max(resource.mean for resource in result.utilization) < BUSY:
        limit, changes = stage_limit(deployment, result)
    note = "; ".join(filter(None, [*doubts(simulation, deployment, run.duration), result.note]))
    # With other services the ceiling depends on how they share, so only the gains are stated.
    steady = most if len(rates) == 1 and not simulation.background else None
    return replace(result, limit=limit, advice=changes, note=note, steady=steady)


def search(
    simulation: Simulation, place: int, rates: Sequence[float], options: SearchOptions
) -> tuple[PeakEstimate, Durations, dict[SearchRun, _native.Outcome]]:
    """The peak of the service at that place, how long runs lasted, and the outcomes of the valid ones with their steps.

    InputError without a target rate.
    """
    load = simulation.deployments[place].load
    if load.scenario != "server":
        raise InputError(
            f"the {load.scenario} scenario has no target rate to search for", hint="ask for it without --peak"
        )
    most = ceiling(simulation, place, rates).qps
    single = len(simulation.deployments) == 1 and not simulation.background
    # Nothing passes more than `most` queries a second, so the backlog is at least that of one server of that rate.
    bound = md1_peak(1.0 / most, load.workload.bound, load.workload.percentile)

    outcomes: dict[SearchRun, _native.Outcome] = {}

    def run(rate: float, seed: int, duration: float) -> SearchRun:
        recorded = SimulationInput(duration, seed, STEPS, hopeless=place)
        outcome = simulation.run(_with_rate(rates, place, rate), recorded)
        service, hopeless = outcome.services[place], outcome.ended_early
        reason, latency = reason_of(load, service), service.percentile(percentile_of(load))
        completed = min(1.0, service.counted / (rate * duration)) if hopeless else 1.0
        result = SearchRun(rate, seed, not (reason or hopeless), latency, service.counted, reason, duration, hopeless,
                           completed)  # fmt: skip
        if result.valid:
            outcomes[result] = outcome
        return result

    longest = max(LONGEST, CHEAP / most)
    shortest = min(max([1.0, *(flow.every for flow in simulation.background)]), longest)
    durations = Durations(load.workload.bound, shortest, longest)
    estimate = find_peak(
        run, durations=durations, bracket=(0.985 * bound, bound) if bound else None, start=most,
        ceiling=(bound or most) if single else None, precision=options.precision, seed=options.seed,
        most_runs=options.most_runs, on_run=options.on_run,
    )  # fmt: skip
    return estimate, durations, outcomes


def at_peak(
    simulation: Simulation, place: int, rates: Sequence[float], options: SearchOptions, trace: int = 0
) -> tuple[tuple[ServiceResult, ...], _native.Outcome]:
    """All services with that one at its peak, or at the lowest rate run if none keeps the bound.

    The run that decided is repeated with its seed and length where samples are to be traced, or none was valid.
    """
    estimate, durations, outcomes = search(simulation, place, rates, options)
    valid = [run for run in estimate.runs if run.valid and run.rate == estimate.rate]
    last = valid[-1] if valid else min(estimate.runs, key=lambda run: run.rate)
    repeat = SimulationInput(last.duration, last.seed, steps=STEPS, trace=trace)
    outcome = None if trace else outcomes.get(last)
    results, outcome = at_rates(simulation, _with_rate(rates, place, last.rate), repeat, outcome)
    low, high = estimate.interval
    if high == math.inf:  # valid at the ceiling: nothing above it can be, and one run may have been lucky
        low, high = last.rate * max(0.0, 1.0 - durations.deviation(last)), last.rate
    mine = results[place]
    invalid = [f"{result.name} is INVALID at its rate: {result.reason}" for result in results
              if result is not mine and not result.valid]  # fmt: skip
    mine = replace(
        mine, reason=mine.reason if valid else estimate.reason, peak=(low, high),
        search_runs=estimate.runs,
        note="; ".join(filter(None, [*invalid, mine.note])),
    )  # fmt: skip
    return (*results[:place], mine, *results[place + 1 :]), outcome


def _with_rate(rates: Sequence[float], place: int, rate: float) -> list[float]:
    return [rate if index == place else other for index, other in enumerate(rates)]


def simulate(
    system: System, loads: Sequence[ServiceLoad], background: Sequence[Flow] = (), seconds: float | None = None,
    seed: int = 1, trace: int = 0,
) -> tuple[tuple[ServiceResult, ...], Simulation, _native.Outcome]:  # fmt: skip
    """Loads at their rates, with the simulation and its run; InputError for what cannot be answered."""
    simulation = Simulation(system, loads, background)
    rates = [load.qps for load in loads]
    if seconds is None:
        seconds = _seconds(simulation)
    queries = seconds * sum(load.qps for load in loads if load.scenario == "server")
    if queries > TOO_MANY:
        raise InputError(
            f"a run of {seconds:g} s is {queries:.2g} queries",
            hint="give fewer seconds; millions of queries are enough",
        )
    samples = None
    if len(loads) == 1 and loads[0].scenario == "offline":
        samples = max(loads[0].samples, round(seconds * ceiling(simulation, 0, rates).qps))
    results, outcome = at_rates(simulation, rates, SimulationInput(seconds, seed, STEPS, trace, samples=samples))
    return results, simulation, outcome


def simulate_peak(
    system: System, load: ServiceLoad, other_loads: Sequence[ServiceLoad], background: Sequence[Flow],
    options: SearchOptions, trace: int = 0,
) -> tuple[tuple[ServiceResult, ...], Simulation, _native.Outcome]:  # fmt: skip
    """The peak of one load, then the others at their rates, with the simulation and its last run."""
    loads = [load if load.scenario != "server" else replace(load, qps=load.qps or 1.0), *other_loads]
    simulation = Simulation(system, loads, background)
    results, outcome = at_peak(simulation, 0, [load.qps for load in loads], options, trace)
    return results, simulation, outcome


@dataclass(slots=True)
class _UnderLoad:
    """The result of one service under load, once a thread has it; the others wait for the lock."""

    lock: Lock = field(default_factory=Lock)
    result: ServiceResult | None = None


_under_load: WeakKeyDictionary[System, dict[tuple[str | None, ...], _UnderLoad]] = WeakKeyDictionary()
_under_load_lock = Lock()


def under_load(system: System, service: Service) -> ServiceResult:
    """The service of a study at its peak (server) or at full speed (offline); InputError for what cannot be run.

    Each is simulated once a system, however many rows, drawings and threads ask for it.
    """
    key = (service.workload, service.mode, service.division, service.host)
    with _under_load_lock:
        kept = _under_load.setdefault(system, {}).setdefault(key, _UnderLoad())
    with kept.lock:
        if kept.result is None:
            kept.result = _simulated_service(system, service)
        return kept.result


def _simulated_service(system: System, service: Service) -> ServiceResult:
    load = replace(load_of(service.workload, service.mode, service.division, service.host), qps=1.0)
    if service.mode == "offline":
        return simulate(system, [load], seconds=OFFLINE_SECONDS)[0][0]
    return simulate_peak(system, load, (), (), SearchOptions())[0][0]


def _seconds(simulation: Simulation) -> float:
    """Long enough for a steady picture: many bounds and periods, and queries enough for each percentile's tail."""
    loads = [deployment.load for deployment in simulation.deployments]
    rates = [load.qps for load in loads if load.scenario == "server"]
    needs = [100.0 * load.workload.bound for load in loads]
    needs += [1e5 / rate for rate in rates if rate > 0.0]
    needs += [PERIODS * flow.every for flow in simulation.background]
    return min(max(needs), MOST / sum(rates)) if sum(rates) > 0.0 else max(needs)
