"""What one byte over a route takes of each resource: links (packets of which size), engines, windows, memory.

Posted traffic (writes) costs header bytes in its own direction. Non-posted traffic (reads) comes back as
completions and costs one request per max read request in the other direction; reads alone occupy windows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lanewise.catalog import Figure
from lanewise.perf import packets
from lanewise.perf.best_copy import best_read
from lanewise.perf.drives import unknown_end
from lanewise.perf.host import bridge_demand, memory_demand, unmeasured_peer_port
from lanewise.perf.known_parts import link_with_speed, number_of, part_of
from lanewise.perf.measured_capacity import as_measured
from lanewise.perf.payload import DEFAULT, SMALL_COMPLETIONS, Payload, completions, split
from lanewise.perf.reads_of_gpu import reads_of_gpu
from lanewise.perf.resources import (
    NETWORK_SHARE,
    UNKNOWN_LINK,
    Resource,
    cite,
    engine_demand,
    figure_demand,
    figure_resource,
    link_resource,
    weakest,
)
from lanewise.perf.sockets import socket_demand
from lanewise.perf.translation import translation_demand
from lanewise.perf.uncertainty import BOUNDS, Bound, figure_range, widest
from lanewise.routes.model import Hop, LinkDirection, Route
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import Kind, Link, LinkKind, System

_PCIE_TRANSPORT = (LinkKind.PCIE, LinkKind.FABRIC, LinkKind.SOCKET)
_PACKETS = (LinkKind.PCIE, LinkKind.FABRIC)
# Reads wait for their data, and only so many may be outstanding (PCI Express Base Specification, tags): a host that
# answers later gives less. Copies from memory of 15 hosts that are not named and held out got 0.66 to 1.10 of what is
# predicted, 14 of them from 0.81 on, and copies to it, which wait for credits alone, 0.94 and more.
UNNAMED_READS = (0.80, 1.0)
WIRE_S_PER_M = 5e-9  # signal speed in copper and fibre is about two thirds of light's


@dataclass(frozen=True, slots=True)
class Segment:
    """Contiguous hops of one transport; `is_read` if the receiving end fetches, else the sending end pushes."""

    hops: tuple[Hop, ...]
    is_read: bool

    @property
    def src(self) -> str:
        """Where the data leaves."""
        return self.hops[0].start

    @property
    def dst(self) -> str:
        """Where the data goes."""
        return self.hops[-1].end

    @property
    def requester(self) -> str:
        """The device that issues the reads or writes."""
        return self.dst if self.is_read else self.src

    def is_peer(self, system: System) -> bool:
        """Whether neither end is host memory."""
        return not (_is_cpu(system, self.src) or _is_cpu(system, self.dst))


@memoized_by_figures
def route_demand(system: System, route: Route, peer_read: bool) -> Mapping[Resource, float]:
    """What one byte of goodput over `route` takes of each resource: wire bytes of a link, seconds of a window."""
    amounts = summed(_amounts(system, route, peer_read))
    return {as_measured(system, resource): amount for resource, amount in amounts.items()}


def summed(amounts: Iterable[tuple[Resource, float]]) -> dict[Resource, float]:
    """The amounts of each resource added up, in the order in which the resources come."""
    total: dict[Resource, float] = defaultdict(float)  # a link direction or a device has one entry, whoever made it
    for resource, amount in amounts:
        total[resource] += amount
    return dict(total)


def segments(system: System, route: Route, peer_read: bool = False) -> list[Segment]:
    """The route cut where the transport changes: PCIe with inter-socket links, NVLink, network."""
    groups: list[list[Hop]] = []
    for hop in route.hops:
        if groups and _transport(groups[-1][-1]) == _transport(hop):
            groups[-1].append(hop)
        else:
            groups.append([hop])
    return [Segment(tuple(group), _is_read(system, group, peer_read)) for group in groups]


def payloads(system: System, segment: Segment) -> dict[LinkDirection, Payload]:
    """The payload of the packets on each PCIe hop of a segment, by the hop's direction."""
    payload = _max_payload(system, segment.hops)
    if segment.is_read and _is_cpu(system, segment.src):
        payload = completions(system, payload, segment.src)
    peers = segment.is_peer(system)
    by_direction = {}
    for hop in segment.hops:
        if peers and _is_cpu(system, hop.start):
            payload = split(system, payload, hop.start, "peer.payload")
        if hop.link.kind in _PACKETS:
            by_direction[hop.direction] = payload
    return by_direction


def payload_source(system: System, route: Route, peer_read: bool, link: LinkDirection) -> tuple[str, str] | None:
    """Basis and source of the payload of a route's packets on a link direction; None if they have the default one."""
    for segment in segments(system, route, peer_read):
        for direction, payload in payloads(system, segment).items():
            if direction == link and payload.rests_on:
                return payload.basis, payload.rests_on
    return None


def round_trip(system: System, segment: Segment) -> float | None:
    """Time of one read without load in s: there, completer and back; None if the completer is unknown."""
    completer = number_of(system, segment.src, "latency.memory_read") if _is_cpu(system, segment.src) else None
    return None if completer is None else completer + 2 * one_way(system, segment.hops)


def one_way(system: System, hops: Sequence[Hop]) -> float:
    """Wire time of a small packet in s: cables, switches' cut-through, root complexes and inter-socket links passed."""
    keys = {Kind.SWITCH: "switch.cut_through", Kind.CPU: "latency.root_complex"}
    passed = [(hop.end, key) for hop in hops[:-1] if (key := keys.get(system.device(hop.end).kind))]
    sockets = [hop.start for hop in hops if hop.link.kind is LinkKind.SOCKET]
    wires = sum((hop.link.length or 0.0) * WIRE_S_PER_M for hop in hops)
    forwarding = sum(number_of(system, name, key) or 0.0 for name, key in passed)
    return wires + forwarding + sum(system.number(name, "latency.intersocket") or 0.0 for name in sockets)


def _amounts(system: System, route: Route, peer_read: bool) -> Iterator[tuple[Resource, float]]:
    for segment in segments(system, route, peer_read):
        yield from _links(system, segment)
        if segment.hops[0].link.kind in (*_PCIE_TRANSPORT, LinkKind.NVLINK):  # over NVLink-C2C too
            yield from memory_demand(system, segment.src, segment.dst, route.memory_node)
        if segment.hops[0].link.kind in _PCIE_TRANSPORT:
            yield from _peer_root_ports(system, segment)
            yield from _peers_both_ways(system, segment)
            yield from socket_demand(system, segment.hops, _joins_devices(system, segment, route), segment.is_read)
            yield from _engines(system, segment)
            yield from bridge_demand(system, segment.hops)
            yield from translation_demand(system, segment.src, segment.dst, segment.hops)
            yield from _root_port(system, segment)
            yield from _windows(system, segment)
    yield from _ends(system, route)


def _joins_devices(system: System, segment: Segment, route: Route) -> bool:
    """Whether a segment carries data from device to device, also where NVLink joins both of them to their CPUs."""
    return segment.is_peer(system) or not (_is_cpu(system, route.src) or _is_cpu(system, route.dst))


def _links(system: System, segment: Segment) -> Iterator[tuple[Resource, float]]:
    by_direction = payloads(system, segment)
    overhead = packets.COMPLETION if segment.is_read else _write_overhead(system, segment.dst)
    for hop in segment.hops:
        resource = link_resource(system, hop)
        if resource is None:
            continue
        payload = by_direction.get(hop.direction)
        if payload is not None:
            low, high = resource.factors
            resource = resource.within((low, high * _most_data(system, segment, payload)))
        yield resource, 1.0 if payload is None else packets.wire_bytes(payload.size, overhead)
        back = link_resource(system, hop.reverse) if segment.is_read and payload is not None else None
        if back is not None:
            request = system.number(segment.requester, "pcie.max_read_request") or packets.DEFAULT_READ_REQUEST
            yield back, packets.REQUEST_64BIT / request


def _most_data(system: System, segment: Segment, payload: Payload) -> float:
    """What a link carries in full packets, as a share of what small ones do that nobody measured; 1 of measured ones.

    Those are completions of 64 B to a host's reads, and peer writes that a CPU only may split.
    """
    if payload.rests_on != SMALL_COMPLETIONS and payload.basis != "planning":
        return 1.0
    full = _max_payload(system, segment.hops).size
    overhead = packets.COMPLETION if payload.rests_on == SMALL_COMPLETIONS else packets.REQUEST_64BIT
    least, most = (packets.wire_bytes(size, overhead) for size in (payload.size, full))
    return least / most


def _peer_root_ports(system: System, segment: Segment) -> Iterator[tuple[Resource, float]]:
    if not segment.is_peer(system):
        return
    for out in segment.hops[1:]:
        if not _is_cpu(system, out.start) or out.link.kind is LinkKind.SOCKET or out.link.gen is None:
            continue
        key = f"peer.rate.gen{out.link.gen}"
        width_share = (out.link.lanes or 16) / 16
        resource = figure_resource(system, out.start, key, "peer_root_port", width_share)
        resource = resource or unmeasured_peer_port(system, out.start, out.link)
        if resource is not None:
            resource = replace(resource, high=max(resource.high, _split_writes(system, out)))
            # One capacity for each root port that peer traffic leaves by, whichever port it came in at.
            name = f"{resource.name} at {out.link.port or out.end}"
            yield replace(resource, place=out.direction, name=name), 1.0


def _peers_both_ways(system: System, segment: Segment) -> Iterator[tuple[Resource, float]]:
    """What two root ports of a CPU pass of peer writes of both directions together (`peer.both_ways`).

    Of desktops' CPUs some pass twice one direction (AM5), some hardly more than one (AM4: 4.4 of 3.6 GB/s). One that
    nobody measured, or named, may be like the least of those measured.
    """
    if not segment.is_peer(system) or segment.is_read:
        return
    pairs = [(into, out) for into, out in pairwise(segment.hops) if _is_cpu(system, into.end)]
    if len(pairs) != 1 or any(hop.link.kind is LinkKind.SOCKET for hop in pairs[0]):
        return
    (into, out), cpu = pairs[0], pairs[0][0].end
    part, figure = system.part(cpu), _both_ways_figure(system, cpu)
    if figure is None:
        return
    alone = [*_links(system, segment), *_peer_root_ports(system, segment), *_write_engines(system, segment)]
    if all(resource.kind == UNKNOWN_LINK for resource, _ in alone):  # nothing tells a rate
        return
    low, value, high = (min(resource.at(bound) / amount for resource, amount in alone) for bound in BOUNDS)
    place = (cpu, *sorted((into.link.port or into.start, out.link.port or out.end)))
    name = f"peers of {place[1]} and {place[2]} of {cpu}, both ways"
    share = figure.value if isinstance(figure.value, float) else 2.0
    rests = cite(part, "peer.both_ways", figure) if part is not None else figure.source
    whole = Resource(
        kind="peers_both_ways", place=place, name=name, capacity=value * share, basis=figure.basis, rests_on=rests
    )
    # One way alone keeps its own interval.
    least, most = figure_range(figure)
    yield whole.within((min(1.0, low / value) * least, max(1.0, high / value) * most)), 1.0


def _write_engines(system: System, segment: Segment) -> Iterator[tuple[Resource, float]]:
    """The engines that write to the peer, of either end: both directions are to have one capacity."""
    slowest = _slowest_link(system, segment)
    if slowest is None:
        return
    for gpu in (segment.src, segment.dst):
        demand = engine_demand(system, gpu, "p2p_write", slowest)
        if demand is not None:
            yield demand


_EPYC_LANES = 128  # of one socket (AMD EPYC 7002 to 9005 data sheets)


def _both_ways_figure(system: System, cpu: str) -> Figure | None:
    """`peer.both_ways` of a CPU; of one without a name, or a desktop's that nobody measured, 2 down to the least known.

    None for CPUs for servers, whose peers get both ways in full on 18 hosts: EPYC, Xeon, Threadripper PRO, which has
    EPYC's lanes.
    """
    part = system.part(cpu)
    stated = part.figure("peer.both_ways") if part is not None else None
    if stated is not None and stated.known:
        return stated
    if part is not None and (part.number("cpu.sockets_max") != 1 or part.number("pcie.lanes") == _EPYC_LANES):
        return None
    others = [value for each in system.catalog.parts.values()
              if each.kind == "cpu" and (value := each.number("peer.both_ways"))]  # fmt: skip
    if not others:
        return None
    source = "twice one way; the least that CPUs were measured to pass"
    return Figure(2.0, "1", source, basis="typical", low=min(others), high=2.0)


def _split_writes(system: System, out: Hop) -> float:
    """The most that a link carries of packets of `peer.payload` (B/s), 0 if the CPU does not split them.

    Hosts with Intel's CPUs get 0.89 to 1.0 of it (RTX 4090 on Emerald Rapids, V100 on an unnamed Xeon): no one's own
    figure says how much of it the next host gets.
    """
    payload = system.number(out.start, "peer.payload")
    if not payload or out.link.gen is None:
        return 0.0
    raw = packets.raw_rate(out.link.gen, out.link.lanes or 16)
    return raw / packets.wire_bytes(payload, packets.REQUEST_64BIT)


def _engines(system: System, segment: Segment) -> Iterator[tuple[Resource, float]]:
    kinds: tuple[str, ...]
    match system.device(segment.src).kind, system.device(segment.dst).kind:
        case Kind.CPU, Kind.GPU:
            gpu, kinds = segment.dst, ("h2d",)
        case Kind.GPU, Kind.CPU:
            gpu, kinds = segment.src, ("d2h",)
        case Kind.GPU, Kind.GPU:
            gpu, kinds = segment.requester, ("p2p_read",) if segment.is_read else ("p2p_write",)
        case Kind.GPU, _ if segment.is_read:
            yield from reads_of_gpu(system, segment.src, segment.hops[0].link)
            return
        case _:
            return
    slowest = _slowest_link(system, segment)
    if slowest is None:
        return
    for kind in kinds:
        demand = engine_demand(system, gpu, kind, slowest)
        if demand is not None:
            engine, amount = demand
            least, most = (_speed(_slowest_link(system, segment, bound)) / _speed(slowest) for bound in ("low", "high"))
            if least < most:  # behind a chipset that is not named
                engine = replace(engine, low=engine.low * least, high=engine.high * most)
            unnamed = kind == "h2d" and system.part(segment.src) is None
            yield engine.within(widest([engine.factors, UNNAMED_READS])) if unnamed else engine, amount


def _slowest_link(system: System, segment: Segment, bound: Bound = "nominal") -> Link | None:
    """The slowest PCIe link of a segment whose generation is known or follows from its ends, at an end of its range."""
    pcie = [link_with_speed(system, hop.link, bound) for hop in segment.hops if hop.link.kind in _PACKETS]
    return min((link for link in pcie if link.gen is not None), key=_speed, default=None)


def _root_port(system: System, segment: Segment) -> Iterator[tuple[Resource, float]]:
    """What a root port lets through of reads from host memory: no more than the best copy anybody published."""
    first = next((hop for hop in segment.hops if hop.link.kind in _PACKETS), None)
    if not segment.is_read or first is None or not _is_cpu(system, first.start):
        return
    if first.link.gen is None or first.link.lanes is None:
        return
    best = best_read(system, first.link.gen)
    if best is not None:
        name = f"reads through root port {first.link.port} of {first.start}"
        yield Resource(
            kind="root_port", place=first.direction, name=name, capacity=best.rate * first.link.lanes / 16,
            basis=best.basis, rests_on=best.rests_on,
        ), 1.0  # fmt: skip


def _windows(system: System, segment: Segment) -> Iterator[tuple[Resource, float]]:
    if not segment.is_read:
        return
    trip = round_trip(system, segment)
    if trip is not None:
        own = _requester_window(system, segment.requester)
        if own is not None:
            yield own, trip
    yield from _fabric_windows(system, segment, trip)


def _fabric_windows(system: System, segment: Segment, trip: float | None) -> Iterator[tuple[Resource, float]]:
    """What a fabric's host link allows reads that come down from a CPU: its window and its ceiling, each once.

    All switches of one fabric are behind that link, so both are keyed by the link and the fabric's part.
    """
    roots = [hop for hop in segment.hops if _is_cpu(system, hop.start) and hop.link.kind is LinkKind.PCIE]
    if not roots:
        return
    switches = [hop.end for hop in segment.hops[:-1] if system.device(hop.end).kind is Kind.SWITCH]
    fabrics = {part.name: name for name in reversed(switches) if (part := system.part(name)) is not None}
    for part_name, name in fabrics.items():
        place = (part_name, *roots[-1].direction)
        window = _window(system, name, segment.src, place)
        if window is not None and trip is not None:
            yield window, trip
        resource = figure_resource(system, name, "switch.read_rate", "host_link")
        if resource is not None:
            label = f"host link of the fabric at {name} (reads)"
            yield replace(resource, place=place, name=label), 1.0


def _requester_window(system: System, name: str) -> Resource | None:
    """The reads that one device keeps open: its tags times its max read request."""
    part = system.part(name)
    if part is None or part.kind == "cpu":
        return None
    tags, request = part.figure("pcie.tags"), part.figure("pcie.max_read_request")
    if not isinstance(tags.value, float):
        return None
    size = request.value if isinstance(request.value, float) else packets.DEFAULT_READ_REQUEST
    label = f"read tags of {name} ({tags.value:.0f} x {size:.0f} B)"
    return Resource(
        kind="tags", place=(name,), name=label, capacity=tags.value * size, basis=tags.basis,
        rests_on=cite(part, "pcie.tags", tags),
    ).within(figure_range(tags))  # fmt: skip


def _window(system: System, name: str, completer: str, place: tuple[str, ...]) -> Resource | None:
    """The reads that a fabric keeps open for all requesters behind it together (it proxies their IDs).

    How much they carry depends on the round trip, so the window depends on the completer's latency too.
    """
    part = system.part(name)
    if part is None:
        return None
    tags, payload = part.figure("switch.window_tags"), part.figure("switch.window_payload")
    if not isinstance(tags.value, float) or not isinstance(payload.value, float):
        return None
    figures = [(part, "switch.window_tags"), (part, "switch.window_payload")]
    memory = part_of(system, completer)
    figures += [(memory, "latency.memory_read")] if memory is not None and memory.kind == "cpu" else []
    rests = "; ".join(cite(owner, key, owner.figure(key)) for owner, key in figures)
    basis = weakest([owner.figure(key).basis for owner, key in figures])
    label = f"read window of {name} ({tags.value:.0f} reads x {payload.value:.0f} B)"
    return Resource(
        kind="window", place=place, name=label, capacity=tags.value * payload.value, basis=basis, rests_on=rests
    ).within(widest(figure_range(owner.figure(key)) for owner, key in figures))


def _ends(system: System, route: Route) -> Iterator[tuple[Resource, float]]:
    first, last = route.hops[0], route.hops[-1]
    for name, hop, key, kind in (
        (route.src, first, "read.rate", "drive_reads"), (route.dst, last, "write.rate", "drive_writes")
    ):  # fmt: skip
        if system.device(name).kind in (Kind.SSD, Kind.RAID):
            yield from list(figure_demand(system, name, key, kind)) or unknown_end(system, name, hop, key)
    # A port is full duplex: what a card sends from its host does not slow what it brings in.
    for name, hop, kind in ((route.src, first, "ports_in"), (route.dst, last, "ports_out")):
        if system.device(name).kind is Kind.NIC:
            # A card is as wide as its cables; where none is described, as one port.
            cables = sum(link.kind is LinkKind.NETWORK for link in system.links_at(name))
            known = list(figure_demand(system, name, "net.rate", kind, max(1, cables) * NETWORK_SHARE))
            yield from known or (unknown_end(system, name, hop) if not cables else ())
    for name in route.nodes[1:-1]:
        if system.device(name).kind is Kind.RAID:
            yield from figure_demand(system, name, "read.rate", "raid_controller")


def _is_read(system: System, hops: list[Hop], peer_read: bool) -> bool:
    """Whether the receiving end fetches: GPUs, NICs and drives read memory; a NIC or drive reads a GPU; GPUs push."""
    src, dst = system.device(hops[0].start).kind, system.device(hops[-1].end).kind
    if hops[0].link.kind not in _PCIE_TRANSPORT:
        return False
    if src is Kind.CPU:
        return dst is not Kind.CPU
    if src is Kind.GPU and dst is Kind.GPU:
        return peer_read
    return dst in (Kind.NIC, Kind.SSD, Kind.RAID)


def _max_payload(system: System, hops: Iterable[Hop]) -> Payload:
    """The smallest max payload size along a segment."""
    on_links = [hop.link.max_payload for hop in hops if hop.link.max_payload is not None]
    known = [Payload(size, rests_on=f"max_payload {size:.0f} B: the description") for size in on_links]
    ends = dict.fromkeys(end for hop in hops if hop.link.kind in _PACKETS for end in (hop.start, hop.end))
    for part in [part for end in ends if (part := system.part(end)) is not None and part.kind != "nvlink"]:
        figure = part.figure("pcie.max_payload")
        if isinstance(figure.value, float) and figure.value:
            known.append(Payload(figure.value, figure.basis, cite(part, "pcie.max_payload", figure)))
    least = min(known, key=lambda payload: payload.size, default=DEFAULT)
    return least if least.size != packets.DEFAULT_PAYLOAD else DEFAULT


def _write_overhead(system: System, target: str) -> float:
    """A request below 4 GiB must use the three-word header (PCIe base specification 2.2.4.1)."""
    part = system.part(target)
    low = part is not None and part.kind == "gpu" and part.figure("bar.above_4g").value == "no"
    return packets.REQUEST_32BIT if low else packets.REQUEST_64BIT


def _transport(hop: Hop) -> LinkKind:
    return LinkKind.PCIE if hop.link.kind in _PCIE_TRANSPORT else hop.link.kind


def _speed(link: Link | None) -> float:
    return packets.raw_rate(link.gen, link.lanes) if link and link.gen and link.lanes else math.inf


def _is_cpu(system: System, name: str) -> bool:
    return system.device(name).kind is Kind.CPU
