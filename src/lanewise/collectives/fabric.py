"""What joins the ranks of a node and the nodes: rates of rings, switches and cards, as flows of the described links."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise, permutations

from lanewise.collectives.learned import learned
from lanewise.collectives.model import Collective, CollectiveSettings
from lanewise.collectives.ranks import RankSet
from lanewise.collectives.rings import disjoint_rings
from lanewise.collectives.translation import PageWalks, page_walks
from lanewise.errors import Unreachable
from lanewise.perf.concurrent_flows import concurrent_demands, solver_input
from lanewise.perf.flow import Flow
from lanewise.perf.flow_demand import FlowDemand, flow_demand
from lanewise.perf.host import MEMORY
from lanewise.perf.predict import FlowRate, predict
from lanewise.perf.resources import Resource
from lanewise.perf.sharing import share
from lanewise.perf.translation import TRANSLATED_WRITES
from lanewise.perf.uncertainty import Bound
from lanewise.routes.classify import PIX, PXB
from lanewise.routes.find import route
from lanewise.routes.model import Via
from lanewise.routes.network import nearest
from lanewise.routes.paths import cpu_above
from lanewise.topology.model import Kind, LinkKind, System

NVLINK_RAW = "raw rate of NVLink"
# CPUs of this vendor write what a device sends to memory of its own socket into the last-level cache, where reads find
# it; data from the other socket goes to memory (Intel Data Direct I/O; Farshin et al., USENIX ATC 2020).
_WRITES_INTO_CACHE = "intel"


# What limits copies alone: of shared memory page walks are reckoned apart, and its buffers stay in caches.
_OF_COPIES = (*MEMORY, TRANSLATED_WRITES)


class FabricKind(StrEnum):
    """What joins the ranks of one node."""

    NVSWITCH = "NVSwitch"
    MESH = "mesh"
    PCIE = "PCIe"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class RingRate:
    """The rate of the slowest hop of a ring in B/s, with its range, and what limits it."""

    low: float
    rate: float
    high: float
    limit: str

    def scaled(self, share: float) -> RingRate:
        """A share of it."""
        return RingRate(share * self.low, share * self.rate, share * self.high, self.limit)

    def where_a_share_is(self, other: RingRate, share: float) -> RingRate:
        """The rate where a share of the data goes at that of `other`."""
        pairs = ((self.low, other.low), (self.rate, other.rate), (self.high, other.high))
        low, rate, high = (1 / ((1 - share) / one + share / two) for one, two in pairs)
        return RingRate(low, rate, high, other.limit if share > 0 else self.limit)


@dataclass(frozen=True, slots=True)
class LocalFabric:
    """The fabric of a node in B/s: `raw` and NCCL's `planning` rate of all NVLinks of a rank, `link` that of one.

    `certain` is the share of these links that is known to be there.

    `ring` is what each rank sends over PCIe, to the next one in a ring or to all others, with its range, `staged`
    whether part of it passes host memory, `duplex` whether a port then carries both directions, `memory` what the CPUs'
    measured rates of DMA allow of it and `sockets` what the links between sockets do, `translated` whether an IOMMU
    surely translates what passes it, `walks` what its page walks allow if it does. `uncached` is `memory` where no read
    finds its data in a cache, `cache` what devices fill of one (B, of `cache_source`), `receivers` the ranks whose
    buffers share it. `far_share` is what the share of writes to the other socket rests on, `perhaps_staged` says that
    some GPUs may have no peer access. `rings` are the disjoint rings of a mesh, `order` that of the ranks in a ring.
    """

    kind: FabricKind
    order: tuple[str, ...]
    raw: float = 0.0
    planning: float = 0.0
    link: float = 0.0
    certain: float = 1.0
    rings: int = 0
    ring: float = 0.0
    low: float = 0.0
    high: float = 0.0
    staged: bool = False
    duplex: bool = False
    memory: RingRate | None = None
    uncached: RingRate | None = None
    cache: float = math.inf
    cache_source: str = ""
    receivers: int = 0
    sockets: RingRate | None = None
    translated: bool = False
    walks: PageWalks | None = None
    far_share: str = ""
    perhaps_staged: bool = False
    limit: str = ""
    generation: int = 4


@dataclass(frozen=True, slots=True)
class NodeNetwork:
    """What the `cards` near the ranks of a node carry each way in B/s, with its range; `kind` is their net.kind."""

    rate: float
    low: float
    high: float
    cards: int
    limit: str
    kind: str = ""


def local_fabric(
    system: System, ranks: RankSet, node: Sequence[str], settings: CollectiveSettings,
    collective: Collective = Collective.ALL_REDUCE,
) -> LocalFabric:  # fmt: skip
    """The fabric of one node as a collective uses it; Unreachable if its ranks do not reach each other."""
    if len(node) < 2:
        return LocalFabric(FabricKind.NONE, tuple(node))
    pairs = [(a, b) for index, a in enumerate(node) for b in node[index + 1 :]]
    if settings.p2p is not False and all(route(system, a, b).via is Via.NVLINK for a, b in pairs):
        return _nvlink_fabric(system, ranks, node)
    return _pcie_fabric(system, ranks, node, settings, collective)


def _nvlink_fabric(system: System, ranks: RankSet, node: Sequence[str]) -> LocalFabric:
    members = set(node)
    links = {
        gpu: [
            link for link in system.links_at(gpu)
            if link.kind is LinkKind.NVLINK
            and (link.far_end(gpu) in members or system.device(link.far_end(gpu)).kind is Kind.NVSWITCH)
        ]
        for gpu in node
    }  # fmt: skip
    weakest = min(node, key=lambda gpu: sum(link.count for link in links[gpu]))
    count = sum(link.count for link in links[weakest])
    certain = sum(link.count if link.count_known else 1 for link in links[weakest]) / count if count else 1.0
    raw, planning, copy = _nvlink_rates(system, weakest, ranks)
    if any(system.device(link.far_end(gpu)).kind is Kind.NVSWITCH for gpu in node for link in links[gpu]):
        limit = f"NVLinks of {weakest} ({count} x {raw / 1e9:g} GB/s)"
        return LocalFabric(FabricKind.NVSWITCH, tuple(node), count * raw, count * planning, raw, certain, limit=limit)
    widths: dict[tuple[str, str], int] = {}
    for gpu in node:
        for link in links[gpu]:
            widths[gpu, link.far_end(gpu)] = widths.get((gpu, link.far_end(gpu)), 0) + link.count
    rings, order = disjoint_rings(tuple(node), widths)
    limit = f"{rings} rings over links of {raw / 1e9:g} GB/s"
    return LocalFabric(FabricKind.MESH, order, count * raw, count * planning, copy, certain, rings=rings, limit=limit)


def _nvlink_rates(system: System, gpu: str, ranks: RankSet) -> tuple[float, float, float]:
    """Raw rate, NCCL's planning rate and a lone copy's rate (B/s) of one link of a GPU."""
    part = system.part(gpu)
    name = part.text("nvlink.part") if part is not None else None
    if part is None or name is None:
        raise Unreachable(
            f"the NVLinks of {gpu} have no rate",
            hint=f"name the GPU's part in the description: {gpu}: {{gpu: h100-sxm}}",
        )
    nvlink = system.catalog.get(name)
    raw = nvlink.number("nvlink.link_rate") or 0.0
    planning = nvlink.number("nvlink.practical") or nvlink.number("nvlink.goodput") or 0.8 * raw
    return raw, planning, nvlink.number("nvlink.goodput") or planning


@dataclass(frozen=True, slots=True)
class _Leg:
    """A flow of a ring: a peer write, or half of a step through shared memory.

    `cached` data is read from the CPU's cache; `far`: it is written to memory of the other socket.
    """

    flow: Flow
    cached: bool = False
    far: bool = False


def _pcie_fabric(
    system: System, ranks: RankSet, node: Sequence[str], settings: CollectiveSettings, collective: Collective
) -> LocalFabric:
    """The steps of a collective over PCIe and whatever NVLinks lie on them, all at once."""
    steps = _steps(node, collective)
    through_memory = [step for step in steps if not _peers(system, ranks, *step, len(node), settings)]
    legs = [leg for step in steps for leg in _legs(system, ranks, step, step in through_memory)]
    staged = bool(through_memory)
    peers = len(node) - 1 if collective is Collective.ALL_TO_ALL else 1
    demands = [flow_demand(system, leg.flow) for leg in legs]
    far = learned("far_memory_share", ["shared memory"], settings.without)
    kernels = _far_written(_of_kernels(system, _only(demands, lambda r: r.kind not in _OF_COPIES)), legs, far.value)
    links = _slowest(_only(kernels, lambda r: not _is_between_sockets(r)), peers)
    between = [demand for demand in _only(kernels, _is_between_sockets) if demand.per_byte]
    measured = _with_memory(system, demands, [leg.cached for leg in legs])
    uncached = _with_memory(system, demands, [False] * len(legs))
    memories = [cpu_above(system, receiver) for _, receiver in through_memory]
    cache, cache_source = _device_cache(system, memories, settings)
    return LocalFabric(
        FabricKind.PCIE, tuple(node), ring=links.rate, low=links.low, high=links.high, staged=staged,
        duplex=bool({a for a, _ in through_memory} & {b for _, b in through_memory}),
        memory=_slowest(_of_kernels(system, measured), peers) if staged else None,
        uncached=_slowest(_of_kernels(system, uncached), peers) if staged else None,
        cache=cache, cache_source=cache_source, receivers=max(map(memories.count, memories), default=0),
        sockets=_slowest(between, peers) if between else None,
        translated=staged and system.policies.iommu == "translate",
        walks=page_walks(system, _whose_walks(system, ranks), through_memory, peers, settings.without),
        far_share=far.rests_on if any(leg.far for leg in legs) else "",
        perhaps_staged=any(demand.other_route is not None for demand in demands),
        limit=links.limit + (" (through shared memory)" if staged else ""), generation=_generation(system, node),
    )  # fmt: skip


def _whose_walks(system: System, ranks: RankSet) -> str:
    """The vendor whose page walks are taken: the CPUs', or AMD, the only one measured, where nobody names them."""
    hosts = {system.device(name).host for name in ranks.ranks}
    cpus = [cpu for cpu in system.of_kind(Kind.CPU) if system.device(cpu).host in hosts]
    return ranks.vendor if any(system.part(cpu) for cpu in cpus) else "amd"


def _legs(system: System, ranks: RankSet, step: tuple[str, str], through_memory: bool) -> list[_Leg]:
    """The flows of a step; a buffer is in the receiver's memory (NCCL 2.30.7, src/transport/shm.cc)."""
    sender, receiver = step
    if not through_memory:
        return [_Leg(Flow(sender, receiver))]
    memory = cpu_above(system, receiver)
    near = cpu_above(system, sender) == memory
    cached = near and ranks.vendor == _WRITES_INTO_CACHE
    return [_Leg(Flow(sender, memory), far=not near), _Leg(Flow(memory, receiver), cached=cached)]


def _device_cache(system: System, cpus: Sequence[str], settings: CollectiveSettings) -> tuple[float, str]:
    """What devices fill of the last-level cache of one of `cpus` in B, and its source; infinite where it is unknown."""
    parts = {part.name for part in map(system.part, cpus) if part is not None}
    figure = learned("device_cache", parts if len(parts) == 1 else (), settings.without)
    return (figure.value * 2**20, figure.rests_on) if figure.measured else (math.inf, "")


def _steps(node: Sequence[str], collective: Collective) -> list[tuple[str, str]]:
    """Who sends to whom at once.

    All ranks to all others in all_to_all: of sends and receives in a group each channel runs eight at once (NCCL
    2.30.7, src/enqueue.cc, NCCL_MAX_DEV_WORK_P2P_PER_BATCH). A broadcast has no step from the last rank to the first.
    """
    if collective is Collective.ALL_TO_ALL:
        return list(permutations(node, 2))
    return list(pairwise(node if collective is Collective.BROADCAST else (*node, node[0])))


def _of_kernels(system: System, demands: Sequence[FlowDemand]) -> list[FlowDemand]:
    """What flows at once take if kernels copy: what one copy engine of a GPU takes from the other does not count."""
    together = []
    for alone, demand in zip(demands, concurrent_demands(system, demands, "kernels"), strict=True):
        engines = {resource: resource for resource in alone.per_byte}
        per_byte = {engines.get(r, r) if r.is_engine else r: amount for r, amount in demand.per_byte.items()}
        together.append(replace(demand, per_byte=per_byte))
    return together


def _only(demands: Sequence[FlowDemand], counts: Callable[[Resource], bool]) -> list[FlowDemand]:
    return [
        replace(demand, per_byte={r: amount for r, amount in demand.per_byte.items() if counts(r)})
        for demand in demands
    ]


def _is_between_sockets(resource: Resource) -> bool:
    """Whether a resource is one direction of links between sockets."""
    return resource.kind in ("link", "socket_link") and LinkKind.SOCKET in resource.place


def _far_written(demands: Sequence[FlowDemand], legs: Sequence[_Leg], share: float) -> list[FlowDemand]:
    """The demands where writes to the other socket get a share of the sender's link and engine.

    Capacities between sockets are of such writes anyhow.
    """
    return [
        replace(demand, per_byte={
            r: amount / share if leg.far and (r.is_engine or leg.flow.src in r.place) else amount
            for r, amount in demand.per_byte.items()
        })
        for demand, leg in zip(demands, legs, strict=True)
    ]  # fmt: skip


def _with_memory(system: System, demands: Sequence[FlowDemand], cached: Sequence[bool]) -> list[FlowDemand]:
    """The demands with the memory of measured CPUs, which reads of `cached` data do not take."""
    return [
        replace(demand, per_byte={
            r: amount for r, amount in demand.per_byte.items()
            if r.kind not in MEMORY or (not in_cache and _measured(system, r))
        })
        for demand, in_cache in zip(demands, cached, strict=True)
    ]  # fmt: skip


def _slowest(demands: Sequence[FlowDemand], peers: int) -> RingRate:
    """The rate of the slowest of flows at once, times the `peers` that a rank sends to."""
    resources, solver_flows = solver_input(demands)
    bounds: tuple[Bound, ...] = ("low", "nominal", "high")
    solutions = [share([resource.at(bound) for resource in resources], solver_flows) for bound in bounds]
    slowest = min(range(len(demands)), key=lambda index: solutions[1].rates[index])
    limit = solutions[1].limits[slowest]
    low, rate, high = (peers * min(solution.rates) for solution in solutions)
    return RingRate(low, rate, high, demands[slowest].cap_limit[0] if limit is None else resources[limit].name)


def _measured(system: System, memory: Resource) -> bool:
    """Whether a CPU's rate of DMA was measured.

    What is typical of memory is no limit: buffers of shared memory are of a few MiB and stay in the CPU's caches.
    """
    part = system.part(memory.place[0])
    return part is not None and part.figure("memory.dma_reads").known


def _peers(system: System, ranks: RankSet, a: str, b: str, count: int, settings: CollectiveSettings) -> bool:
    """Whether NCCL writes from one rank to the next directly (NCCL 2.30.7, src/graph/paths.cc, ncclTopoCheckP2p)."""
    if settings.p2p is False:
        return False
    path = route(system, a, b)
    if path.via is Via.NVLINK:
        return True
    if path.via is not Via.PCIE:
        return False
    near = path.cls in (PIX, PXB)
    return near or settings.p2p is True or (ranks.vendor == "amd" and count <= 2) or ranks.maker == "AMD"


def _generation(system: System, node: Sequence[str]) -> int:
    gens = [link.gen for gpu in node for link in system.links_at(gpu) if link.kind is LinkKind.PCIE and link.gen]
    return min(gens, default=4)


def node_network(system: System, ranks: RankSet, gdr: bool = True) -> NodeNetwork:
    """The cards of the first two nodes; Unreachable where no network joins them. Without `gdr` over host memory."""
    one, other = ranks.nodes[0], ranks.nodes[1]
    mine, theirs = _cards(system, one), _cards(system, other)
    count = min(len(mine), len(theirs))
    if not count:
        raise Unreachable(
            f"no network card joins {one[0]} and {other[0]}",
            hint="describe a network card of each host with network: links",
        )
    wire = predict(system, [Flow(a, b) for a, b in zip(mine[:count], theirs[:count], strict=True)]).rates
    pairs = [(gpu, card) for gpu in one for card in _own(system, gpu, one, mine[:count])]
    copies = [Flow(gpu, card) for gpu, card in pairs]
    if not gdr:
        copies = [Flow(gpu, cpu_above(system, gpu)) for gpu, _ in pairs]
        copies += [Flow(cpu_above(system, card), card) for _, card in pairs]
    to_cards = predict(system, copies).rates
    sums = [
        _total(wire),
        *(_total(to_cards[start : start + len(pairs)]) for start in range(0, len(copies), len(pairs))),
    ]
    slowest = min(sums, key=lambda total: total[0])
    part = system.part(mine[0])
    kind = part.text("net.kind") if part is not None else None
    limit = f"{count} network card{'s' * (count > 1)}: {slowest[3]}"
    return NodeNetwork(*slowest[:3], cards=count, limit=limit, kind=kind or "")


def _total(rates: Sequence[FlowRate]) -> tuple[float, float, float, str]:
    limit = min(rates, key=lambda flow: flow.rate).limit
    return sum(r.rate for r in rates), sum(r.low for r in rates), sum(r.high for r in rates), limit


def _cards(system: System, node: Sequence[str]) -> list[str]:
    """The cards that a rank of the node is nearest to."""
    return list(dict.fromkeys(card for gpu in node for card in nearest(system, gpu)))


def _own(system: System, gpu: str, node: Sequence[str], cards: Sequence[str]) -> list[str]:
    """The cards that a rank is the first of its node to be nearest to: ranks that share cards take turns."""
    mates = [name for name in node if nearest(system, name) == nearest(system, gpu)]
    near = [card for card in nearest(system, gpu) if card in cards]
    if len(mates) >= len(near):
        return [near[mates.index(gpu) % len(near)]] if near and mates.index(gpu) < len(near) else []
    return near[mates.index(gpu) :: len(mates)]
