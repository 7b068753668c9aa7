"""Read windows: only so many reads may be outstanding, so a rate is at most window / round trip.

The window of a requester is its tags; a fabric has one for all requesters behind it, and a ceiling of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lanewise.perf import packets
from lanewise.perf.known_parts import number_of, part_of
from lanewise.perf.latency import one_way
from lanewise.perf.resources import Resource, cite, figure_resource, weakest
from lanewise.perf.segments import Segment, is_cpu
from lanewise.perf.uncertainty import figure_range, widest
from lanewise.topology.model import Kind, LinkKind, System


def window_demand(system: System, segment: Segment) -> Iterator[tuple[Resource, float]]:
    """The time (s) that a byte of reads holds the windows of its requester and of a fabric; nothing of writes."""
    if not segment.is_read:
        return
    trip = round_trip(system, segment)
    if trip is not None:
        own = _requester_window(system, segment.requester)
        if own is not None:
            yield own, trip
    yield from _fabric_windows(system, segment, trip)


def round_trip(system: System, segment: Segment) -> float | None:
    """Time of one read without load in s: there, completer and back; None if the completer is unknown."""
    completer = number_of(system, segment.src, "latency.memory_read") if is_cpu(system, segment.src) else None
    return None if completer is None else completer + 2 * one_way(system, segment.hops)


def _fabric_windows(system: System, segment: Segment, trip: float | None) -> Iterator[tuple[Resource, float]]:
    """What a fabric's host link allows reads that come down from a CPU: its window and its ceiling, each once.

    All switches of one fabric are behind that link, so both are keyed by the link and the fabric's part.
    """
    roots = [hop for hop in segment.hops if is_cpu(system, hop.start) and hop.link.kind is LinkKind.PCIE]
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
