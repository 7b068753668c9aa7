"""What one byte of a flow takes of each resource: over routes, drives of a volume, and stages of a staged copy."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from lanewise.errors import Unreachable
from lanewise.perf.copy_engines import ENGINE_DOUBT
from lanewise.perf.drives import END_DOUBT, UNKNOWN_END
from lanewise.perf.flow import Flow
from lanewise.perf.host import MEMORY, through_buffers
from lanewise.perf.payload import payload_source
from lanewise.perf.resources import UNKNOWN_LINK, Resource, figure_demand, summed, weakest
from lanewise.perf.resources_per_byte import resources_per_byte
from lanewise.perf.sockets import far_buffers, least_peer_writes, through_far_buffers
from lanewise.perf.staged_port import beside_opposite_copy, shared_port
from lanewise.perf.staging import Amounts, Staging, slowest_of, staging
from lanewise.perf.translation import in_buffers_of_the_driver
from lanewise.perf.turns import NO_TURNS, SOURCE, sender_of
from lanewise.perf.uncertainty import Bound
from lanewise.routes.classify import SYS
from lanewise.routes.find import route as find_route
from lanewise.routes.model import Route, Via
from lanewise.routes.paths import cpus_passed
from lanewise.routes.rules import ASSUMED_SCOPE, known_scope, staging_socket
from lanewise.topology.model import Kind, LinkKind, System, Volume

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
    def copies(self) -> list[Route]:
        """The copies that it is made of: its routes, or their stages."""
        return [copy for route in self.routes for copy, _ in _copies(self.flow, route)]

    @property
    def cap_limit(self) -> tuple[str, str, str]:
        """Name, basis and source of what limits the flow where no shared resource does: staging, own cap or turns."""
        if self.sender:
            basis = weakest([resource.basis for resource in self.per_byte])
            return f"{self.sender} sends to one GPU at a time", basis, SOURCE
        if self.staging is not None and self.flow.cap > self.staging.rate():
            return self.staging.name, self.staging.basis, self.staging.rests_on
        return self.flow.cap_name or "its own cap", self.flow.cap_basis, self.flow.cap_rests_on


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
            on_route = resources_per_byte(system, copy, peer_read)
            copy_amounts = [(resource, amount * portion) for resource, amount in on_route.items()]
            if route.stages and staging_socket(system, route.src, route.dst) is not None:
                copy_amounts += [(each, amount * portion) for each, amount in far_buffers(system, copy.hops)]
            if route.stages:
                copy_amounts = in_buffers_of_the_driver(copy_amounts)
                copy_amounts = list(through_far_buffers(through_buffers(system, copy, copy_amounts)))
                staged[number] += copy_amounts
            amounts += copy_amounts
    if staged and not all(tells_a_rate(resource for resource, _ in amounts) for amounts in staged.values()):
        raise unlimited(flow)
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
        return None if least is None else OtherRoute(least, PEER_SCOPE_DOUBT.format(crossed.start), is_direct=True)
    return None


def limit_source(system: System, demand: FlowDemand, limit: Resource) -> tuple[str, list[str]]:
    """Basis and sources of a resource as the limit of a flow: of its capacity, and of a link of the payload too."""
    return _source(system, limit, (copy for route in demand.routes for copy in _copies(demand.flow, route)))


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


def tells_a_rate(resources: Iterable[Resource]) -> bool:
    """Whether one of them says more of a path than that it is a link, and that it ends in some memory."""
    return any(resource.kind not in (UNKNOWN_LINK, *MEMORY) for resource in resources)


def unlimited(flow: Flow) -> Unreachable:
    """The error for a flow that nothing known limits."""
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
