"""What one byte of a flow takes of each resource: over routes, drives of a volume, and stages of a staged copy."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace

from lanewise.catalog import Figure, Part
from lanewise.errors import Unreachable
from lanewise.perf.duplex import Copier, RunningFlow, beside_opposite, taken_by_opposite
from lanewise.perf.flow import Flow
from lanewise.perf.host import MEMORY, through_buffers
from lanewise.perf.interleaved_memory import at_one_pace, where_pages_alternate
from lanewise.perf.one_engine import taking_turns
from lanewise.perf.resources import (
    END_DOUBT,
    ENGINE_DOUBT,
    REQUESTS,
    UNKNOWN_END,
    UNKNOWN_LINK,
    Resource,
    figure_demand,
    maker,
    weakest,
)
from lanewise.perf.route_demand import payload_source, route_demand, summed
from lanewise.perf.sharing import SolverFlow, share
from lanewise.perf.sockets import far_buffers, least_peer_writes, through_far_buffers
from lanewise.perf.staging import Amounts, Opposite, Staging, beside_opposite_copy, shared_port, slowest_of, staging
from lanewise.perf.translation import in_buffers_of_the_driver
from lanewise.perf.turns import NO_TURNS, SOURCE, sender_of, with_others
from lanewise.perf.uncertainty import Bound
from lanewise.routes.classify import SYS
from lanewise.routes.find import route as find_route
from lanewise.routes.model import Route, Via
from lanewise.routes.paths import cpus_passed, memoized_by_figures
from lanewise.routes.rules import ASSUMED_SCOPE, known_scope, staging_socket
from lanewise.topology.model import Kind, LinkKind, System, Volume

PACKET_LINKS = (LinkKind.PCIE, LinkKind.FABRIC)
# What several flows reach of a PCIe link beside one: 0.91 to 1.00 behind six hosts' Gen5 switches, median 0.965
# (pro6000-2switch, -3switch, -pex890, -turin-16gpu, -roots, -wrx90-2vs).
LINK_SHARED = 0.97
WRITE_WEIGHT = "memory.write_weight"
_FAR_WEIGHT = "intersocket.write_weight"
_FULL = ("memory", "far_memory")  # whose writes may be preferred while it is full
PEER_ACCESS_DOUBT = "whether the driver lets {} be a peer is not known, as the GPU is not named: copies may be staged"
PEER_SCOPE_DOUBT = "whether {} passes peer traffic is not known: copies may be peer writes between the sockets"
BRIDGES_DOUBT = "whether {} passes peer traffic between its host bridges is not known: copies may be peer writes"


@dataclass(frozen=True, slots=True)
class OtherRoute:
    """The route that a flow may take instead, by what is not known: the low end of its rate in B/s, and the doubt.

    `is_direct`: it avoids the host's memory, so that at the high end only engines and links limit it.
    """

    low: float
    doubt: str
    is_direct: bool = False


@dataclass(frozen=True, slots=True)
class FlowDemand:
    """A flow with its routes, the portion of its bytes that takes each, and what a byte takes of each resource.

    `per_byte` is in bytes on the wire of a link direction, bytes of an engine or memory, seconds of a read window:
    times the rate it is what the flow loads the resource with, in the unit of its capacity (B/s; B of a window).
    """

    flow: Flow
    routes: tuple[Route, ...]
    portions: tuple[float, ...]
    per_byte: Mapping[Resource, float]
    staging: Staging | None = None
    beside_opposite: Amounts = ()  # what a byte of a staged copy takes besides while the opposite one runs
    doubt: str = ""
    other_route: OtherRoute | None = None
    memory_weight: float = 1.0  # times its own, where a full memory prefers writes
    sender: str = NO_TURNS  # the GPU whose copies take turns
    memory_weight_most: float = 1.0  # the same where how much it prefers them was not measured, as the most that was

    def cap(self, bound: Bound = "nominal") -> float:
        """The most this flow can do by itself in B/s: its own cap, or its staging, also at an end of its range."""
        most = min(self.flow.cap, self.staging.rate(bound)) if self.staging is not None else self.flow.cap
        if self.other_route is None or bound == "nominal":
            return most
        if bound == "high":
            return self.flow.cap if self.other_route.is_direct else most
        return min(most, self.other_route.low)

    @property
    def cap_limit(self) -> tuple[str, str, str]:
        """Name, basis and source of what limits the flow where no shared resource does: staging, own cap or turns."""
        if self.sender:
            basis = weakest([resource.basis for resource in self.per_byte])
            return f"{self.sender} sends to one GPU at a time", basis, SOURCE
        if self.staging is not None and self.flow.cap > self.staging.rate():
            return self.staging.name, self.staging.basis, self.staging.rests_on
        return self.flow.cap_name or "its own cap", self.flow.cap_basis, self.flow.cap_rests_on


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
    demands = beside_each_other(system, demands, copied_by)
    paced = at_one_pace(system, flows, routes, spread, [each.per_byte for each in demands])
    return [replace(demand, per_byte=taken) for demand, taken in zip(demands, paced, strict=True)]


def beside_each_other(system: System, demands: Sequence[FlowDemand], copied_by: Copier = "engines") -> list[FlowDemand]:
    """The demands of flows that run at once, with what they leave each other of links and engines."""
    demands = [
        replace(demand, per_byte=_requests_apart(demand), sender=demand.sender if copied_by == "engines" else NO_TURNS)
        for demand in demands
    ]
    resources, solver_flows = solver_input(demands)
    shares = share([resource.capacity for resource in resources], solver_flows)
    full = {resources[index] for index in shares.limits if index is not None and resources[index].kind in _FULL}
    demands = [_weighted(system, each, full) for each in demands]
    running = [
        RunningFlow(demand.per_byte, _all_copies(demand), rate)
        for demand, rate in zip(demands, shares.rates, strict=True)
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
    onward = {hop.direction for copy in _all_copies(demand) for hop in copy.hops}
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


def flow_demand(system: System, flow: Flow) -> FlowDemand:
    """One flow by itself: a volume spreads it over its drives, a staged copy takes its stages."""
    source_volume, target_volume = system.volumes.get(flow.src), system.volumes.get(flow.dst)
    sources, targets = [(flow.src, 1.0)], [(flow.dst, 1.0)]
    if source_volume is not None:
        sources = [(drive, read_portion(source_volume)) for drive in source_volume.drives]
    if target_volume is not None:
        targets = [(drive, write_portion(target_volume)) for drive in target_volume.drives]
    routes = [find_route(system, source, target, flow.p2p) for source, _ in sources for target, _ in targets]
    portions = [source_portion * target_portion for _, source_portion in sources for _, target_portion in targets]
    amounts: list[tuple[Resource, float]] = []
    staged: dict[int, list[tuple[Resource, float]]] = defaultdict(list)  # by the number of the stage
    for route, portion in zip(routes, portions, strict=True):
        for number, (copy, peer_read) in enumerate(_copies(flow, route)):
            on_route = route_demand(system, copy, peer_read)
            copy_amounts = [(resource, amount * portion) for resource, amount in on_route.items()]
            if route.stages and staging_socket(system, route.src, route.dst) is not None:
                copy_amounts += [(each, amount * portion) for each, amount in far_buffers(system, copy.hops)]
            if route.stages:
                copy_amounts = in_buffers_of_the_driver(copy_amounts)
                copy_amounts = list(through_far_buffers(through_buffers(system, copy, copy_amounts)))
                staged[number] += copy_amounts
            amounts += copy_amounts
    if staged and not all(_tells_a_rate(resource for resource, _ in amounts) for amounts in staged.values()):
        raise _unlimited(flow)
    port = shared_port(system, routes, list(staged.values()))
    per_byte = summed([*amounts, *port])
    controllers = summed(
        pair
        for volume, key in ((source_volume, "read.rate"), (target_volume, "write.rate"))
        if volume is not None and volume.controller is not None
        for pair in figure_demand(system, volume.controller, key, "raid_controller")
    )
    per_byte |= {resource: amount for resource, amount in controllers.items() if resource not in per_byte}
    return FlowDemand(
        flow=flow, routes=tuple(routes), portions=tuple(portions), per_byte=per_byte,
        staging=_staging(system, flow, routes, list(staged.values()), port), doubt=_doubt(system, routes, per_byte),
        beside_opposite=beside_opposite_copy(system, routes, list(staged.values())),
        other_route=_other_route(system, flow, routes[0]) if flow.p2p else None,
        sender=sender_of(system, flow, routes[0]),
    )  # fmt: skip


def _other_route(system: System, flow: Flow, route: Route) -> OtherRoute | None:
    """What two GPUs do if the one that is not named offers no peer access, or the CPU that is not does pass it on.

    AMD's CPUs pass it between host bridges (data/parts/cpu-amd.yaml), others may not.
    """
    if not all(system.device(name).kind is Kind.GPU for name in (route.src, route.dst)):
        return None
    unnamed = next((name for name in (route.src, route.dst) if system.part(name) is None), None)
    if route.via is Via.PCIE and unnamed is not None:
        with suppress(Unreachable):  # nothing is known of a copy to the host
            staged = flow_demand(system, replace(flow, p2p=False))
            return OtherRoute(staged.cap("low"), PEER_ACCESS_DOUBT.format(unnamed))
    if route.via is Via.STAGED and route.cls != SYS and ASSUMED_SCOPE in route.note:
        return OtherRoute(math.inf, BRIDGES_DOUBT.format(cpus_passed(system, route.hops)[0]), is_direct=True)
    if route.via is Via.STAGED and route.cls == SYS:
        crossed = next((hop for hop in route.hops if hop.link.kind is LinkKind.SOCKET), None)
        if crossed is None:  # two NUMA nodes of one socket
            return None
        least = None if known_scope(system, crossed.start) else least_peer_writes(system, crossed.start)
        return None if least is None else OtherRoute(least, PEER_SCOPE_DOUBT.format(crossed.start))
    return None


def limit_source(system: System, demand: FlowDemand, limit: Resource) -> tuple[str, list[str]]:
    """Basis and sources of a resource as the limit of a flow: of its capacity, and of a link of the payload too."""
    return _source(system, limit, (copy for route in demand.routes for copy in _copies(demand.flow, route)))


def _all_copies(demand: FlowDemand) -> list[Route]:
    return [copy for route in demand.routes for copy, _ in _copies(demand.flow, route)]


def _copies(flow: Flow, route: Route) -> list[tuple[Route, bool]]:
    """The copies that a route is made of, each with whether its destination fetches where both ends are GPUs."""
    return [(stage, False) for stage in route.stages] or [(route, flow.read)]


def _source(system: System, resource: Resource, copies: Iterable[tuple[Route, bool]]) -> tuple[str, list[str]]:
    link = resource.link
    found = [payload_source(system, copy, peer_read, link) for copy, peer_read in copies] if link is not None else []
    payloads = dict.fromkeys(source for source in found if source is not None)
    bases, texts = [basis for basis, _ in payloads], [text for _, text in payloads]
    return weakest([resource.basis, *bases]), [resource.rests_on, *texts]


def read_portion(volume: Volume) -> float:
    """What each drive reads of one byte: every drive holds data, so 1/n for RAID-0, 10 and (flash skips parity) 5."""
    return 1.0 / len(volume.drives)


def write_portion(volume: Volume) -> float:
    """What each drive writes of one byte: 1/n for RAID-0, 2/n for RAID-10, 1/(n-1) for full stripes of RAID-5."""
    n = len(volume.drives)
    return 1.0 / {0: n, 10: n / 2, 5: n - 1}[volume.raid]


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
        if math.isinf(cap) and not _tells_a_rate(demand.per_byte):
            raise _unlimited(flow)
        amounts = tuple((index[resource], amount) for resource, amount in demand.per_byte.items())
        flows.append(SolverFlow(amounts, weight=flow.weight * demand.memory_weight, cap=cap, sender=sender))
    return resources, flows


def writes_first(flows: Sequence[SolverFlow], demands: Sequence[FlowDemand]) -> list[SolverFlow] | None:
    """The flows with the most weight that a full memory may give to writes; None where all weights are known."""
    if all(demand.memory_weight_most == demand.memory_weight for demand in demands):
        return None
    pairs = zip(flows, demands, strict=True)
    return [replace(flow, weight=demand.flow.weight * demand.memory_weight_most) for flow, demand in pairs]


def _staging(
    system: System,
    flow: Flow,
    routes: Sequence[Route],
    stages: Sequence[Amounts],
    port: Amounts,
) -> Staging | None:
    """The copy through host memory that the stages make up, all drives of a volume together; None if none is staged."""
    if not stages:
        return None
    cited = []
    for number, amounts in enumerate(stages):
        slowest = slowest_of(amounts)
        basis, sources = _source(system, slowest, ((r.stages[number], False) for r in routes if r.stages[number:]))
        cited.append((basis, f"stage {number + 1}: {slowest.name}, {'; '.join(sources)}"))
    return staging(system, flow.name, routes[0].src, stages, port, cited)


def _tells_a_rate(resources: Iterable[Resource]) -> bool:
    """Whether one of them says more of a path than that it is a link, and that it ends in some memory."""
    return any(resource.kind not in (UNKNOWN_LINK, *MEMORY) for resource in resources)


def _unlimited(flow: Flow) -> Unreachable:
    hint = (
        "name the parts of its devices or the speed of its links in the description, or measure: lanewise measure "
        "gpu, of a drive lanewise measure storage FILE"
    )
    return Unreachable(f"nothing is known that would limit {flow.name}", hint=hint)


def _doubt(system: System, routes: Sequence[Route], per_byte: Mapping[Resource, float]) -> str:
    """Which missing figure makes the links' rate only a ceiling for this flow."""
    ends = {system.device(name).kind for route in routes for name in (route.src, route.dst)}
    if ends & {Kind.SSD, Kind.RAID} and not any(r.kind in ("drive_reads", "drive_writes") for r in per_byte):
        return next((r.doubt for r in per_byte if r.kind == UNKNOWN_END), END_DOUBT)
    copies = ends <= {Kind.GPU, Kind.CPU} and Kind.GPU in ends and routes[0].via is not Via.NETWORK
    over_pcie = any(hop.link.kind is LinkKind.PCIE for route in routes for hop in route.hops)
    return ENGINE_DOUBT if copies and over_pcie and not any(r.is_engine for r in per_byte) else ""
