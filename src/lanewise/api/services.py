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
    from lanewise.serving.load import BatchPolicy, ServiceLoad
    from lanewise.serving.peak import SearchOptions
    from lanewise.serving.simulation import Simulation
    from lanewise.serving.steady import ServiceRate
    from lanewise.serving.workload import Workload
    from lanewise.topology.model import System

TRACED = 10_000  # samples in a trace, under 1 kB each


@dataclass(frozen=True, slots=True)
class ServicePrediction:
    """The simulated services, the requested one first, with the run that a trace shows."""

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
    """A service's latency percentiles at `options.qps` queries/s, or with `options.peak` its largest rate within the
    latency bound, by event simulation.

    In the Network division the Closed one is predicted too, and the result's `network` has the share. `on_run` is
    called after each run of the searches. The result's trace() needs `options.trace` to be set.

    Raises UnknownName for a name that does not exist, InputError or Contradiction for options that contradict each
    other or the system, and FormatError for text that is not a service or a list of flows.

    >>> from lanewise.options.predict import ServiceOptions
    >>> result = lanewise.predict_service("composable-server-gen4", "resnet50", ServiceOptions(qps=150_000)).results[0]
    >>> result.valid, round(result.latency * 1e3, 1)  # 99th percentile, ms
    (True, 2.3)
    """
    from lanewise.perf.flow import parse_flows
    from lanewise.serving.load import check_run
    from lanewise.serving.network_share import simulated_share
    from lanewise.serving.peak import SearchOptions, simulate_peak
    from lanewise.serving.peak import simulate as run

    loaded = as_system(system)
    load = _load(loaded, workload, options)
    others = _loads(options.beside)
    background = parse_flows(options.background) if options.background else ()
    waiting = next((flow for flow in background if flow.after), None)
    if waiting is not None:
        raise InputError(f"{waiting.name} waits for another flow; traffic beside a service cannot",
                         hint="give it a start (@10 ms), or a period (every 10 s)")  # fmt: skip
    traced = TRACED if options.trace is not None else 0
    search = SearchOptions(options.precision, options.seed, on_run=on_run)
    check_run(options.seconds, options.seed, search.most_runs if options.peak else 1)
    if options.peak:
        results, simulation, outcome = simulate_peak(loaded, load, others, background, search, traced)
    else:
        results, simulation, outcome = run(loaded, [load, *others], background, options.seconds, options.seed, traced)
    if load.networked:
        compared = search if options.peak else None
        share = simulated_share(loaded, load, others, background, results[0], compared, options.seconds)
        results = (replace(results[0], network=share), *results[1:])
    return ServicePrediction(results, simulation, outcome)


def _load(system: System, workload: str | Path | Workload, options: ServiceOptions) -> ServiceLoad:
    from lanewise.serving.load import ServiceLoad, check, check_dispatch, gpus_of, on

    _check(options)
    networked = options.division == "network" or options.frontend is not None
    load = ServiceLoad(
        _workload(workload), qps=options.qps or 0.0, scenario=options.mode, host=options.host,
        frontend=(options.frontend or "frontend") if networked else None, batch=options.batch,
        timeout=options.timeout, copies=options.copies, dispatch=options.dispatch or "least", policy=_policy(options),
    )  # fmt: skip
    if options.peak and load.scenario == "server":
        load = replace(load, qps=1.0)
    if options.gpus is not None:
        load = on(load, options.gpus)
    check(load)
    if options.dispatch is not None:
        check_dispatch(system, load, gpus_of(system, load))
    return load


def _policy(options: ServiceOptions) -> BatchPolicy | None:
    """How batches are formed, where an option says so."""
    from lanewise.serving.load import BatchPolicy

    if options.streams is None and options.in_flight is None and not (options.full_batches or options.own_batcher):
        return None
    policy = BatchPolicy(whole=options.full_batches, own_batcher=options.own_batcher)
    streams = policy.streams if options.streams is None else options.streams
    in_flight = max(policy.in_flight, streams) if options.in_flight is None else options.in_flight
    return replace(policy, streams=streams, in_flight=in_flight)


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
    """An inference service's rate (queries/s) in steady state, without queueing or a latency bound, and what limits it.

    `mode` is "server" or "offline". Queries come from the GPUs' own host ("closed" `division`) or over the network from
    the host `frontend` ("network"); the result's `network` then has the share of Closed. `host` restricts the service
    to one host's GPUs.

    Raises UnknownName for a workload, mode, division or host that does not exist, and InputError where no GPU serves or
    the GPU's service rate is unknown.

    >>> round(lanewise.serve("composable-server-gen4", "resnet50").qps)
    175383
    """
    from lanewise.serving.load import load_of
    from lanewise.serving.network_share import steady_share
    from lanewise.serving.steady import steady_rate

    if division not in DIVISIONS:
        raise unknown_name("division", division, DIVISIONS)
    loaded, load = as_system(system), load_of(_workload(workload), mode, division, host)
    rate = steady_rate(loaded, load)
    return replace(rate, network=steady_share(loaded, load, rate)) if load.networked else rate


def simulate(
    system: System | str | Path,
    services: str | ServiceLoad | Sequence[str | ServiceLoad],
    background: str | Sequence[Flow] = (),
    seconds: float | None = None,
    seed: int = 1,
) -> tuple[ServiceResult, ...]:
    """Latency percentiles, verdict and utilization of services that run at the same time, by event simulation.

    `services` is text, 'resnet50 150000 QPS on gpu[0-3]', or ServiceLoad objects, one for each service; `background`
    are flows that share the links. `seconds` (s of simulated time) is by default long enough for stable percentiles;
    `seed` (a whole number) selects the random arrivals.

    Raises FormatError for text that is not a service or a list of flows, UnknownName for a name that does not exist,
    and InputError or Contradiction for a load that the system cannot run.

    >>> result = lanewise.simulate("composable-server-gen4", "resnet50 150000 QPS")[0]
    >>> result.valid, round(result.latency * 1e3, 1)  # 99th percentile, ms
    (True, 2.3)
    """
    return _simulate(system, services, background, seconds, seed, 0).results


def peak(
    system: System | str | Path,
    service: str | ServiceLoad,
    beside: str | ServiceLoad | Sequence[str | ServiceLoad] = (),
    background: str | Sequence[Flow] = (),
    search: SearchOptions | None = None,
) -> ServiceResult:
    """The largest rate (queries/s) of a service within its latency bound, by a search of event simulations.

    `service` has no rate: "resnet50 on gpu[0-3]". `beside` are services that run meanwhile at their own rates,
    `background` flows that share the links. Only `service` is judged; simulate at the peak gives the verdicts of the
    others.

    Raises FormatError for text that is not a service or a list of flows, UnknownName for a name that does not exist,
    and InputError for several services, a service with a rate, or a load that the system cannot run.

    >>> round(lanewise.peak("composable-server-gen4", "resnet50").qps, -3)
    176000.0
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
    """The first queries of a simulation, stage by stage, as Trace Event JSON for ui.perfetto.dev.

    Services, `background`, `seconds` (s of simulated time) and `seed` (a whole number) are those of simulate; `samples`
    (count) limits the trace, at about 1 kB each. Raises what simulate raises: FormatError, UnknownName, InputError or
    Contradiction.

    >>> lanewise.trace("composable-server-gen4", "resnet50 150000 QPS", samples=100, seconds=0.1)[:24]
    '{"displayTimeUnit":"ns",'
    """
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
