"""How fast: flows, transfers, matrices, and services in steady state and under load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.api.loading import load_workload, system_of
from lanewise.errors import InputError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lanewise.perf.flow import Flow
    from lanewise.perf.matrix import Matrix
    from lanewise.perf.predict import Prediction
    from lanewise.perf.transfers import Finished
    from lanewise.results.service_result import ServiceResult
    from lanewise.serving.load import ServiceLoad
    from lanewise.serving.peak import SearchOptions
    from lanewise.serving.steady import ServiceRate
    from lanewise.serving.workload import Workload
    from lanewise.topology.model import System


def predict(system: System | str | Path, flows: str | Sequence[Flow], p2p: bool = True) -> Prediction:
    """The rates that flows reach together: 'gpu0->gpu4, host0->gpu1' or Flow objects; InputError for finite ones."""
    from lanewise.perf.predict import predict as solve

    asked = _flows(flows, p2p)
    for flow in asked:
        if flow.size is not None:
            raise InputError(
                f"{flow.name} has a size, and rates are those of flows without an end",
                hint="leave the size out, or ask finish_times when each transfer ends",
            )
        if flow.start:
            raise InputError(
                f"{flow.name} has a start but no size",
                hint="leave the start out, or give every flow a size: gpu0->gpu1 1 GiB @10 ms",
            )
    return solve(system_of(system), asked)


def finish_times(system: System | str | Path, flows: str | Sequence[Flow], p2p: bool = True) -> tuple[Finished, ...]:
    """When each of the finite transfers ends: 'gpu0->gpu1 1 GiB, gpu2->gpu3 4 GiB @10 ms'."""
    from lanewise.perf.transfers import finish_times as solve

    return solve(system_of(system), _flows(flows, p2p))


def matrix(
    system: System | str | Path,
    names: Sequence[str] | None = None,
    metric: str = "goodput",
    both_ways: bool = False,
    p2p: bool = True,
) -> Matrix:
    """A matrix over all pairs, each alone: metric goodput (B/s) or latency (s); UnknownName for another metric."""
    from lanewise.perf.matrix import bandwidth_matrix, latency_matrix

    if metric == "goodput":
        return bandwidth_matrix(system_of(system), names, both_ways, p2p)
    if metric == "latency" and both_ways:
        raise InputError("a latency is one way: both ways have no sum", hint="leave both ways out, or ask for goodput")
    if metric == "latency":
        return latency_matrix(system_of(system), names, p2p)
    raise unknown_name("metric", metric, ("goodput", "latency"))


def serve(
    system: System | str | Path,
    workload: str | Path | Workload,
    mode: str = "server",
    division: str = "closed",
    host: str | None = None,
) -> ServiceRate:
    """What an inference service (a workload by name, file or itself) reaches in steady state, and its limit.

    UnknownName for a mode other than server or offline, or a division other than closed or network.
    """
    from lanewise.serving import steady
    from lanewise.serving.workload import Workload

    divisions = {"closed": steady.closed, "network": steady.network}
    if division not in divisions:
        raise unknown_name("division", division, divisions)
    asked = workload if isinstance(workload, Workload) else load_workload(workload)
    return divisions[division](system_of(system), asked, mode, host)


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
    from lanewise.serving.load import check_run
    from lanewise.serving.peak import simulate as run

    check_run(seconds, seed)
    return run(system_of(system), _loads(services), _flows(background, True) if background else (), seconds, seed)[0]


def peak(
    system: System | str | Path,
    service: str | ServiceLoad,
    beside: str | ServiceLoad | Sequence[str | ServiceLoad] = (),
    background: str | Sequence[Flow] = (),
    sought: SearchOptions | None = None,
) -> ServiceResult:
    """The largest rate of a service that keeps its latency bound, by event simulation, beside services at their rates.

    lanewise.peak("composable-server-gen4", "resnet50"). It judges that service alone: `simulate` at the rate found
    gives the verdicts of those beside it as well. InputError for what cannot be answered.
    """
    from lanewise.serving.load import check_run
    from lanewise.serving.peak import SearchOptions, simulate_peak

    asked = _loads(service)
    if len(asked) != 1:
        raise InputError(f"a peak of {len(asked)} services", hint="give one, and the others at their rates as `beside`")
    if asked[0].qps:
        hint = "leave the rate out, or ask simulate whether it holds"
        raise InputError(f"a rate of {asked[0].qps:g} QPS says nothing about a peak", hint=hint)
    wanted = sought or SearchOptions()
    check_run(None, wanted.seed, wanted.most_runs)
    flows = _flows(background, True) if background else ()
    return simulate_peak(system_of(system), asked[0], _loads(beside), flows, wanted)[0][0]


def trace(
    system: System | str | Path,
    services: str | ServiceLoad | Sequence[str | ServiceLoad],
    background: str | Sequence[Flow] = (),
    samples: int = 10_000,
    seconds: float | None = None,
    seed: int = 1,
) -> str:
    """The first samples of simulated services as Trace Event JSON, which ui.perfetto.dev opens."""
    from lanewise.serving.load import check_run
    from lanewise.serving.peak import simulate as run
    from lanewise.serving.trace import perfetto

    check_run(seconds, seed)
    flows = _flows(background, True) if background else ()
    _, simulation, outcome = run(system_of(system), _loads(services), flows, seconds, seed, samples)
    return perfetto(simulation, outcome)


def _loads(services: str | ServiceLoad | Sequence[str | ServiceLoad]) -> list[ServiceLoad]:
    from lanewise.serving.load import ServiceLoad, parse_load

    several = [services] if isinstance(services, (str, ServiceLoad)) else services
    return [each if isinstance(each, ServiceLoad) else parse_load(each, load_workload) for each in several]


def _flows(flows: str | Sequence[Flow], p2p: bool) -> Sequence[Flow]:
    from lanewise.perf.flow import parse_flows

    return parse_flows(flows, p2p) if isinstance(flows, str) else flows
