"""What a service reaches without any latency bound: GPUs and paths at their rates, shared by max-min.

It is the ceiling of the search, and tells what a change would bring.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise.perf.sharing import FlowClass, share
from lanewise.serving.simulation import alone_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lanewise.serving.simulation import Served, Simulation

RAISE = 1.25  # what-if: one thing faster by a quarter
WORTH = 0.005  # gains below this share are noise


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Queries/s of a service in steady state, and the resource (index) that stops each GPU, None for its own rate."""

    qps: float
    limits: tuple[int | None, ...]


def ceiling(
    simulation: Simulation, place: int, rates: Sequence[float], raised: int | None = None, gpus: float = 1.0
) -> Ceiling:
    """The ceiling of the service at that place, the others asking for their rates.

    What if: resource `raised` is faster by RAISE, this service's GPUs by the factor `gpus`.
    """
    classes, capacities = [], [resource.capacity for resource in simulation.resources]
    if raised is not None:
        capacities[raised] *= RAISE
    for index, (served, rate) in enumerate(zip(simulation.served, rates, strict=True)):
        caps = _caps(served, gpus) if index == place else _caps(served, 1.0, rate)
        classes += [
            FlowClass(uses, cap=cap) for uses, cap in zip(simulation.inward_uses(index), caps, strict=True)
        ]
    classes += _beside(simulation)
    shares = share(capacities, classes)
    start = sum(len(served.gpus) for served in simulation.served[:place])
    count = len(simulation.served[place].gpus)
    load = simulation.served[place].load
    return Ceiling(
        sum(shares.rates[start : start + count]) / load.workload.bytes_in, shares.limits[start : start + count]
    )


def apart(simulation: Simulation, place: int) -> float:
    """Queries/s of the service if no GPU shared a link with another."""
    served = simulation.served[place]
    size = served.load.workload.bytes_in
    return sum(
        min(cap, alone_rate(item)) for cap, item in zip(_caps(served, 1.0), served.inward, strict=True)
    ) / size


def _caps(served: Served, factor: float, rate: float = math.inf) -> Iterator[float]:
    """B/s that each GPU of a service takes at most: its own rate, or its part of what is asked."""
    size, own = served.load.workload.bytes_in, [times.rate(served.batch) for times in served.times]
    for each in own:
        yield min(each * factor, rate * each / sum(own)) * size


def _beside(simulation: Simulation) -> list[FlowClass]:
    """Background traffic: endless, or its average where it comes again and again; what comes once is left out."""
    made = []
    for flow, uses in zip(simulation.background, simulation.background_uses(), strict=True):
        if flow.size is None:
            made.append(FlowClass(uses, flow.weight, flow.cap))
        elif flow.every:
            made.append(FlowClass(uses, flow.weight, min(flow.cap, flow.size / flow.every)))
    return made
