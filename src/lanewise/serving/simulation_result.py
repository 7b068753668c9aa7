"""A simulated run as a ServiceResult: verdict, percentiles, stages, utilization, and the limit by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import lanewise._native as _native
from lanewise import units
from lanewise.perf.flow_demand import limit_source
from lanewise.perf.resources import weakest
from lanewise.results.observation import Source
from lanewise.results.service_result import ResourceUtilization, ServiceResult, Stage
from lanewise.serving.host_cost import host_doubt
from lanewise.serving.host_stalls import STALLING, stalls, with_stalls
from lanewise.serving.load import ServiceLoad
from lanewise.serving.simulation import Deployment, Simulation, SimulationInput
from lanewise.serving.verdict import PERCENTILES, invalid_reason

# p99 of published services at their score over the simulated one, 5 and 95 % of 36 (lanewise accuracy --services), and
# the use of the GPUs above which it is said.
NEAR_PEAK, P99_RANGE = 0.8, (0.5, 3.6)
# The same of services whose batches are formed as their harness says (benchmarks/runs/2026-11-26-service-p99.md), of
# 156 at rates at which hosts do not stall, and of 65 with the stalls of published hosts.
POLICY_RANGE, STALLED_RANGE = (0.6, 2.3), (0.5, 1.4)
LEAST_NOTED = 0.05  # of a limit: what others take below this is not mentioned
SHARES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999)
NEAR_PEAK_DOUBT = (
    "so near the peak of the GPUs the latency is uncertain: published p99 were {} to {} times the simulated"
)
STALLED_DOUBT = (
    "from {:,.0f} queries/s on hosts stall: with stalls as on published hosts {:g} % of the answers take no more than "
    "{}, and published p99 were {} to {} times that"
)
# In the order of native/serve/histogram.hpp.
CLOSED_STAGES = ("", "", "", "queue", "copy", "link wait", "GPU wait", "GPU", "return")
OWN_STAGES = ("copy slot wait", "copy", "link wait", "queue", "", "", "GPU wait", "GPU", "return")
NETWORK_STAGES = ("connection wait", "network", "link wait", "queue", "", "", "GPU wait", "GPU", "return")
_KINDS = {"link": "link", "window": "window", "tags": "window"}


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """A resource or GPU with its use (0..1) on average and in each interval, and what its capacity is based on."""

    busy: ResourceUtilization
    basis: str
    rests_on: tuple[str, ...]
    resource: int | None


def reason_of(load: ServiceLoad, out: _native.ServiceOutcome) -> str:
    """Why a run is not VALID by MLPerf's rules, '' if it is; without a bound nothing makes it invalid."""
    return invalid_reason(out.counted, out.late, load.workload.percentile) if load.scenario == "server" else ""


def percentile_of(load: ServiceLoad) -> float:
    """The share of answers that the scenario's latency is stated for."""
    return load.workload.percentile if load.scenario == "server" else PERCENTILES.get(
        load.scenario.replace("-", ""), load.workload.percentile
    )  # fmt: skip


def answered_rate(load: ServiceLoad, out: _native.ServiceOutcome, run: SimulationInput) -> float:
    """Samples a second: those that were answered over the time in which they began, or until the last answer."""
    rate = out.answered / max(out.last_answer, run.duration if load.scenario == "server" else 0.0, 1e-12)
    return rate * load.workload.samples if load.scenario == "multi-stream" else rate


def p99_doubt(load: ServiceLoad, rate: float, near_peak: bool, out: _native.ServiceOutcome) -> str:
    """How far published p99s were from simulated ones at such a rate (queries/s); nothing where that is not known."""
    if load.scenario != "server":
        return ""
    if stalls(load, rate) and out.counted:
        share = percentile_of(load)
        latency = units.show(with_stalls(out.percentile, share), "ms", 3)
        return STALLED_DOUBT.format(STALLING, 100 * share, latency, *STALLED_RANGE)
    if not near_peak:
        return ""
    return NEAR_PEAK_DOUBT.format(*(P99_RANGE if load.policy is None else POLICY_RANGE))


def service_result(
    simulation: Simulation, place: int, rate: float, run: SimulationInput, outcome: _native.Outcome
) -> ServiceResult:
    """The result of the service with that index among the loads."""
    deployment, out = simulation.deployments[place], outcome.services[place]
    load = deployment.load
    reason, share = reason_of(load, out), percentile_of(load)
    latency = out.percentile(share)
    answer_rate = answered_rate(load, out, run)
    resource_uses = sorted(uses(simulation, outcome, run), key=lambda use: -use.busy.mean)
    limit = limit_of(simulation, place, resource_uses)
    basis, rests_on = _limit_source(simulation, deployment, limit)
    hosts = dict.fromkeys(load.frontend or simulation.system.device(gpu).host for gpu in deployment.gpus)
    near_peak = load.scenario == "server" and limit.busy.kind == "GPU" and limit.busy.mean > NEAR_PEAK
    notes = dict.fromkeys([*others_on(simulation, place, limit, outcome), *(times.doubt for times in deployment.times),
                           p99_doubt(load, rate, near_peak, out),
                           *(host_doubt(simulation.system, host, load.workload) for host in hosts)])  # fmt: skip
    return ServiceResult(
        name=name_of(simulation, deployment), workload=load.workload.name, scenario=load.scenario,
        system=simulation.system.name, source=Source.PREDICTED, qps=rate if load.scenario == "server" else answer_rate,
        answered=answer_rate, queries=out.counted, late=out.late, bound=load.workload.bound, percentile=share,
        latency=latency, valid=not reason, reason=reason,
        limit=limit_name(simulation, deployment, limit), basis=basis,
        rests_on=rests_on, percentiles=_percentiles(out), stages=_stages(load, out, latency),
        utilization=tuple(use.busy for use in resource_uses[:20]),
        series_step=run.duration / run.steps if run.steps else 0.0,
        batch=out.samples / out.batches if out.batches else 0.0, goodput=answer_rate * load.workload.bytes_in,
        duration=run.duration, seed=run.seed, settings=dict(simulation.system.settings),
        assumptions=_assumptions(deployment), note="; ".join(filter(None, notes)),
    )  # fmt: skip


def name_of(simulation: Simulation, deployment: Deployment) -> str:
    """The service in a few words: workload, GPUs, and where its queries come from."""
    part = simulation.system.part(deployment.gpus[0])
    kind = part.name if part is not None else "GPUs"
    source = f"over the network from {deployment.load.frontend}" if deployment.load.frontend else "from host memory"
    return f"{deployment.load.workload.name} on {len(deployment.gpus)} {kind}, {source}"


def uses(simulation: Simulation, outcome: _native.Outcome, run: SimulationInput) -> Iterator[ResourceUse]:
    """The use of every resource and GPU over the run."""
    amounts = simulation.amounts()
    end = max(outcome.end, 1e-12)
    step = run.duration / run.steps if run.steps else 1.0
    for index, resource in enumerate(simulation.resources):
        shares = amounts[index]
        mean = sum(outcome.moved[k] * amount for k, amount in shares) / (resource.capacity * end)
        series = tuple(
            min(1.0, sum(moved[k] * amount for k, amount in shares) / (resource.capacity * step))
            for moved in outcome.steps
        )
        kind = "engine" if resource.is_engine else _KINDS.get(resource.kind, "other")
        yield ResourceUse(
            ResourceUtilization(resource.name, min(mean, 1.0), series, kind),
            resource.basis,
            (resource.rests_on,),
            index,
        )
    for place, gpu in enumerate(simulation.gpus):
        series = tuple(min(1.0, busy[place] / step) for busy in outcome.gpu_steps)
        times = [service.times[service.gpus.index(gpu)] for service in simulation.deployments if gpu in service.gpus]
        yield ResourceUse(
            ResourceUtilization(f"GPU {gpu}", min(outcome.busy[place] / end, 1.0), series, "GPU"),
            weakest([item.basis for item in times]), tuple(text for item in times for text in item.rests_on), None,
        )  # fmt: skip


def limit_of(simulation: Simulation, place: int, resource_uses: Sequence[ResourceUse]) -> ResourceUse:
    """What holds the service down: the busiest of what its queries use."""
    resources = simulation.resources_of(place)
    gpus = {f"GPU {gpu}" for gpu in simulation.deployments[place].gpus}
    of_service = [
        use for use in resource_uses
        if use.resource in resources or (use.busy.kind == "GPU" and use.busy.name in gpus)
    ]  # fmt: skip
    return max(of_service, key=lambda use: use.busy.mean)


def _limit_source(simulation: Simulation, deployment: Deployment, limit: ResourceUse) -> tuple[str, tuple[str, ...]]:
    """Basis and sources of a limit; of a link also those of the payload of the service's packets."""
    if limit.resource is None:
        return limit.basis, limit.rests_on
    resource = simulation.resources[limit.resource]
    demand = next(item for item in (*deployment.inward, *deployment.outward) if resource in item.per_byte)
    basis, sources = limit_source(simulation.system, demand, resource)
    return basis, tuple(sources)


def others_on(simulation: Simulation, place: int, limit: ResourceUse, outcome: _native.Outcome) -> list[str]:
    """Who else takes a worthwhile part of what limits the service at that place, in words."""
    if limit.resource is None:
        sharers = [
            name_of(simulation, sharer) for index, sharer in enumerate(simulation.deployments)
            if index != place and limit.busy.name.removeprefix("GPU ") in sharer.gpus
        ]  # fmt: skip
        return [f"shares its GPUs with {name}" for name in sharers]
    amount_of: dict[str, float] = {}
    for owner, flow_class, amount in simulation.users_of(limit.resource):
        amount_of[owner] = amount_of.get(owner, 0.0) + outcome.moved[flow_class] * amount
    total = sum(amount_of.values())
    own_name = simulation.owner(place)
    return [
        f"{owner} takes {100 * part / total:.0f} % of what passes {limit.busy.name}"
        for owner, part in amount_of.items()
        if owner != own_name and total > 0 and part / total >= LEAST_NOTED
    ]


def limit_name(simulation: Simulation, deployment: Deployment, limit: ResourceUse) -> str:
    """The limit as predictions name it: a resource, or what a GPU of that model serves."""
    if limit.busy.kind != "GPU":
        return limit.busy.name
    part = simulation.system.part(limit.busy.name.removeprefix("GPU "))
    return f"GPU service rate ({part.name if part else 'unknown part'}, {deployment.load.workload.name})"


def _percentiles(out: _native.ServiceOutcome) -> tuple[tuple[float, float], ...]:
    """The percentiles that so many queries can give: at least ten queries are above each."""
    return tuple((share, out.percentile(share)) for share in SHARES if out.counted * (1.0 - share) >= 10)


def _stages(load: ServiceLoad, out: _native.ServiceOutcome, latency: float) -> tuple[Stage, ...]:
    names = OWN_STAGES if load.copies == "per-query" else CLOSED_STAGES
    names = NETWORK_STAGES if load.frontend else names
    pairs = zip(names, out.stages(0.0), out.stages(latency), strict=True)
    return tuple(Stage(name, mean, slow) for name, mean, slow in pairs if name)


def _assumptions(deployment: Deployment) -> tuple[str, ...]:
    load = deployment.load
    wait = units.show(load.wait, "ms") if load.wait else "no time"
    assumptions = [f"batches of up to {deployment.batch}; the oldest query waits {wait} for its batch to fill"]
    if load.frontend:
        assumptions.append(
            "each query is a message of its own, straight into GPU memory; those that wait leave as one chain"
        )
    elif load.copies == "per-query":
        assumptions.append("each query is copied on its own as it comes, one copy to a GPU at once")
    else:
        calls = "in one go" if load.copies == "gathered" else "with a call for each query"
        assumptions.append(f"a batch is copied {calls}, {load.slots} copies to a GPU at once, {load.buffers} buffers")
    return tuple(assumptions)
