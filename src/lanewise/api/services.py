"""Inference services: in steady state, simulated at a rate, and their largest rate within the latency bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lanewise.api.loading import as_system, load_workload
from lanewise.errors import InputError, unknown_name
from lanewise.options.predict import DIVISIONS, ServiceOptions

if TYPE_CHECKING:
    from pathlib import Path

    from lanewise import _native
    from lanewise.perf.flow import Flow
    from lanewise.results.service_result import SearchRun, ServiceResult
    from lanewise.serving.load import ServiceLoad
    from lanewise.serving.peak import SearchOptions
    from lanewise.serving.simulation import Simulation
    from lanewise.serving.steady import ServiceRate
    from lanewise.serving.workload import Workload
    from lanewise.topology.model import System

TRACED = 10_000  # samples in a trace, under 1 kB each


@dataclass(frozen=True, slots=True)
class ServicePrediction:
    """The simulated services, the one that was asked for first, with the run that a trace shows."""

    results: tuple[ServiceResult, ...]
    simulation: Simulation
    outcome: _native.Outcome

    def trace(self) -> str:
        """The first queries as Trace Event JSON, which ui.perfetto.dev opens; none unless `options.trace` is set."""
        from lanewise.serving.trace import perfetto

        return perfetto(self.simulation, self.outcome)


def predict_service(
    system: System | str | Path,
    workload: str | Path | Workload,
    options: ServiceOptions,
    on_run: Callable[[SearchRun], None] = lambda _: None,
) -> ServicePrediction:
    """A service under load, by event simulation: at `options.qps`, or with `options.peak` at its largest valid rate.

    Raises InputError or UnknownName for options that contradict each other or the system.
    """
    from lanewise.perf.flow import parse_flows
    from lanewise.serving.load import check_run
    from lanewise.serving.peak import SearchOptions, simulate_peak
    from lanewise.serving.peak import simulate as run

    loaded = as_system(system)
    load = _load(loaded, workload, options)
    others = _loads(options.beside)
    background = parse_flows(options.background) if options.background else ()
    traced = TRACED if options.trace is not None else 0
    search = SearchOptions(options.precision, options.seed, on_run=on_run)
    check_run(options.seconds, options.seed, search.most_runs if options.peak else 1)
    if options.peak:
        return ServicePrediction(*simulate_peak(loaded, load, others, background, search, traced))
    return ServicePrediction(*run(loaded, [load, *others], background, options.seconds, options.seed, traced))


def _load(system: System, workload: str | Path | Workload, options: ServiceOptions) -> ServiceLoad:
    from lanewise.serving.load import ServiceLoad, check, check_dispatch, gpus_of, on

    _check(options)
    networked = options.division == "network" or options.frontend is not None
    load = ServiceLoad(
        _workload(workload), qps=options.qps or 0.0, scenario=options.mode, host=options.host,
        frontend=(options.frontend or "frontend") if networked else None, batch=options.batch,
        timeout=options.timeout, copies=options.copies, dispatch=options.dispatch or "least",
    )  # fmt: skip
    if options.peak and load.scenario == "server":
        load = replace(load, qps=1.0)
    if options.gpus is not None:
        load = on(load, options.gpus)
    check(load)
    if options.dispatch is not None:
        check_dispatch(system, load, gpus_of(system, load))
    return load


def _check(options: ServiceOptions) -> None:
    """InputError for options that contradict each other."""
    if options.peak and options.qps is not None:
        raise InputError("--peak and --qps exclude each other", hint="--qps answers whether one rate holds")
    if options.mode != "server" and options.qps is not None:
        raise InputError(f"--qps has no effect in the {options.mode} scenario", hint="leave out --qps")
    if options.seconds is not None and options.peak:
        raise InputError("--seconds has no effect with --peak", hint="the search chooses how long its runs last")
    if options.frontend is not None and options.division == "closed":
        raise InputError("--frontend has no effect in the closed division", hint="write --division network")


def serve(
    system: System | str | Path,
    workload: str | Path | Workload,
    mode: str = "server",
    division: str = "closed",
    host: str | None = None,
) -> ServiceRate:
    """The rate of an inference service (a workload by name, file or itself) in steady state, and its limit.

    UnknownName for a mode other than server or offline, or a division other than closed or network.
    """
    from lanewise.serving.load import load_of
    from lanewise.serving.steady import steady_rate

    if division not in DIVISIONS:
        raise unknown_name("division", division, DIVISIONS)
    return steady_rate(as_system(system), load_of(_workload(workload), mode, division, host))


def simulate(
    system: System | str | Path,
    services: str | ServiceLoad | Sequence[str | ServiceLoad],
    background: str | Sequence[Flow] = (),
    seconds: float | None = None,
    seed: int = 1,
) -> tuple[ServiceResult, ...]:
    """Services under load, by event simulation: 'resnet50 150000 QPS on gpu[0-3]' or ServiceLoad objects, with
    background traffic; InputError for what cannot be answered.
    """
    return _simulate(system, services, background, seconds, seed, 0).results


def peak(
    system: System | str | Path,
    service: str | ServiceLoad,
    beside: str | ServiceLoad | Sequence[str | ServiceLoad] = (),
    background: str | Sequence[Flow] = (),
    search: SearchOptions | None = None,
) -> ServiceResult:
    """The largest rate of a service that keeps its latency bound, by event simulation, with others at their rates.

    lanewise.peak("composable-server-gen4", "resnet50"). It judges that service alone: `simulate` at the peak gives the
    verdicts of the others as well. InputError for what cannot be answered.
    """
    from lanewise.serving.load import check_run
    from lanewise.serving.peak import SearchOptions, simulate_peak

    loads = _loads(service)
    if len(loads) != 1:
        raise InputError(f"a peak of {len(loads)} services", hint="give one, and the others at their rates as `beside`")
    if loads[0].qps:
        hint = "leave the rate out, or ask simulate whether it holds"
        raise InputError(f"a rate of {loads[0].qps:g} QPS has no effect on a peak", hint=hint)
    search = search or SearchOptions()
    check_run(None, search.seed, search.most_runs)
    return simulate_peak(as_system(system), loads[0], _loads(beside), _flows(background), search)[0][0]


def trace(
    system: System | str | Path,
    services: str | ServiceLoad | Sequence[str | ServiceLoad],
    background: str | Sequence[Flow] = (),
    samples: int = TRACED,
    seconds: float | None = None,
    seed: int = 1,
) -> str:
    """The first samples of simulated services as Trace Event JSON, which ui.perfetto.dev opens."""
    return _simulate(system, services, background, seconds, seed, samples).trace()


def _simulate(
    system: System | str | Path,
    services: str | ServiceLoad | Sequence[str | ServiceLoad],
    background: str | Sequence[Flow],
    seconds: float | None,
    seed: int,
    samples: int,
) -> ServicePrediction:
    from lanewise.serving.load import check_run
    from lanewise.serving.peak import simulate as run

    check_run(seconds, seed)
    return ServicePrediction(*run(as_system(system), _loads(services), _flows(background), seconds, seed, samples))


def _workload(workload: str | Path | Workload) -> Workload:
    from lanewise.serving.workload import Workload

    return workload if isinstance(workload, Workload) else load_workload(workload)


def _loads(services: str | ServiceLoad | Sequence[str | ServiceLoad]) -> list[ServiceLoad]:
    from lanewise.serving.load import ServiceLoad, parse_load

    several = [services] if isinstance(services, (str, ServiceLoad)) else services
    return [load if isinstance(load, ServiceLoad) else parse_load(load, load_workload) for load in several]


def _flows(flows: str | Sequence[Flow]) -> Sequence[Flow]:
    from lanewise.perf.flow import parse_flows

    return parse_flows(flows) if flows and isinstance(flows, str) else flows or ()
