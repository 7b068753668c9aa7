"""Predicts the rates of concurrent flows over a system, each with its limit and its sources."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from lanewise.perf.concurrent_flows import arbitrated, flow_demands, solver_input, writes_first
from lanewise.perf.doubts import merge_doubts
from lanewise.perf.drives import UNKNOWN_END, WHY_UNKNOWN
from lanewise.perf.flow import Flow
from lanewise.perf.flow_demand import FlowDemand, limit_source
from lanewise.perf.resources import REQUESTS, Resource, weakest
from lanewise.perf.schedules import FULL, TOGETHER, Schedule, share_in_order
from lanewise.perf.sharing import Shares
from lanewise.perf.uncertainty import RANGES, SHARED, TIE, independent, is_tie
from lanewise.routes.model import LinkDirection, Route
from lanewise.topology.model import System
from lanewise.topology.ranges import fold

_ENDS: tuple[Literal["low", "high"], ...] = ("low", "high")


@dataclass(frozen=True, slots=True)
class FlowRate:
    """One flow's predicted goodput in B/s, with its limit and the sources of that limit.

    `low` and `high` are the ends of its interval: what it reaches with all capacities at the low or the high end of
    their ranges, and with the stages of copies in turn or overlapped; `raw` is the largest rate in B/s that it puts
    on any wire it crosses; `doubt` is what a reader must know before trusting it. `why_unknown` says which drive or
    card of unknown rate may limit it, and what to state or measure: the answer is the interval then, and `rate`, what
    such drives typically do, is for ranking alone.
    """

    flow: Flow
    routes: tuple[Route, ...]
    rate: float
    limit: str
    basis: str
    rests_on: tuple[str, ...]
    low: float
    high: float
    raw: float
    doubt: str = ""
    why_unknown: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Prediction:
    """All flows together: their `rates`, and by direction of a link `loads` (goodput) and `raw` rate in B/s.

    `total_low` and `total_high` are the ends of the interval of their sum in B/s. `utilization` is what is taken of
    each shared resource (wire bytes, of a link) / its capacity, `link_utilization` that of the links. With another
    `schedule` than together, rates are each flow's bytes over the whole time. `flows` are all that ran, also those that
    the schedule does not count.
    """

    system: System
    rates: tuple[FlowRate, ...]
    utilization: Mapping[str, float]
    loads: Mapping[LinkDirection, float]
    raw: Mapping[LinkDirection, float]
    link_utilization: Mapping[LinkDirection, float]
    total_low: float
    total_high: float
    schedule: Schedule = TOGETHER
    flows: tuple[Flow, ...] = ()

    def __repr__(self) -> str:
        words = ["unknown" if each.why_unknown else f"{each.rate / 1e9:.4g} GB/s" for each in self.rates]
        rates = ", ".join(f"{each.flow.name} {word}" for each, word in zip(self.rates, words, strict=True))
        return f"<Prediction on {self.system.name}: {rates}>"

    @property
    def ties(self) -> tuple[tuple[FlowRate, FlowRate], ...]:
        """Pairs of flows whose rates differ, but not by more than the model can tell."""
        pairs = combinations(self.rates, 2)
        return tuple(
            (a, b) for a, b in pairs
            if a.rate != b.rate and is_tie((a.low, a.rate, a.high), (b.low, b.rate, b.high))
        )  # fmt: skip

    @property
    def if_translated(self) -> tuple[FlowRate, ...]:
        """The flows that an IOMMU that translates would slow below their interval, as they then are.

        None where the description states the IOMMU's mode. Of measured hosts whose description does not, it slows
        copies of host memory on none of 78 and pairs below a switch on one of 20: too few for the intervals
        (docs/decisions/0077).
        """
        if self.system.policies.iommu is not None:
            return ()
        translated = predict(self.system.with_iommu("translate"), self.flows, self.schedule).rates
        pairs = zip(self.rates, translated, strict=True)
        return tuple(case for plain, case in pairs if case.rate < plain.low and not plain.why_unknown)

    @property
    def why_unknown(self) -> str:
        """Why the sum of the flows is unknown, '' where it is known."""
        return "; ".join(dict.fromkeys(rate.why_unknown for rate in self.rates if rate.why_unknown))

    @property
    def total(self) -> float:
        """Sum of all flows' goodput in B/s."""
        return sum(rate.rate for rate in self.rates)


def predict(system: System, flows: Sequence[Flow], schedule: Schedule = TOGETHER) -> Prediction:
    """The rates that `flows` reach together or in the order of a benchmark.

    Unreachable or UnknownName if one of them cannot run.
    """
    # Of each flow: its routes, and what a byte takes of each resource.
    at_once = [[flow] for flow in flows] if schedule.one_by_one else [flows]
    demands = [
        demand for each in at_once
        for demand in arbitrated(flow_demands(system, each, schedule.opposite, schedule.copied_by))
    ]  # fmt: skip
    resources, solver_flows = solver_input(demands)  # the same as the solver takes it
    capacities = [resource.capacity for resource in resources]
    solution = share_in_order(schedule, capacities, flows, solver_flows)
    cases: list[Sequence[float]] = [solution.rates]
    shared = _shared_places(resources, demands)
    for end in _ENDS:
        capped = [replace(flow, cap=demand.cap(end)) for flow, demand in zip(solver_flows, demands, strict=True)]
        for weighted in (capped, writes_first(capped, demands)):
            if weighted is not None:
                case = share_in_order(schedule, _at_end(resources, shared, end), flows, weighted, end).rates
                cases.append(_ordered(solution, case, end) if schedule.rounds > 1 else case)
    if schedule.rounds == 1 and len(flows) == 2 and all(demand.staging is None for demand in demands):
        cases = _slower_ends_alone(system, flows, cases)
    limits = [None if index is None else resources[index] for index in solution.limits]  # None: the flow's own cap
    unknown = _unknown_ends(demands, solution.rates)
    rates = tuple(
        replace(flow_rate(system, demand, flow_cases, limit, schedule), why_unknown=_why_unknown(demand, unknown))
        for demand, flow_cases, limit in zip(demands, zip(*cases, strict=True), limits, strict=True)
    )
    loads, raw = _link_loads(demands, [rate.rate for rate in rates])
    used = zip(resources, solution.utilization, strict=True)
    utilization = [(resource, share) for resource, share in used if resource.kind != REQUESTS]
    fullest: dict[str, float] = defaultdict(float)  # a far socket's memory has one name one way, the other way and both
    for resource, share in utilization:
        fullest[resource.name] = max(fullest[resource.name], share)
    counted = slice(1 if schedule.first_only else len(flows))
    return Prediction(
        system,
        rates[counted],
        utilization=dict(fullest),
        loads=loads,
        raw=raw,
        link_utilization={resource.link: share for resource, share in utilization if resource.link is not None},
        total_low=min(math.fsum(case[counted]) for case in cases),
        total_high=max(math.fsum(case[counted]) for case in cases),
        schedule=schedule,
        flows=tuple(flows),
    )


def _link_loads(
    demands: Sequence[FlowDemand], rates: Sequence[float]
) -> tuple[dict[LinkDirection, float], dict[LinkDirection, float]]:
    """What each direction of a link carries, B/s: payload, and bytes on the wire."""
    loads: dict[LinkDirection, float] = defaultdict(float)
    raw: dict[LinkDirection, float] = defaultdict(float)
    for demand, goodput in zip(demands, rates, strict=True):
        for route, portion in zip(demand.routes, demand.portions, strict=True):
            for hop in route.hops:
                loads[hop.direction] += goodput * portion
        for resource, amount in demand.per_byte.items():
            if isinstance(resource.place, LinkDirection) and resource.kind in ("link", REQUESTS):
                raw[resource.place] += goodput * amount
    return dict(loads), dict(raw)


def _slower_ends_alone(system: System, flows: Sequence[Flow], cases: list[Sequence[float]]) -> list[Sequence[float]]:
    """The cases of two copies of one size that begin together, of which the slower one goes on by itself.

    The solver has what one leaves the other of links and engines for as long as either runs. Of rates r and s < r
    together, and a of the slower one alone, a byte of each takes 1/r + (1 - s/r) / a.
    """
    fast, slow = sorted(predict(system, flows).rates, key=lambda flow: -flow.rate)
    if slow.rate >= (1 - TIE) * fast.rate:
        return cases
    (alone,) = predict(system, [slow.flow]).rates
    ends = ((each.rate, each.low, each.high) for each in (fast, slow, alone))
    times = [1 / r + max(0.0, 1 - s / r) / a for r, s, a in zip(*ends, strict=True)]
    return [(1 / time, 1 / time) for time in times]


def _at_end(resources: Sequence[Resource], shared: Sequence[bool], end: Literal["low", "high"]) -> list[float]:
    """Every capacity at that end of its range, which is wider where flows share it."""
    side = _ENDS.index(end)
    return [
        resource.capacity * independent(resource.factors, SHARED)[side] if is_shared else resource.at(end)
        for resource, is_shared in zip(resources, shared, strict=True)
    ]


def _shared_places(resources: Sequence[Resource], demands: Sequence[FlowDemand]) -> list[bool]:
    """Of each resource, whether several flows use it or, of a link, its other direction."""
    users = Counter(place for demand in demands for place in {_undirected(each) for each in demand.per_byte})
    return [users[_undirected(resource)] > 1 for resource in resources]


def _ordered(solution: Shares, case: Sequence[float], end: Literal["low", "high"]) -> list[float]:
    """The rates of a case; those that the order of a tool's copies limits are known no better than a typical figure."""
    side = _ENDS.index(end)
    typical = RANGES["typical"]
    return [
        value if limit is not None else rate * independent((value / rate, value / rate), typical)[side]
        for rate, limit, value in zip(solution.rates, solution.limits, case, strict=True)
    ]


def _undirected(resource: Resource) -> frozenset[str]:
    """Where a resource is, whichever the direction: a device, or the ends of a link."""
    return frozenset(resource.place)


def flow_rate(
    system: System,
    demand: FlowDemand,
    flow_cases: Sequence[float],
    limit: Resource | None,
    schedule: Schedule = TOGETHER,
) -> FlowRate:
    """One flow's rate, that of the first case; `limit` is the full resource that holds it, None its cap or order."""
    if limit is None and schedule.rounds and flow_cases[0] < FULL * demand.cap():
        name, sources, doubt = f"order of the copies ({schedule.name})", [schedule.source], ""
        basis = weakest([resource.basis for resource in demand.per_byte])
    elif limit is None:
        name, basis, *sources = demand.cap_limit
        doubt = ""
    else:
        name = limit.name
        basis, sources = limit_source(system, demand, limit)
        doubt = limit.doubt or (demand.doubt if limit.link is not None and limit.basis == "physics" else "")
    # Doubts of whatever would slow the flow at the low end of its range, such as a link of unknown speed.
    slower = [each.doubt for each, amount in demand.per_byte.items() if each.low < flow_cases[0] * amount]
    other = demand.other_route
    slower += [other.doubt] if other is not None and (other.is_direct or other.low < flow_cases[0]) else []
    wires = [amount for resource, amount in demand.per_byte.items() if resource.link is not None]
    return FlowRate(
        flow=demand.flow, routes=demand.routes, rate=flow_cases[0], limit=name, basis=basis, rests_on=tuple(sources),
        low=min(flow_cases), high=max(flow_cases), raw=flow_cases[0] * max(wires, default=1.0),
        doubt=merge_doubts((doubt, *slower)),
    )  # fmt: skip


def _unknown_ends(demands: Sequence[FlowDemand], rates: Sequence[float]) -> set[Resource]:
    """The drives and cards of unknown rate that may carry less than these flows take at `rates` in B/s."""
    taken: dict[Resource, float] = defaultdict(float)
    for demand, rate in zip(demands, rates, strict=True):
        for resource, amount in demand.per_byte.items():
            if resource.kind == UNKNOWN_END:
                taken[resource] += rate * amount
    return {resource for resource, sum_of_all in taken.items() if resource.low < sum_of_all * (1 + TIE)}


def _why_unknown(demand: FlowDemand, unknown: Collection[Resource]) -> str:
    """Which of the `unknown` drives and cards a flow needs, and what to state or to measure of them."""
    devices: dict[str, list[str]] = defaultdict(list)
    for resource in demand.per_byte:
        if resource in unknown:
            device, key = resource.place
            devices[key].append(device)
    return "; ".join(WHY_UNKNOWN[key].format(", ".join(fold(names))) for key, names in devices.items())
