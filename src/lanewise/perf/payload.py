"""Bytes of data in the packets of a link: what CPUs split, and the completions of a host's reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lanewise.perf import packets
from lanewise.perf.resources import cite
from lanewise.perf.segments import PACKET_LINKS, Segment, is_cpu, segments
from lanewise.routes.model import Hop, LinkDirection, Route
from lanewise.topology.model import System

# x8 of Gen1, packets of 128 B, read requests of 512 B: 1.4 to 1.6 of 2.0 GB/s.
SMALL_COMPLETIONS = (
    "completions of 64 B on links with packets of 128 B, whose DMA reads get 0.70 to 0.80 (Oracle, 'Expected PCI-E "
    "bandwidth', blogs.oracle.com/pyakutis)"
)


@dataclass(frozen=True, slots=True)
class Payload:
    """Bytes of data in each packet on a link, and where this size comes from ('': the default of 256 B)."""

    size: float
    basis: str = "physics"
    rests_on: str = ""


DEFAULT = Payload(packets.DEFAULT_PAYLOAD)


def completions(system: System, payload: Payload, cpu: str) -> Payload:
    """The payload of a host's completions: its CPU's figure, or 64 B where packets hold less than 256 B.

    A completion may end at any multiple of 64 B (PCI Express Base Specification, read completion boundary). Hosts whose
    packets hold 256 B were measured and fill them; on links with packets of 128 B reads get 0.70 to 0.80, as
    completions of 64 B give (0.75; full ones 0.85).
    """
    unknown = not system.number(cpu, "completion.payload")
    if unknown and packets.COMPLETION_BOUNDARY < payload.size < packets.DEFAULT_PAYLOAD:
        return Payload(packets.COMPLETION_BOUNDARY, "typical", SMALL_COMPLETIONS)
    return split(system, payload, cpu, "completion.payload")


def split(system: System, payload: Payload, cpu: str, key: str) -> Payload:
    """The payload of packets that a CPU splits to the size of its figure `key`."""
    part = system.part(cpu)
    figure = part.figure(key) if part is not None else None
    if part is None or figure is None or not isinstance(figure.value, float) or not 0 < figure.value < payload.size:
        return payload
    return Payload(figure.value, figure.basis, f"{figure.value:.0f} B packets from {cpu} on: {cite(part, key, figure)}")


def payloads(system: System, segment: Segment) -> dict[LinkDirection, Payload]:
    """The payload of the packets on each PCIe hop of a segment, by the hop's direction."""
    payload = max_payload(system, segment.hops)
    if segment.is_read and is_cpu(system, segment.src):
        payload = completions(system, payload, segment.src)
    peers = segment.is_peer(system)
    by_direction = {}
    for hop in segment.hops:
        if peers and is_cpu(system, hop.start):
            payload = split(system, payload, hop.start, "peer.payload")
        if hop.link.kind in PACKET_LINKS:
            by_direction[hop.direction] = payload
    return by_direction


def payload_source(system: System, route: Route, peer_read: bool, link: LinkDirection) -> tuple[str, str] | None:
    """Basis and source of the payload of a route's packets on a link direction; None if they have the default one."""
    for segment in segments(system, route, peer_read):
        for direction, payload in payloads(system, segment).items():
            if direction == link and payload.rests_on:
                return payload.basis, payload.rests_on
    return None


def max_payload(system: System, hops: Iterable[Hop]) -> Payload:
    """The smallest max payload size along a segment."""
    on_links = [hop.link.max_payload for hop in hops if hop.link.max_payload is not None]
    known = [Payload(size, rests_on=f"max_payload {size:.0f} B: the description") for size in on_links]
    ends = dict.fromkeys(end for hop in hops if hop.link.kind in PACKET_LINKS for end in (hop.start, hop.end))
    for part in [part for end in ends if (part := system.part(end)) is not None and part.kind != "nvlink"]:
        figure = part.figure("pcie.max_payload")
        if isinstance(figure.value, float) and figure.value:
            known.append(Payload(figure.value, figure.basis, cite(part, "pcie.max_payload", figure)))
    least = min(known, key=lambda payload: payload.size, default=DEFAULT)
    return least if least.size != packets.DEFAULT_PAYLOAD else DEFAULT
