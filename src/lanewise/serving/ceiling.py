"""What a service reaches without any latency bound, what holds it down, and what a change would bring.

The ceiling of the search is GPUs and paths at their rates, shared by max-min.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lanewise import units
from lanewise.perf.sharing import SolverFlow, share
from lanewise.results.service_result import Advice, ServiceResult
from lanewise.serving.simulation import Amounts, Deployment, Simulation, alone_rate

RAISE = 1.25  # what-if: one thing faster by a quarter
WORTH = 0.005  # gains below this share are noise
BUSY = 0.8  # below this use nothing is full, so what is late is late for another reason
FASTER = f"{100 * (RAISE - 1):g} %"


@dataclass(frozen=True, slots=True)
class RateCeiling:
    """Queries/s of a service in steady state, and the resource (index) that stops each GPU, None for its own rate."""

    qps: float
    limits: tuple[int | None, ...]


def ceiling(
    simulation: Simulation, place: int, rates: Sequence[float], raised: int | None = None, gpus: float = 1.0
) -> RateCeiling:
    """The ceiling of the service at that place, the others asking for their rates.

    What if: resource `raised` is faster by RAISE, this service's GPUs by the factor `gpus`.
    """
    capacities = [resource.capacity for resource in simulation.resources]
    if raised is not None:
        capacities[raised] *= RAISE
    shared = _shared_gpus(simulation)
    capacities += [1.0] * len(shared)  # seconds a second
    flows = []
    for index, (deployment, rate) in enumerate(zip(simulation.deployments, rates, strict=True)):
        factor = gpus if index == place else 1.0
        own = _own(deployment, factor)
        demand = rate if index != place and deployment.load.scenario == "server" else math.inf
        caps = [
            min(rate_of_gpu, demand * deployment.load.workload.bytes_in * rate_of_gpu / sum(own)) for rate_of_gpu in own
        ]
        for gpu, uses, cap, most in zip(deployment.gpus, _both_ways(simulation, index), caps, own, strict=True):
            busy = ((len(simulation.resources) + shared.index(gpu), 1.0 / most),) if gpu in shared else ()
            flows.append(SolverFlow((*uses, *busy), cap=cap))
    flows += _background(simulation)
    shares = share(capacities, flows)
    start = sum(len(deployment.gpus) for deployment in simulation.deployments[:place])
    deployment = simulation.deployments[place]
    limits = shares.limits[start : start + len(deployment.gpus)]
    limit_resources = tuple(None if limit is None or limit >= len(simulation.resources) else limit for limit in limits)
    total = sum(shares.rates[start : start + len(deployment.gpus)])
    return RateCeiling(total / deployment.load.workload.bytes_in, limit_resources)


def apart(simulation: Simulation, place: int) -> float:
    """Queries/s of the service if no GPU shared a link with another."""
    deployment = simulation.deployments[place]
    workload = deployment.load.workload
    routes = zip(_own(deployment, 1.0), deployment.inward, deployment.outward, strict=True)
    back = workload.bytes_in / workload.bytes_out if workload.bytes_out else math.inf
    return (
        sum(min(own, alone_rate(inward), alone_rate(outward) * back) for own, inward, outward in routes)
        / workload.bytes_in
    )


def _own(deployment: Deployment, factor: float) -> list[float]:
    """B/s of queries that each GPU of a service answers by itself, all batches that it runs at once together."""
    policy = deployment.load.policy
    streams = policy.streams if policy is not None else 1
    batch = deployment.batch
    rates = [times.rate(batch) * min(streams, 1.0 / times.share(batch)) for times in deployment.times]
    return [rate * deployment.load.workload.bytes_in * factor for rate in rates]


def _shared_gpus(simulation: Simulation) -> list[str]:
    """GPUs that serve more than one of the loads."""
    return [
        gpu
        for gpu, loads in Counter(gpu for deployment in simulation.deployments for gpu in deployment.gpus).items()
        if loads > 1
    ]


def _both_ways(simulation: Simulation, place: int) -> Iterator[Amounts]:
    """What a byte of queries to each GPU takes, the answer that it causes included."""
    workload = simulation.deployments[place].load.workload
    answer = workload.bytes_out / workload.bytes_in
    for inward, outward in simulation.demands_of(place):
        yield (*inward, *((index, amount * answer) for index, amount in outward if answer > 0.0))


def _background(simulation: Simulation) -> list[SolverFlow]:
    """Background traffic: endless, or its average where it comes again and again; what comes once is left out."""
    flows = []
    for flow, solved in zip(simulation.background, simulation.background_flows, strict=True):
        if flow.size is None:
            flows.append(replace(solved, weight=flow.weight, cap=flow.cap))
        elif flow.every:
            flows.append(SolverFlow(solved.amounts, flow.weight, min(flow.cap, flow.size / flow.every)))
    return flows


def advice(simulation: Simulation, place: int, rates: Sequence[float], today: float) -> tuple[Advice, ...]:
    """What to change first where something is full: each limit faster, the GPUs faster, GPUs on links of their own."""
    limits = {index for index in ceiling(simulation, place, rates).limits if index is not None}
    changes = []
    for index in sorted(limits):
        gain = ceiling(simulation, place, rates, raised=index).qps / today
        changes.append(Advice(f"{simulation.resources[index].name} faster by {FASTER}", gain))
    gain = ceiling(simulation, place, rates, gpus=RAISE).qps / today
    changes.append(Advice(f"GPUs that serve {FASTER} more each", gain))
    changes.append(Advice("each GPU on links of its own (lanewise plan places GPUs)", apart(simulation, place) / today))
    gains = [change for change in changes if change.gain is not None and change.gain > 1.0 + WORTH]
    return tuple(sorted(gains, key=lambda change: -(change.gain or 0.0)))


def lone_query(deployment: Deployment) -> float:
    """Seconds that a query takes at best, alone on the slowest of its GPUs: there, served, and back."""
    load = deployment.load.workload
    routes = zip(deployment.times, deployment.inward, deployment.outward, strict=True)
    return max(
        times.at(1) + times.answer_delay + load.bytes_in / alone_rate(inward) + load.bytes_out / alone_rate(outward)
        for times, inward, outward in routes
    )


def stage_limit(deployment: Deployment, result: ServiceResult) -> tuple[str, tuple[Advice, ...]]:
    """Limit and advice for a service that is late although nothing is full: the stage in which its time goes."""
    load, lone = deployment.load, lone_query(deployment)
    bound = load.workload.bound
    batch = units.readable(max(times.at(deployment.batch) for times in deployment.times), "s")
    if lone > bound:
        limit = f"a lone query takes {units.readable(lone, 's')}, longer than the bound of {units.readable(bound, 's')}"
        return limit, (Advice("a faster GPU, a smaller model, or a longer bound"),)
    if deployment.batch > 1 and load.wait + lone > bound:
        wait = units.readable(load.wait, "s")
        return f"the batching time-out of {wait}", (Advice(f"a shorter time-out: {wait} leaves no time to answer"),)
    longest = max(result.stages, key=lambda stage: stage.slowest, default=None)
    if longest is not None and longest.name == "GPU" and deployment.batch > 1:
        return f"a full batch takes {batch} on the GPU", (Advice(f"batches smaller than {deployment.batch}"),)
    return result.limit, ()


def doubts(simulation: Simulation, deployment: Deployment, seconds: float) -> list[str]:
    """What a reader must know: a time-out that low rates cannot afford, and traffic too rare for the run."""
    load, lone = deployment.load, lone_query(deployment)
    notes = []
    if load.scenario == "server" and deployment.batch > 1 and lone <= load.workload.bound < load.wait + lone:
        notes.append(
            f"at low rates the bound is not kept: a lone query waits {units.readable(load.wait, 's')} for its batch to "
            f"fill and takes {units.readable(lone, 's')}"
        )
    rare = max((flow.every for flow in simulation.background), default=0.0)
    if rare > seconds:
        notes.append(
            f"traffic that comes every {units.readable(rare, 's')} comes once in the {units.readable(seconds, 's')} "
            "simulated, so its part is exaggerated"
        )
    return notes
