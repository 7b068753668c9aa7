"""What a service reaches without any latency bound: GPUs and paths at their rates, shared by max-min.

It is the ceiling of the search, and tells what a change would bring.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise.perf.sharing import FlowClass, share
from lanewise.serving.simulation import alone_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lanewise.serving.simulation import Deployment, Simulation

    Uses = tuple[tuple[int, float], ...]

RAISE = 1.25  # what-if: one thing faster by a quarter


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
    classes = []
    for index, (deployment, rate) in enumerate(zip(simulation.deployments, rates, strict=True)):
        factor = gpus if index == place else 1.0
        own = _own(deployment, factor)
        demand = rate if index != place and deployment.load.scenario == "server" else math.inf
        caps = [
            min(rate_of_gpu, demand * deployment.load.workload.bytes_in * rate_of_gpu / sum(own)) for rate_of_gpu in own
        ]
        for gpu, uses, cap, most in zip(deployment.gpus, _both_ways(simulation, index), caps, own, strict=True):
            busy = ((len(simulation.resources) + shared.index(gpu), 1.0 / most),) if gpu in shared else ()
            classes.append(FlowClass((*uses, *busy), cap=cap))
    classes += _background(simulation)
    shares = share(capacities, classes)
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
    """B/s of queries that each GPU of a service answers by itself."""
    return [times.rate(deployment.batch) * deployment.load.workload.bytes_in * factor for times in deployment.times]


def _shared_gpus(simulation: Simulation) -> list[str]:
    """GPUs that serve more than one of the loads."""
    return [
        gpu
        for gpu, loads in Counter(gpu for deployment in simulation.deployments for gpu in deployment.gpus).items()
        if loads > 1
    ]


def _both_ways(simulation: Simulation, place: int) -> Iterator[Uses]:
    """What a byte of queries to each GPU takes, the answer that it causes included."""
    workload = simulation.deployments[place].load.workload
    answer = workload.bytes_out / workload.bytes_in
    for inward, outward in zip(simulation.inward_uses(place), simulation.outward_uses(place), strict=True):
        yield (*inward, *((index, amount * answer) for index, amount in outward if answer > 0.0))


def _background(simulation: Simulation) -> list[FlowClass]:
    """Background traffic: endless, or its average where it comes again and again; what comes once is left out."""
    classes = []
    for flow, uses in zip(simulation.background, simulation.background_uses(), strict=True):
        if flow.size is None:
            classes.append(FlowClass(uses, flow.weight, flow.cap))
        elif flow.every:
            classes.append(FlowClass(uses, flow.weight, min(flow.cap, flow.size / flow.every)))
    return classes
