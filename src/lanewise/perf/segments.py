"""A route cut into segments, where the transport changes: who asks for the data, and the slowest link of each."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lanewise.perf import packets
from lanewise.perf.known_parts import link_with_speed
from lanewise.perf.uncertainty import Bound
from lanewise.routes.model import Hop, Route
from lanewise.topology.model import Kind, Link, LinkKind, System

PCIE_TRANSPORT = (LinkKind.PCIE, LinkKind.FABRIC, LinkKind.SOCKET)
PACKET_LINKS = (LinkKind.PCIE, LinkKind.FABRIC)


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
        return not (is_cpu(system, self.src) or is_cpu(system, self.dst))


def segments(system: System, route: Route, peer_read: bool = False) -> list[Segment]:
    """The route cut where the transport changes: PCIe with inter-socket links, NVLink, network."""
    groups: list[list[Hop]] = []
    for hop in route.hops:
        if groups and _transport(groups[-1][-1]) == _transport(hop):
            groups[-1].append(hop)
        else:
            groups.append([hop])
    return [Segment(tuple(group), _is_read(system, group, peer_read)) for group in groups]


def slowest_link(system: System, segment: Segment, bound: Bound = "nominal") -> Link | None:
    """The slowest PCIe link of a segment whose generation is known or follows from its ends, at an end of its range."""
    pcie = [link_with_speed(system, hop.link, bound) for hop in segment.hops if hop.link.kind in PACKET_LINKS]
    return min((link for link in pcie if link.gen is not None), key=link_speed, default=None)


def link_speed(link: Link | None) -> float:
    """Raw rate of one direction of a link in B/s, infinite where it is unknown."""
    return packets.raw_rate(link.gen, link.lanes) if link and link.gen and link.lanes else math.inf


def is_cpu(system: System, name: str) -> bool:
    """Whether a device is a socket, whose memory is an end of routes."""
    return system.device(name).kind is Kind.CPU


def _is_read(system: System, hops: list[Hop], peer_read: bool) -> bool:
    """Whether the receiving end fetches: GPUs, NICs and drives read memory; a NIC or drive reads a GPU; GPUs push."""
    src, dst = system.device(hops[0].start).kind, system.device(hops[-1].end).kind
    if hops[0].link.kind not in PCIE_TRANSPORT:
        return False
    if src is Kind.CPU:
        return dst is not Kind.CPU
    if src is Kind.GPU and dst is Kind.GPU:
        return peer_read
    return dst in (Kind.NIC, Kind.SSD, Kind.RAID)


def _transport(hop: Hop) -> LinkKind:
    return LinkKind.PCIE if hop.link.kind in PCIE_TRANSPORT else hop.link.kind
