"""Bytes on the wire of each link that a byte of data crosses: headers of its packets, and the requests of reads.

Posted traffic (writes) costs header bytes in its own direction. Non-posted traffic (reads) comes back as
completions and costs one request per max read request in the other direction.
"""

from __future__ import annotations

from collections.abc import Iterator

from lanewise.perf import packets
from lanewise.perf.link_capacity import link_resource
from lanewise.perf.payload import SMALL_COMPLETIONS, Payload, max_payload, payloads
from lanewise.perf.resources import Resource
from lanewise.perf.segments import Segment
from lanewise.topology.model import System


def link_demand(system: System, segment: Segment) -> Iterator[tuple[Resource, float]]:
    """Bytes on the wire of each link that a byte of data crosses, and of the requests against it."""
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
    full = max_payload(system, segment.hops).size
    overhead = packets.COMPLETION if payload.rests_on == SMALL_COMPLETIONS else packets.REQUEST_64BIT
    least, most = (packets.wire_bytes(size, overhead) for size in (payload.size, full))
    return least / most


def _write_overhead(system: System, target: str) -> float:
    """A request below 4 GiB must use the three-word header (PCIe base specification 2.2.4.1)."""
    part = system.part(target)
    low = part is not None and part.kind == "gpu" and part.figure("bar.above_4g").value == "no"
    return packets.REQUEST_32BIT if low else packets.REQUEST_64BIT
