"""What both directions of a link or of a GPU take from each other while both run.

Against its data a link carries Acks and updates of flow-control credits: data link packets of 8 B (PCI Express Base
Specification, data link layer), taken to be one for each full packet of 256 + 24 B. Reads also send requests against
the data, which links carry between it (link_demand counts them). The rates of a GPU's engine and of a root port were
measured one way, on a link without any of that, so beside y in the other direction a capacity X is

    X - c y

where c is 8 / 280 for data that is written to a GPU, 2 * 8 / 280 for data that is written to a host, which returns the
credits of each packet beside its Ack (completions need none: their credits are infinite), and (8 + 256 * 24 / max read
request) / 280 for data that a GPU reads. Peer copies both ways get 0.971 of twice one way by that; measured are 0.947
to 0.99 (RTX PRO 6000, 4090, 5090 and 6000 Ada). Of host copies the writes displace 0.05 to 0.11 of their bytes (H200 on
two hosts, H800, RTX 5090), the reads 0.08 to 0.09. Where a part states what the directions get at once (engine.duplex),
c is what gives it where y is the rate of the other direction alone. On four of five hosts the reads of an A100 starve
behind its writes, 9 to 19 GB/s beside 22 to 24; at CPUs of AMD they get 13 to 21 beside 20 to 21, so those figures are
kept apart (engine.duplex_h2d_amd). That c counts on the links that the writes cross too, for the reads of all GPUs
below them. y is what the flows get without any of this, so what is left by packets errs to the low side by c squared.

A host may lose more: reads wait for their data, so they slow down with the latency of a memory that is written to, as
few of them may be outstanding (PCI Express Base Specification, tags); posted writes wait for credits alone. Reads of
any GPU then get X - c y, y all that GPUs write to the same memory and c the CPU's (memory.read_displaced). Seen on
Emerald Rapids, where the reads of one GPU get 43 to 55 of 55 GB/s beside the writes of another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

from lanewise.catalog import Figure, Part
from lanewise.catalog.keys import GENERATIONS
from lanewise.catalog.typical import both_ways_share, completed
from lanewise.perf import packets
from lanewise.perf.host_reads import read_factor
from lanewise.perf.known_parts import is_of_amd, part_of
from lanewise.perf.link_capacity import DMA_ENGINE_DOUBT
from lanewise.perf.measured_capacity import as_measured
from lanewise.perf.resources import REQUESTS, Resource
from lanewise.perf.segments import PACKET_LINKS
from lanewise.perf.uncertainty import figure_range, independent
from lanewise.routes.model import Hop, LinkDirection, Route, Via
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import Kind, LinkKind, System

Direction: TypeAlias = Literal["in", "out"]
# What moves data: copy engines, kernels of the GPUs, or kernels and for what leaves host memory the CPU's cores.
Copier: TypeAlias = Literal["engines", "kernels", "cores"]
Amounts: TypeAlias = Mapping[Resource, float]
_DIRECTIONS: dict[str, Direction] = {"h2d": "in", "p2p_read": "in", "d2h": "out", "p2p_write": "out"}
_OTHER = {"h2d": "d2h", "d2h": "h2d"}
_OPPOSITE: dict[Direction, Direction] = {"in": "out", "out": "in"}
_ON_LINKS = ("link", "peer_root_port", "root_port")
_PACKET = packets.DEFAULT_PAYLOAD + packets.REQUEST_64BIT
_GOODPUT = packets.DEFAULT_PAYLOAD / _PACKET
_OF_LINK = len(LinkDirection._fields)
ACK_SHARE = 8.0 / _PACKET  # bytes against each byte on the wire
POSTED_SHARE = 2 * ACK_SHARE  # of a write to a host: the Ack and the credits of each packet
# Infinity Fabric answers each line of 64 B that it writes, against the data. While both directions run, links between
# MI300X and MI350X carry 0.946 to 0.955 of twice one way, one between two EPYC Rome 0.94 (22.2 and 41.6 GB/s).
RESPONSE_SHARE = 0.05
# Of what both directions of a GPU get at once hosts keep 0.85 to 1.02 (H100 and H800: 87 to 103 GB/s of 104).
RANGE = (0.85, 1.02)
_NEWER_ENGINES = 5  # the PCIe generation of NVIDIA's engines of which both ways get 0.93; T4 and L4 get 0.89 and 0.88
# The least that traffic the other way leaves of a capacity: 0.42 of an A100's reads (11 of 26 GB/s).
_LEAST_LEFT = 0.4


class RunningFlow(NamedTuple):
    """What a byte of a flow takes of each resource, the copies it is made of, and its rate in B/s."""

    amounts: Amounts
    copies: Sequence[Route]
    rate: float


class Taken(NamedTuple):
    """What traffic the other way takes of a capacity in B/s, and what more it keeps reads from on some hosts."""

    surely: float
    kept_off: float


@dataclass
class _ResourcesAt:
    """The resources that flows take: `links` and root ports or socket links (`fabric`) by direction, engines by GPU.

    Of an engine the most that a byte of one flow takes.
    """

    links: dict[LinkDirection, set[Resource]] = field(default_factory=lambda: defaultdict(set))
    fabric: dict[tuple[str, ...], set[Resource]] = field(default_factory=lambda: defaultdict(set))
    engines: dict[tuple[str, Direction], dict[Resource, float]] = field(default_factory=lambda: defaultdict(dict))

    @classmethod
    def of(cls, flows: Sequence[RunningFlow]) -> _ResourcesAt:
        """Those of all flows."""
        at = cls()
        for resource, amount in (pair for flow in flows for pair in flow.amounts.items()):
            if resource.kind in _ON_LINKS and isinstance(resource.place, LinkDirection):
                at.links[resource.place].add(resource)
                if resource.doubt != DMA_ENGINE_DOUBT:  # an engine of each direction is full before the links are
                    at.fabric[resource.place].add(resource)
            elif resource.kind == "socket_link":
                at.fabric[resource.place[:_OF_LINK]].add(resource)
            elif (direction := _DIRECTIONS.get(resource.kind)) is not None:
                of_engine = at.engines[resource.place[0], direction]
                of_engine[resource] = max(amount, of_engine.get(resource, 0.0))
        return at


def taken_by_opposite(
    system: System, flows: Sequence[RunningFlow], copied_by: Copier = "engines"
) -> dict[Resource, Taken]:
    """What traffic the other way takes of each link, root port and engine; empty where there is none.

    What one copy engine takes from the other, and what the writes of engines cost reads, counts for engines alone: it
    was not measured of kernels that copy. Stores of a CPU's cores are answered by Acks alone, as they request nothing.
    """
    places = _ResourcesAt.of(flows)
    taken: dict[Resource, float] = defaultdict(float)
    kept_off: dict[Resource, float] = defaultdict(float)
    for flow in flows:
        hops = [hop for copy in flow.copies for hop in copy.hops]
        crossed = {hop.direction for hop in hops if hop.link.kind in PACKET_LINKS}
        for back, share in {hop.reverse.direction: _response_share(system, hop) for hop in hops}.items():
            for opposite in places.fabric.get(back, ()) if share else ():
                taken[opposite] += flow.rate * share
        starved = _starved_reads(system, flow) if copied_by == "engines" else 0.0
        to_host = copied_by == "engines" and system.device(flow.copies[-1].dst).kind is Kind.CPU
        answers = _answers(hops) * (POSTED_SHARE / ACK_SHARE if to_host else 1.0)
        stored = copied_by == "cores" and system.device(flow.copies[0].src).kind is Kind.CPU
        for engine, amount in _reads_of(system, flows, flow):
            kept_off[engine] += flow.rate * amount
        for resource, amount in flow.amounts.items():
            if resource.kind == REQUESTS and isinstance(resource.place, LinkDirection) and not stored:
                for data in (each for each in places.links.get(resource.place, ()) if each.link):
                    taken[data] += flow.rate * amount
            if resource.link in crossed:
                back = LinkDirection(resource.link.end, resource.link.start, resource.link.port, resource.link.kind)
                for opposite in places.links.get(back, ()):
                    on_link = flow.rate * amount * (1.0 if opposite.link else _GOODPUT)
                    taken[opposite] += on_link * answers
                    kept_off[opposite] += on_link * max(0.0, starved - answers)
        for copy in flow.copies:
            if copy.via is not Via.NVLINK:
                for gpu, direction, far_end in _ends(copy):
                    for engine, amount in places.engines.get((gpu, _OPPOSITE[direction]), {}).items():
                        share = ACK_SHARE if stored else _displaced(system, engine, direction, far_end, copied_by)
                        taken[engine] += flow.rate * amount * share
    return {resource: Taken(taken[resource], kept_off[resource]) for resource in {**taken, **kept_off}}


def _reads_of(system: System, flows: Sequence[RunningFlow], write: RunningFlow) -> Iterator[tuple[Resource, float]]:
    """The engines that read the memory to which a flow writes, and what a byte written keeps each of them from.

    Nothing of copies through host memory, whose stages were measured together (perf/staging.py).
    """
    cpu = write.copies[0].dst
    share = system.number(cpu, "memory.read_displaced") if system.device(cpu).kind is Kind.CPU else None
    if share is None or len(write.copies) > 1:
        return
    memory = {each for each in write.amounts if each.kind == "memory"}  # of a socket, or of one of its NUMA nodes
    reads = (flow.amounts for flow in flows if len(flow.copies) == 1 and not memory.isdisjoint(flow.amounts))
    for engine in dict.fromkeys(each for amounts in reads for each in amounts if each.kind == "h2d"):
        yield engine, share


def _answers(hops: Sequence[Hop]) -> float:
    """Bytes of Acks against a byte on links: one for each packet, more of them where a tunnel's packets are small."""
    payloads = [hop.link.max_payload for hop in hops if hop.link.max_payload is not None]
    return ACK_SHARE * _PACKET / (min([*payloads, packets.DEFAULT_PAYLOAD]) + packets.REQUEST_64BIT)


def _response_share(system: System, hop: Hop) -> float:
    """Bytes that answer a byte of data, against it: on Infinity Fabric, and on links whose share b of twice one way was
    measured (`nvlink.both_ways`): 1 - b, which leaves b of a link whose other direction gets all of it alone."""
    if hop.link.kind is LinkKind.SOCKET:
        part = part_of(system, hop.start)
        return RESPONSE_SHARE if part is not None and part.text("intersocket.kind") in ("xgmi", None) else 0.0
    link = _gpu_link(system, hop) if hop.link.kind is LinkKind.NVLINK else None
    both_ways = _both_ways(system, hop, link) if link is not None else None
    if both_ways is not None:
        return 1 - both_ways
    return RESPONSE_SHARE if link is not None and is_of_amd(link) else 0.0


def _both_ways(system: System, hop: Hop, link: Part) -> float | None:
    """What both directions of a link carry of twice one; NVSwitches of V100 and A100 pass less than their links do."""
    kinds = {system.device(end).kind for end in (hop.start, hop.end)}
    switched = link.number("nvlink.switched_both_ways") if Kind.NVSWITCH in kinds else None
    return switched or link.number("nvlink.both_ways")


def _gpu_link(system: System, hop: Hop) -> Part | None:
    """The part of a link between GPUs, or of the NVLink-C2C between a GPU and its CPU; None where it is not known."""
    kinds = {system.device(end).kind: system.part(end) for end in (hop.end, hop.start)}
    gpu = kinds.get(Kind.GPU)
    stem = "c2c" if gpu is not None and Kind.CPU in kinds and gpu.figure("c2c.links").known else "nvlink"
    name = gpu.text(f"{stem}.part") if gpu is not None and gpu.kind == "gpu" else None
    return system.catalog.get(name) if name is not None else None


def beside_opposite(system: System, amounts: Amounts, taken: Mapping[Resource, Taken]) -> dict[Resource, float]:
    """The same amounts of resources whose capacities are those that traffic the other way leaves."""
    return {
        as_measured(system, _left(system, r, taken[r])) if r in taken else r: amount for r, amount in amounts.items()
    }


def _ends(copy: Route) -> Iterator[tuple[str, Direction, str]]:
    yield copy.src, "out", copy.dst
    yield copy.dst, "in", copy.src


def _left(system: System, resource: Resource, taken: Taken) -> Resource:
    shares = (1 - sum(taken) / resource.capacity, 1 - taken.surely / resource.capacity)
    share, best = (max(each, _LEAST_LEFT) for each in shares)
    capacity = resource.capacity * share
    least, most = 1.0, RANGE[1]
    if resource.kind in _DIRECTIONS:
        part = _duplex_part(system, resource.place[0])
        keys = ("engine.duplex", f"engine.duplex_{resource.kind}") if resource.kind in _OTHER else ("engine.duplex",)
        figures = [part.figure(f"{key}.gen{gen}") for key in keys for gen in GENERATIONS] if part is not None else []
        ranges = [figure_range(figure) for figure in figures if figure.known]
        least, most = (end(pair) for end, pair in zip((min, max), zip(RANGE, *ranges, strict=True), strict=True))
    return replace(
        resource, beside=True, capacity=capacity, low=capacity * independent(resource.factors, (least, 1.0))[0],
        high=max(capacity, resource.high * min(1.0, best * most)),
    )  # fmt: skip


def _displaced(system: System, engine: Resource, direction: Direction, far_end: str, copied_by: Copier) -> float:
    """Bytes of the engine's data that a byte in `direction` at its GPU displaces: Acks, credits, requests of reads."""
    gpu, with_host = engine.place[0], system.device(far_end).kind is Kind.CPU
    part = _duplex_part(system, gpu)
    if part is not None and with_host and copied_by == "engines":
        measured = _displaced_copy(system, part, engine.kind)
        if measured is not None:
            return measured
        # Packets say it well of NVIDIA's engines of Gen5 (H200: 105 of 103 GB/s); AMD's and older ones lose more.
        older = (part.number("pcie.gen") or _NEWER_ENGINES) < _NEWER_ENGINES
        share = both_ways_share(system.catalog, part) if is_of_amd(part) or older else None
        if share is not None:
            return 1 - share
    if direction == "out" or not with_host:
        return POSTED_SHARE if with_host else ACK_SHARE
    request = system.number(gpu, "pcie.max_read_request") or packets.DEFAULT_READ_REQUEST
    return ACK_SHARE + packets.REQUEST_64BIT / request * _GOODPUT


def _starved_reads(system: System, flow: RunningFlow) -> float:
    """Bytes of reads that a byte written to a host keeps off the links that it crosses, where its GPU's were measured.

    Read requests do not pass posted writes (PCI Express Base Specification, transaction ordering), and those of several
    GPUs wait in one queue of the uplink that they share: what writes cost reads is the link's, not each engine's.
    None of staged copies, whose ports were measured as a whole (perf/staging.py).
    """
    if any(system.device(copy.dst).kind is not Kind.CPU for copy in flow.copies):
        return 0.0
    parts = [_duplex_part(system, resource.place[0]) for resource in flow.amounts if resource.kind == "d2h"]
    return max((_displaced_copy(system, part, "h2d") or 0.0 for part in parts if part is not None), default=0.0)


@memoized_by_figures
def _duplex_part(system: System, gpu: str) -> Part | None:
    """The part of a GPU with the figures of its host: those at CPUs of AMD, where it has some and a CPU is.

    Their ranges still hold what all hosts showed: no host of AMD with a switch above its GPUs was measured.
    """
    part = system.part(gpu)
    if part is None:
        return None
    cpus = (system.part(cpu) for cpu in system.of_kind(Kind.CPU, host=system.device(gpu).host))
    of_amd = next((cpu for cpu in cpus if cpu is not None and is_of_amd(cpu)), None)
    if of_amd is None:
        return part
    keys = [(f"engine.duplex_{kind}", f".gen{gen}") for kind in _OTHER for gen in GENERATIONS]
    figures = {stem + gen: (part.figure(f"{stem}_amd{gen}"), part.figure(stem + gen)) for stem, gen in keys}
    known = {key: _with_ends_of(other, figure) for key, (figure, other) in figures.items() if figure.known}
    return replace(part, figures={**part.figures, **_reads_at(system, part, of_amd), **known}) if known else part


def _reads_at(system: System, part: Part, cpu: Part) -> dict[str, Figure]:
    """What its engine reads alone of a host with such a CPU, which its duplex figures were measured beside."""
    figures = {gen: part.figure(f"engine.h2d.gen{gen}") for gen in GENERATIONS}
    return {
        f"engine.h2d.gen{gen}": replace(figure, value=value * read_factor(system, part, gen, cpu), low=None, high=None)
        for gen, figure in figures.items() if isinstance(value := figure.value, float)
    }  # fmt: skip


def _with_ends_of(other: Figure, figure: Figure) -> Figure:
    """The figure with a range that holds the ends of another one's too."""
    lows, highs = ([each for each in ends if each is not None] for ends in (
        (figure.low, other.low), (figure.high, other.high)))  # fmt: skip
    return replace(figure, low=min(lows, default=None), high=max(highs, default=None))


def _displaced_copy(system: System, part: Part, kind: str) -> float | None:
    """What a byte of the other host copy, as fast as alone, displaces of this one by the duplex figures; None without.

    Where its rate alone was not measured beside them, the typical one stands for it.
    """
    measured = _by_duplex_figures(part, kind)
    return _by_duplex_figures(completed(system.catalog, part), kind) if measured is None else measured


def _by_duplex_figures(part: Part, kind: str) -> float | None:
    other = _OTHER.get(kind)
    for gen in sorted(GENERATIONS, reverse=True) if other is not None else ():
        both = part.number(f"engine.duplex.gen{gen}")
        alone = part.number(f"engine.{kind}.gen{gen}")
        mine, others = (part.number(f"engine.duplex_{each}.gen{gen}") for each in (kind, other))
        mine, others = mine or (both and both / 2), others or (both and both / 2)
        if alone and mine and others:
            return max(alone - mine, 0.0) / (part.number(f"engine.{other}.gen{gen}") or others)
    return None
