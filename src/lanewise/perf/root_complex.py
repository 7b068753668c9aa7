"""What root ports of a CPU let through: peer traffic, one way and both ways, and reads of host memory."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from lanewise.catalog import Figure
from lanewise.catalog.keys import GENERATIONS
from lanewise.perf import packets
from lanewise.perf.best_copy import best_read
from lanewise.perf.copy_engines import engine_demand
from lanewise.perf.known_parts import is_of_amd, settled_link
from lanewise.perf.link_demand import link_demand
from lanewise.perf.resources import UNKNOWN_LINK, Resource, cite, figure_resource
from lanewise.perf.segments import PACKET_LINKS, Segment, is_cpu, slowest_link
from lanewise.perf.uncertainty import BOUNDS, RANGES, UNKNOWN, figure_range
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import Kind, Link, LinkKind, System

PEER_DOUBT = "what {} forwards between its root ports was not measured: {} its peer.rate.gen{}"
_XEON_SLOTS = 3  # the PCIe generation whose servers with GPUs are nearly all of Intel
# Of peer writes, what cards read of GPUs at least: of two MI300X at other stacks of a Xeon 8480+ 63.6 of 90.4 GB/s, as
# the requests under way decide, whose answers come late (llm-d, Cross-IIO PCIe P2P Throughput Degradation).
_READ_LEAST = 0.7
READ_DOUBT = "{} reads a GPU through {}, of which only peer writes were measured: reads may get less"
_EPYC_LANES = 128  # of one socket (AMD EPYC 7002 to 9005 data sheets)


def host_read_demand(system: System, segment: Segment) -> Iterator[tuple[Resource, float]]:
    """What a root port lets through of reads from host memory: no more than the best copy anybody published."""
    first = next((hop for hop in segment.hops if hop.link.kind in PACKET_LINKS), None)
    if not segment.is_read or first is None or not is_cpu(system, first.start):
        return
    link = settled_link(system, first.link)
    if link.gen is None or link.lanes is None:
        return
    best = best_read(system, link.gen)
    if best is not None:
        name = f"reads through root port {link.port} of {first.start}"
        yield Resource(
            kind="root_port", place=first.direction, name=name, capacity=best.rate * link.lanes / 16,
            basis=best.basis, rests_on=best.rests_on,
        ), 1.0  # fmt: skip


def peer_demand(system: System, segment: Segment) -> Iterator[tuple[Resource, float]]:
    """A byte of what each root port that peer traffic leaves by passes of it; nothing where an end is host memory."""
    if not segment.is_peer(system):
        return
    for out in segment.hops[1:]:
        if not is_cpu(system, out.start) or out.link.kind is LinkKind.SOCKET:
            continue
        link = settled_link(system, out.link)
        if link.gen is None:
            continue
        width_share = (link.lanes or 16) / 16
        resource = figure_resource(system, out.start, f"peer.rate.gen{link.gen}", "peer_root_port", width_share)
        resource = resource or unmeasured_peer_port(system, out.start, link)
        if resource is not None:
            resource = replace(resource, high=max(resource.high, _split_writes(system, out.start, link)))
            if segment.is_read and system.device(segment.hops[-1].end).kind is not Kind.GPU:
                doubt = resource.doubt or READ_DOUBT.format(segment.hops[-1].end, out.start)
                resource = replace(resource, low=min(resource.low, _READ_LEAST * resource.capacity), doubt=doubt)
            # One capacity for each root port that peer traffic leaves by, whichever port it came in at.
            name = f"{resource.name} at {out.link.port or out.end}"
            yield replace(resource, place=out.direction, name=name), 1.0


def _split_writes(system: System, cpu: str, link: Link) -> float:
    """The most that a link carries of packets of `peer.payload` (B/s), 0 if the CPU does not split them.

    Hosts with Intel's CPUs get 0.89 to 1.0 of it (RTX 4090 on Emerald Rapids, V100 on an unnamed Xeon): no one's own
    figure says how much of it the next host gets.
    """
    payload = system.number(cpu, "peer.payload")
    if not payload or link.gen is None:
        return 0.0
    raw = packets.raw_rate(link.gen, link.lanes or 16)
    return raw / packets.wire_bytes(payload, packets.REQUEST_64BIT)


def unmeasured_peer_port(system: System, cpu: str, link: Link) -> Resource | None:
    """What a root port passes of peer traffic where the CPU is not known: the link's rate, possibly less.

    A CPU that is not named may be the slowest that was measured of those whose lanes suffice for two such ports: a
    desktop's Core has x8 for each of two GPUs. With Gen3 slots it is taken to be a Xeon, which splits
    peer traffic into 64 B packets, as nearly all servers with GPUs on Gen3 are. Of a maker of whose CPUs none was
    measured, nothing is known, nor of Intel's desktops, whose packets (peer.payload) are planned after Xeons. None for
    AMD's, all of which pass what the link carries (data/parts/cpu-amd.yaml), and for links of unknown speed.
    """
    part = system.part(cpu)
    if link.gen is None or (part is not None and is_of_amd(part)):
        return None
    least, share, rests_on = RANGES[UNKNOWN][0], 1.0, "the link's raw rate"
    planned = part is not None and part.figure("peer.payload").basis == "planning"
    if not planned and (part is None or part.title.startswith("Intel")):
        stated = [each for each in _peer_shares(system) if each.lanes > 2 * (link.lanes or 16)]
        least = min((each.least for each in stated), default=least)
        xeons = sorted({each.share for each in stated if each.gen == link.gen and each.is_own})
        if part is None and link.gen == _XEON_SLOTS and xeons:
            share = statistics.median(xeons)
            rests_on = f"{share:.2f} of the link's raw rate, median of the Xeons that were measured with Gen{link.gen}"
    raw = packets.raw_rate(link.gen, link.lanes or 16)
    return Resource(
        kind="peer_root_port", place=(cpu,), name=f"peer traffic through the root complex of {cpu}",
        capacity=raw * share, basis="typical", low=raw * least, high=raw,
        rests_on=rests_on, doubt=PEER_DOUBT.format(cpu, "state" if part else "name the CPU, or state", link.gen),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _PeerShare:
    """What peer writes get of a x16 link, the least of it, and whether that was measured on CPUs of this kind.

    `lanes` are those that the CPU has.
    """

    gen: int
    lanes: float
    share: float
    least: float
    is_own: bool


@memoized_by_figures
def _peer_shares(system: System) -> tuple[_PeerShare, ...]:
    """What peer writes get through root complexes that were measured."""
    cpus = [part for part in system.catalog.parts.values() if part.kind == "cpu"]
    stated = (
        (gen, part.number("pcie.lanes") or math.inf, part.figure(f"peer.rate.gen{gen}"))
        for part in cpus for gen in GENERATIONS
    )  # fmt: skip
    return tuple(
        _PeerShare(gen, lanes, share, share * figure_range(figure)[0], not figure.carried_from)
        for gen, lanes, figure in stated
        if isinstance(figure.value, float) and (share := figure.value / packets.raw_rate(gen, 16))
    )


def peers_both_ways_demand(system: System, segment: Segment) -> Iterator[tuple[Resource, float]]:
    """What two root ports of a CPU pass of peer writes of both directions together (`peer.both_ways`).

    Of desktops' CPUs some pass twice one direction (AM5), some hardly more than one (AM4: 4.4 of 3.6 GB/s). One that
    nobody measured, or named, may be like the least of those measured.
    """
    if not segment.is_peer(system) or segment.is_read:
        return
    pairs = [(into, out) for into, out in pairwise(segment.hops) if is_cpu(system, into.end)]
    if len(pairs) != 1 or any(hop.link.kind is LinkKind.SOCKET for hop in pairs[0]):
        return
    (into, out), cpu = pairs[0], pairs[0][0].end
    part, figure = system.part(cpu), _both_ways_figure(system, cpu)
    if figure is None:
        return
    alone = [*link_demand(system, segment), *peer_demand(system, segment), *_write_engines(system, segment)]
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
    slowest = slowest_link(system, segment)
    if slowest is None:
        return
    for gpu in (segment.src, segment.dst):
        demand = engine_demand(system, gpu, "p2p_write", slowest)
        if demand is not None:
            yield demand


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
