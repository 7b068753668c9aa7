"""What one byte over a route takes of each resource: links (packets of which size), engines, windows, memory.

Posted traffic (writes) costs header bytes in its own direction. Non-posted traffic (reads) comes back as
completions and costs one request per max read request in the other direction; reads alone occupy windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lanewise.perf.copy_engines import copy_demand
from lanewise.perf.drives import end_demand
from lanewise.perf.host import bridge_demand, memory_demand
from lanewise.perf.link_demand import link_demand
from lanewise.perf.measured_capacity import as_measured
from lanewise.perf.read_windows import window_demand
from lanewise.perf.resources import Resource, summed
from lanewise.perf.root_complex import host_read_demand, peer_demand, peers_both_ways_demand
from lanewise.perf.segments import PCIE_TRANSPORT, Segment, is_cpu, segments
from lanewise.perf.sockets import socket_demand
from lanewise.perf.translation import translation_demand
from lanewise.routes.model import Route
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import LinkKind, System


@memoized_by_figures
def resources_per_byte(system: System, route: Route, peer_read: bool) -> Mapping[Resource, float]:
    """What one byte of goodput over `route` takes of each resource: wire bytes of a link, seconds of a window."""
    amounts = summed(_amounts(system, route, peer_read))
    return {as_measured(system, resource): amount for resource, amount in amounts.items()}


def _amounts(system: System, route: Route, peer_read: bool) -> Iterator[tuple[Resource, float]]:
    for segment in segments(system, route, peer_read):
        yield from link_demand(system, segment)
        if segment.hops[0].link.kind in (*PCIE_TRANSPORT, LinkKind.NVLINK):  # over NVLink-C2C too
            yield from memory_demand(system, segment.src, segment.dst, route.memory_node)
        if segment.hops[0].link.kind in PCIE_TRANSPORT:
            yield from peer_demand(system, segment)
            yield from peers_both_ways_demand(system, segment)
            yield from socket_demand(system, segment.hops, _joins_devices(system, segment, route), segment.is_read)
            yield from copy_demand(system, segment)
            yield from bridge_demand(system, segment.hops)
            yield from translation_demand(system, segment.src, segment.dst, segment.hops)
            yield from host_read_demand(system, segment)
            yield from window_demand(system, segment)
    yield from end_demand(system, route)


def _joins_devices(system: System, segment: Segment, route: Route) -> bool:
    """Whether a segment carries data from device to device, also where NVLink joins both of them to their CPUs."""
    return segment.is_peer(system) or not (is_cpu(system, route.src) or is_cpu(system, route.dst))
