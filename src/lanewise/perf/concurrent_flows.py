"""What flows that run at once take of each resource, and leave each other: the input of the solver."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from lanewise.catalog import Figure, Part
from lanewise.perf.duplex import Copier, RunningFlow, beside_opposite, taken_by_opposite
from lanewise.perf.flow import Flow
from lanewise.perf.flow_demand import FlowDemand, flow_demand, tells_a_rate, unlimited
from lanewise.perf.interleaved_memory import at_one_pace, where_pages_alternate
from lanewise.perf.known_parts import maker
from lanewise.perf.one_engine import taking_turns
from lanewise.perf.resources import REQUESTS, Resource, summed
from lanewise.perf.segments import PACKET_LINKS
from lanewise.perf.sharing import SolverFlow, share
from lanewise.perf.staging import Opposite
from lanewise.perf.translation import with_walks_in_turn
from lanewise.perf.turns import NO_TURNS, with_others
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import Kind, System

# What several flows reach of a PCIe link beside one: 0.91 to 1.00 behind six hosts' Gen5 switches, median 0.965
# (pro6000-2switch, -3switch, -pex890, -turin-16gpu, -roots, -wrx90-2vs).
LINK_SHARED = 0.97
WRITE_WEIGHT = "memory.write_weight"
_FAR_WEIGHT = "intersocket.write_weight"
_FULL = ("memory", "far_memory")  # whose writes may be preferred while it is full


def flow_demands(
    system: System, flows: Sequence[Flow], opposite: Opposite = Opposite.AFTER, copied_by: Copier = "engines"
) -> list[FlowDemand]:
    """Every flow's demand, with what both directions of a link or a GPU take from each other.

    `opposite` says how programs issue opposite copies through host memory, `copied_by` what moves the data.
    """
    demands = [flow_demand(system, flow) for flow in flows]
    staged = {(demand.flow.src, demand.flow.dst) for demand in demands if demand.staging is not None}
    demands = [
        replace(
            demand,
            staging=replace(demand.staging, opposite=opposite, size=demand.flow.size),
            per_byte=summed([*demand.per_byte.items(), *demand.beside_opposite]),
        )
        if demand.staging is not None and (demand.flow.dst, demand.flow.src) in staged
        else demand
        for demand in demands
    ]
    demands = [
        demand if demand.staging is None else replace(demand, staging=demand.staging.as_measured(system))
        for demand in demands
    ]
    routes = [each.routes[0] for each in demands]
    spread = where_pages_alternate(system, flows, routes, [each.per_byte for each in demands])
    demands = [replace(demand, per_byte=taken) for demand, taken in zip(demands, spread, strict=True)]
    demands = concurrent_demands(system, demands, copied_by)
    paced = at_one_pace(system, flows, routes, spread, [each.per_byte for each in demands])
    return [replace(demand, per_byte=taken) for demand, taken in zip(demands, paced, strict=True)]


def concurrent_demands(
    system: System, demands: Sequence[FlowDemand], copied_by: Copier = "engines"
) -> list[FlowDemand]:
    """The demands of flows that run at once, with what they leave each other of links and engines."""
    demands = [
        replace(demand, per_byte=_requests_apart(demand), sender=demand.sender if copied_by == "engines" else NO_TURNS)
        for demand in demands
    ]
    if copied_by == "engines":  # of kernels page walks are reckoned apart (collectives/translation.py)
        demands = [replace(demand, per_byte=with_walks_in_turn(demand.per_byte)) for demand in demands]
    resources, solver_flows = solver_input(demands)
    shares = share([resource.capacity for resource in resources], solver_flows)
    full = {resources[index] for index in shares.limits if index is not None and resources[index].kind in _FULL}
    demands = [_weighted(system, each, full) for each in demands]
    running = [
        RunningFlow(demand.per_byte, demand.copies, rate) for demand, rate in zip(demands, shares.rates, strict=True)
    ]
    taken = taken_by_opposite(system, running, copied_by)
    # Not of copies through host memory, whose stages were measured together (perf/staging.py).
    by_engine = [
        {} if demand.staging or demand.flow.sm or copied_by != "engines" else demand.per_byte for demand in demands
    ]
    turns = taking_turns(system, by_engine)
    return [
        replace(demand, per_byte={**beside_opposite(system, demand.per_byte, taken), **own})
        for demand, own in zip(demands, turns, strict=True)
    ]


def _weighted(system: System, demand: FlowDemand, full: Set[Resource]) -> FlowDemand:
    """The demand with what a copy to the host gets beside one from it, where the memory that both use is full.

    Where nobody measured that of a CPU, both get the same, and a write perhaps as much as on any CPU of its maker that
    was measured, or on any at all.
    """
    end = demand.routes[0].dst
    kinds = {each.kind for each in full if each in demand.per_byte}
    if system.device(end).kind is not Kind.CPU or not kinds:
        return demand
    if "memory" not in kinds:  # far memory, whose writes may be preferred where that was measured
        far = system.number(end, _FAR_WEIGHT) or 1.0
        return replace(demand, memory_weight=far, memory_weight_most=far)
    weight = system.number(end, WRITE_WEIGHT)
    if weight is not None:
        return replace(demand, memory_weight=weight, memory_weight_most=weight)
    part = system.part(end)
    return replace(demand, memory_weight_most=_most_weight(system, maker(part) if part is not None else ""))


@memoized_by_figures
def _most_weight(system: System, of_maker: str) -> float:
    """The most that a write gets beside a read in a full memory of CPUs of a maker, else of all; 1 without any."""
    cpus = [part for part in system.catalog.parts.values() if part.kind == "cpu"]
    stated = [(maker(part), figure.value) for part in cpus for figure in (part.figure(WRITE_WEIGHT), *_on_shared(part))]
    weights = [(word, value) for word, value in stated if isinstance(value, float)]
    own = [value for word, value in weights if word == of_maker]
    return max(own or [value for _, value in weights], default=1.0)


def _on_shared(part: Part) -> Iterator[Figure]:
    """The same figure where other tenants use the socket too, if it was measured."""
    shared = part.on_shared_socket.figure(WRITE_WEIGHT)
    if shared.known:
        yield shared


def _requests_apart(demand: FlowDemand) -> dict[Resource, float]:
    """What a byte takes, with the requests of reads apart from the data of the links that they go back over.

    They pass between the data: a link that others' data fills does not hold these reads to the rate of that data.
    """
    onward = {hop.direction for copy in demand.copies for hop in copy.hops}
    return {
        each.of_kind(REQUESTS) if (link := each.link) is not None and link not in onward else each: amount
        for each, amount in demand.per_byte.items()
    }


def arbitrated(demands: Sequence[FlowDemand]) -> list[FlowDemand]:
    """The demands with what several of them get of a PCIe link that they share; the ends of its range stay."""
    flows_of = Counter(each for demand in demands for each in demand.per_byte if each.link is not None)
    return [
        replace(demand, per_byte={
            each.with_capacity(each.capacity * LINK_SHARED)
            if (link := each.link) is not None and flows_of[each] > 1 and link.kind in PACKET_LINKS
            else each: amount
            for each, amount in demand.per_byte.items()
        })
        for demand in demands
    ]  # fmt: skip


def solver_input(demands: Sequence[FlowDemand]) -> tuple[list[Resource], list[SolverFlow]]:
    """The resources that flows compete for, each once, and every flow as the solver takes it.

    Unreachable for a flow that nothing limits.
    """
    # Flows over the same link or device have an equal key: kind and place make a resource, whatever made it.
    resources = list(dict.fromkeys(resource for demand in demands for resource in demand.per_byte))
    index = {resource: number for number, resource in enumerate(resources)}
    flows = []
    senders = with_others([demand.sender for demand in demands], [demand.routes[0].dst for demand in demands])
    for demand, sender in zip(demands, senders, strict=True):
        flow, cap = demand.flow, demand.cap()
        if math.isinf(cap) and not tells_a_rate(demand.per_byte):
            raise unlimited(flow)
        amounts = tuple((index[resource], amount) for resource, amount in demand.per_byte.items())
        flows.append(SolverFlow(amounts, weight=flow.weight * demand.memory_weight, cap=cap, sender=sender))
    return resources, flows


def writes_first(flows: Sequence[SolverFlow], demands: Sequence[FlowDemand]) -> list[SolverFlow] | None:
    """The flows with the most weight that a full memory may give to writes; None where all weights are known."""
    if all(demand.memory_weight_most == demand.memory_weight for demand in demands):
        return None
    pairs = zip(flows, demands, strict=True)
    return [replace(flow, weight=demand.flow.weight * demand.memory_weight_most) for flow, demand in pairs]
