"""Inter-socket links: what all traffic of a direction shares, what one root port gets, and what peer writes get.

Rate of one link = raw rate x share, all links of a direction together = links x that. Over UPI copies of GPUs get half
of what cores get (SOCKET_SHARE), which several GPUs show and one hardly does. Traffic with the memory of the other
socket uses all links, as its addresses are interleaved. On xGMI the devices of one root port get about what one link
carries of it, both directions together (_unmeasured_far_memory), on EPYC 7002 a fifth more than one direction and two
thirds of that to writes (intersocket.memory_both, write_weight), which read requests do not pass (PCI Express Base
Specification, transaction ordering). What a root port sends to devices of the other socket stays on one link: RTX 4090
on Rome write 22 GB/s over links of 32 (0.69), and behind PEX890xx switches on Turin two flows from one root port move
40 GB/s together, two from two root ports 76. Over links of 64 GB/s 36.8 to 55.6 were measured. Peer writes between
Intel sockets are slower than DMA to memory: A100 PCIe cards 7.7 to 8.7 GB/s over UPI whose links carry 34 or more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from lanewise.perf.known_parts import number_of, part_of
from lanewise.perf.measured_capacity import as_measured
from lanewise.perf.resources import Resource, cite, figure_resource
from lanewise.perf.socket_links import SOCKET_DOUBT, SOCKET_SETTINGS, SOCKET_SHARE, socket_link, socket_links
from lanewise.perf.uncertainty import figure_range
from lanewise.routes.model import Hop
from lanewise.topology.model import Kind, LinkKind, System

# Between CPUs that are not named peer writes may be those over UPI, a third of its rate (see above). Copies of memory
# keep what settings leave of the least share of a link: six such hosts get 0.84 to 1.32 of what is predicted one way,
# and 0.54 or more both ways.
UNKNOWN_PEERS = 0.35 / SOCKET_SETTINGS[0]
UNKNOWN_FAR = SOCKET_SETTINGS[0] * SOCKET_SHARE["xgmi"][0] / SOCKET_SHARE["xgmi"][1]
# What devices of one root port get at least of the far socket's memory, as a share of the raw rate of one xGMI link.
FAR_SHARE = SOCKET_SHARE["xgmi"][1]
FAR_SOURCE = (
    f"{FAR_SHARE} of the raw rate of one xGMI link: MI210 on EPYC 9554, MI100 on EPYC 7763 and MI50 on EPYC Rome get "
    "0.70, 0.71 and 1.06 both ways"
)
ONE_DIRECTION = "far_memory_one_way"  # the kind of what one direction gets of far memory
# Cards of 200 Gb/s that read a GPU at another socket: 11 GB/s of an A30 (23 of host memory), 10.1 of an A100.
READS_OF_GPU, READS_RANGE = 10.5e9, (0.7, 2.3)
READS_SOURCE = (
    "two hosts with a card of 200 Gb/s, 11 and 10.1 GB/s (linux-rdma/perftest issue 241; Spiderpool documentation)"
)
BUFFERS_DOUBT = (
    "which socket has the buffers of copies through host memory is not known: state policies: {staging: ...}"
)
PLANNING_DOUBT = "a planning figure for traffic between GPUs; no measurement between such sockets is known"


def socket_demand(system: System, hops: Sequence[Hop], peers: bool, is_read: bool) -> Iterator[tuple[Resource, float]]:
    """A byte of what one root port gets of inter-socket links, and of what peer writes get; nothing where unknown.

    `hops` are those of one PCIe segment, `peers` whether both of its ends are devices, `is_read` whether the receiving
    end fetches.
    """
    for hop in hops:
        part = part_of(system, hop.start) if hop.link.kind is LinkKind.SOCKET else None
        if part is None:
            continue
        if peers and is_read and system.device(hops[-1].end).kind is not Kind.GPU:
            yield _reads_of_gpu(hop, hops), 1.0
        if not peers:
            yield from _directions_of_far_memory(system, hop, hops)
        if peers:
            one_link = part.text("intersocket.kind") in ("xgmi", None)  # unknown: no more than one link is certain
            yield from _one_link(system, hop, hops) if one_link else _peer_writes(system, hop)


def _reads_of_gpu(hop: Hop, hops: Sequence[Hop]) -> Resource:
    """What one card or drive reads of a GPU at another socket: few reads are under way at once, over a long way."""
    reader = hops[-1].end
    return Resource(
        kind="socket_reads", place=(reader, *hop.direction), name=f"reads by {reader} of GPUs at another socket",
        capacity=READS_OF_GPU, basis="typical", rests_on=READS_SOURCE, doubt="differs much between hosts: measure it",
    ).within(READS_RANGE)  # fmt: skip


def _far_memory(system: System, hop: Hop, hops: Sequence[Hop]) -> Iterator[tuple[Resource, float]]:
    """What devices of one root port get of the far socket's memory, both directions together."""
    measured = figure_resource(system, hop.start, "intersocket.memory_rate", "far_memory")
    unmeasured = _unmeasured_far_memory(system, hop)
    resource = measured or unmeasured
    if measured is not None and unmeasured is not None and hop.link.rate is None:
        # Width and speed of the links are settings of a machine: another one of the same CPUs may get less or more.
        most = max(measured.high, SOCKET_SETTINGS[1] * measured.capacity)
        resource = replace(measured, low=min(measured.low, unmeasured.low), high=most)
    roots = (each for each in hops if each.link.kind is not LinkKind.SOCKET and _is_cpu(system, each.link.a))
    port = next(roots, None)
    if resource is not None and port is not None:
        place = (*sorted((hop.start, hop.end)), port.link.a, port.link.port)
        name = f"{resource.name.rpartition(' of ')[0]} (traffic of root port {port.link.port} of {port.link.a})"
        yield replace(resource, place=place, name=name), 1.0


def _directions_of_far_memory(system: System, hop: Hop, hops: Sequence[Hop]) -> Iterator[tuple[Resource, float]]:
    """Far memory, each direction apart where both together were measured to get more than one alone (Rome)."""
    for far, amount in _far_memory(system, hop, hops):
        both = figure_resource(system, hop.start, "intersocket.memory_both", far.kind)
        if both is None or both.capacity <= far.capacity or hop.link.rate is not None:
            yield far, amount
            continue
        yield replace(far, kind=ONE_DIRECTION, place=(*hop.direction, *far.place[2:])), amount
        high = max(far.high, SOCKET_SETTINGS[1] * both.capacity)
        yield replace(both, place=far.place, name=far.name, low=min(far.low, both.low), high=high), amount


def through_far_buffers(amounts: Iterable[tuple[Resource, float]]) -> Iterator[tuple[Resource, float]]:
    """The amounts of a stage of a copy through host memory, whose two directions get no more than one copy does."""
    taken = list(amounts)
    one = next((each.capacity for each, _ in taken if each.kind == ONE_DIRECTION), None)
    for each, amount in taken:
        yield each, amount * each.capacity / one if one is not None and each.kind == "far_memory" else amount


def far_buffers(system: System, hops: Sequence[Hop]) -> Iterator[tuple[Resource, float]]:
    """A byte of a copy with buffers taken to be in its own socket's memory; at the low end they are at the other."""
    root = next((hop.link for hop in hops if _is_cpu(system, hop.link.a)), None)
    if root is None or any(hop.link.kind is LinkKind.SOCKET for hop in hops):
        return
    joined = next((link for link in system.links_at(root.a) if link.kind is LinkKind.SOCKET), None)
    part = part_of(system, root.a)
    if joined is None or part is None:
        return
    hop = Hop(joined, down=joined.a == root.a)
    for far, amount in _far_memory(system, hop, hops):
        most = 2 * socket_links(part, hop) * far.capacity
        name = f"buffers at the other socket (traffic of root port {root.port} of {root.a})"
        buffers = replace(
            far, kind="far_buffers", name=name, capacity=most, low=far.capacity, high=most, doubt=BUFFERS_DOUBT
        )
        yield as_measured(system, buffers), amount


def _is_cpu(system: System, name: str) -> bool:
    return system.device(name).kind is Kind.CPU


def _unmeasured_far_memory(system: System, hop: Hop) -> Resource | None:
    """On xGMI: of an EPYC FAR_SHARE of a link, both directions; else all links, which limit nothing else.

    Peers get less of such a link of Rome and Genoa (0.67 and 0.63); where they get more (Turin, 0.91), so does memory.
    Staged copies between sockets of EPYC 7302, 7002 and 9374F get less. On hosts whose CPUs are not named an A100 and
    an MI350X get twice what they get one way, others of A100 21 GB/s: there no limit is taken, and the interval begins
    at one link.
    """
    part = part_of(system, hop.start)
    if part is None or part.text("intersocket.kind") not in ("xgmi", None):
        return None
    one = socket_link(system, part, hop)
    if one is None:
        return None
    most = 2 * socket_links(part, hop) * one.capacity
    far = replace(one, kind="far_memory", name=f"memory of the far socket of {hop.start}",
                  high=max(most, 2 * socket_links(part, hop) * one.high))  # fmt: skip
    if system.part(hop.start) is None:
        return replace(far, capacity=most, low=UNKNOWN_FAR * one.capacity)
    raw = part.number("intersocket.raw") if hop.link.rate is None else hop.link.rate / socket_links(part, hop)
    if raw is None or one.capacity >= FAR_SHARE * raw:
        return far
    return replace(far, capacity=FAR_SHARE * raw, basis="typical", rests_on=FAR_SOURCE)


def _one_link(system: System, hop: Hop, hops: Sequence[Hop]) -> Iterator[tuple[Resource, float]]:
    """The xGMI link that peer traffic of a root port stays on, the port where data comes in.

    The ports of a socket take the links in turn: with more ports than links two of them share one.
    """
    part = part_of(system, hop.start)
    link = socket_link(system, part, hop) if part is not None else None
    at = hops.index(hop)
    port = next((before for before in reversed(hops[:at]) if before.link.kind is not LinkKind.SOCKET), None)
    if part is None or link is None or port is None:
        return
    count = socket_links(part, hop)
    ports = [each.port for each in system.links_at(hop.start) if each.kind is LinkKind.PCIE and each.a == hop.start]
    number = ports.index(port.link.port) % count if port.link.port in ports else 0
    sharing = [name for index, name in enumerate(ports) if index % count == number] or [port.link.port]
    name = f"one xgmi link {hop.start}->{hop.end} (traffic of root port{'s' * (len(sharing) > 1)} {', '.join(sharing)})"
    low = link.low * (UNKNOWN_PEERS if link.doubt == SOCKET_DOUBT else 1.0)
    between = part.figure("intersocket.peer_rate")  # of two makers, where the CPU is not named
    if link.doubt == SOCKET_DOUBT and isinstance(between.value, float):
        capacity = min(max(between.value, low), link.high)
        link = replace(link, capacity=capacity, rests_on=cite(part, "intersocket.peer_rate", between))
    # Which link data takes the other way is not known, so none of several is named alike both ways.
    which = f"{hop.start} link {number}" if count > 1 else "link"
    yield replace(link, kind="socket_link", place=(*hop.direction, which), name=name, low=low), 1.0


def least_peer_writes(system: System, cpu: str) -> float | None:
    """The least that peer writes to the other socket get on any CPU of the generation of `cpu`, in B/s."""
    gen = number_of(system, cpu, "pcie.gen")
    cpus = [part for part in system.catalog.parts.values() if part.kind == "cpu"]
    near = [part for part in cpus if gen in (None, part.number("pcie.gen"))]
    keys = ("intersocket.peer_rate", "intersocket.planning")
    figures = [next((figure for key in keys if (figure := part.figure(key)).known), None) for part in near]
    ends = (figure.value * figure_range(figure)[0] for figure in figures if figure and isinstance(figure.value, float))
    return min(ends, default=None)


def _peer_writes(system: System, hop: Hop) -> Iterator[tuple[Resource, float]]:
    """What GPUs and network cards write to peers at another socket: measured, else planned."""
    measured = figure_resource(system, hop.start, "intersocket.peer_rate", "peer_socket")
    planned = figure_resource(system, hop.start, "intersocket.planning", "peer_socket")
    resource = measured or (planned and replace(planned, doubt=PLANNING_DOUBT))
    if resource is not None:
        yield (
            replace(resource, place=hop.direction, name=f"peer writes between the sockets {hop.start}->{hop.end}"),
            1.0,
        )
