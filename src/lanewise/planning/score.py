"""The score of a placement: the model's rates as goals, compared one after the other.

`Evaluate` is the interface: any function from a system and its work to a Score may judge placements, such as an event
simulation that knows latency bounds. `by_model` is the default: steady state, max-min over shared resources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lanewise.perf.concurrent_flows import flow_demands, solver_input
from lanewise.perf.flow import Flow
from lanewise.perf.flow_demand import FlowDemand, limit_source
from lanewise.perf.resources import Resource
from lanewise.perf.sharing import Shares, share
from lanewise.planning.work import TenantGpus, Work
from lanewise.serving.steady import service_flow
from lanewise.topology.model import System

DEMAND = "its demand"
NO_GPU = "no GPU serves it"
SAME = 1e-6
"""Rates closer than this are one rate (relative)."""
SHORT = 1e-4
"""A demand is met if less than this part of it is missing."""
GB = 1e9


@dataclass(frozen=True, slots=True)
class Allocation:
    """The rate of one flow (B/s) or tenant (queries/s), its demand (None: as much as possible) and its limit."""

    name: str
    rate: float
    unit: str
    demand: float | None
    limit: str
    basis: str
    rests_on: str
    gpus: tuple[str, ...] = ()

    @property
    def served(self) -> bool:
        """Whether the demand is met, as far as rates tell."""
        return self.demand is None or self.rate >= self.demand * (1 - SHORT)


@dataclass(frozen=True, slots=True)
class Score:
    """`goals` in order (more is better), the rates, their limit and how many it limits, the busiest resource (0..1)."""

    goals: tuple[float, ...]
    lines: tuple[Allocation, ...]
    limit: str
    limited: int
    busiest: tuple[str, float]

    @property
    def total(self) -> float:
        """Sum of all lines' rates."""
        return sum(line.rate for line in self.lines)

    @property
    def slowest(self) -> float:
        """The least rate of any line."""
        return min(line.rate for line in self.lines)


Evaluate = Callable[["System", Work], Score]


def by_model(system: System, work: Work) -> Score:
    """The score of a system under its work in steady state; LanewiseError if a flow cannot run at all."""
    flows, owners = _all_flows(system, work)
    demands = flow_demands(system, flows)
    resources, solver_flows = solver_input(demands)
    capacities = [resource.capacity for resource in resources] + [served.tenant.demand for served in work.services]
    solver_flows = [
        each if owner is None else replace(each, amounts=(*each.amounts, (len(resources) + owner, 1.0)))
        for each, owner in zip(solver_flows, owners, strict=True)
    ]
    shares = share(capacities, solver_flows) if solver_flows else Shares((), (), ())
    rated = [_flow_line(system, demand, i, shares, resources) for i, demand in enumerate(demands)]
    lines = [line for line, owner in zip(rated, owners, strict=True) if owner is None]
    for number, serving in enumerate(work.services):
        mine = [line for line, owner in zip(rated, owners, strict=True) if owner == number]
        lines.append(_tenant_line(serving, mine))
    names = [resource.name for resource in resources]
    used = zip(names, shares.utilization, strict=False)  # the services' demands come after the resources
    busiest = max(used, key=lambda pair: pair[1], default=("", 0.0))
    return _score(work, lines, busiest)


def common_limit(lines: Sequence[Allocation]) -> tuple[str, int]:
    """The limit that holds most of the lines (the first of equals), with how many others are like it, and its count."""
    if not lines:
        return "", 0
    counts = Counter(line.limit for line in lines)
    name, count = counts.most_common(1)[0]
    more = len(counts) - 1
    return (f"{name} and {more} more" if more else name), count


def _all_flows(system: System, work: Work) -> tuple[list[Flow], list[int | None]]:
    """Plain flows and those of services, with the number of the service that each belongs to."""
    flows: list[Flow] = list(work.flows)
    owners: list[int | None] = [None] * len(flows)
    for number, serving in enumerate(work.services):
        flows += [service_flow(system, serving.tenant.load, gpu, serving.tenant.gpu_rate) for gpu in serving.gpus]
        owners += [number] * len(serving.gpus)
    return flows, owners


def _flow_line(system: System, demand: FlowDemand, i: int, shares: Shares, resources: Sequence[Resource]) -> Allocation:
    index = shares.limits[i]
    if index is not None and index >= len(resources):
        limit, basis, rests = DEMAND, "physics", "the plan"
    elif index is not None:
        basis, sources = limit_source(system, demand, resources[index])
        limit, rests = resources[index].name, "; ".join(sources)
    else:
        limit, basis, rests = demand.cap_limit
    return Allocation(demand.flow.name, shares.rates[i], "B/s", None, limit, basis, rests)


def _tenant_line(serving: TenantGpus, mine: Sequence[Allocation]) -> Allocation:
    tenant = serving.tenant
    rate = sum(line.rate for line in mine) / tenant.workload.bytes_in
    if not mine:
        return Allocation(tenant.name, 0.0, "1/s", tenant.qps, NO_GPU, "physics", "the plan")
    short = rate < tenant.qps * (1 - SHORT)
    slow = min(mine, key=lambda line: line.rate)
    limit, basis, rests = (slow.limit, slow.basis, slow.rests_on) if short else (DEMAND, "physics", "the plan")
    return Allocation(tenant.name, rate, "1/s", tenant.qps, limit, basis, rests, serving.gpus)


def _score(work: Work, lines: Sequence[Allocation], busiest: tuple[str, float]) -> Score:
    if work.services:
        tenants = [line for line in lines if line.demand]
        parts = [min(1.0, line.rate / (line.demand or 1.0)) for line in tenants]
        goals: tuple[float, ...] = (min(parts), sum(parts))
        short = [line for line in tenants if not line.served]
        limit, count = common_limit(short) if short else (DEMAND, len(tenants))
        return Score(goals, tuple(lines), limit, count, busiest)
    slowest, total = min(line.rate for line in lines) / GB, sum(line.rate for line in lines) / GB
    if work.by == "slowest":
        limit, count = common_limit([line for line in lines if line.rate <= slowest * GB * (1 + SAME)])
        return Score((slowest, total), tuple(lines), limit, count, busiest)
    limit, count = common_limit(lines)
    return Score((total, slowest), tuple(lines), limit, count, busiest)
