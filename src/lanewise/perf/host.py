"""What a host allows of DMA: its memory, for reads and writes together, and its host bridges.

Memory, where both directions together were measured (`memory.dma_both`): reads + writes <= B and writes <= W, as data
of both directions passes the same pins (JEDEC JESD79-5, bidirectional DQ), and writes alone do not fill them. Emerald
Rapids passes as much of any mix as of reads: 182, 150 and 162 GB/s of four H200, and 182.6, 150.8 and 162.8 of reads
alone, but 0.82 of that of writes alone. Elsewhere reads / R + writes / W <= 1, which holds within 3 % on four Grace.
Measured, as shares of a socket's memory.rate (eight channels of DDR5-4800): eight H800 write 0.58 and read at least
0.72 (nvbandwidth, two sockets), four H200 write 0.47 to 0.52 and read 0.57 to 0.60 (virtual machines), two H100 or H200
both ways get 0.47 to 0.55 in all, four H200 0.58 to 0.64, eight H800 0.74. R = 0.68 and W = 0.54 give 0.60 both ways;
all of them lie within 0.75 and 1.3 times what the shares give.

While reads and writes fill it, a write gets `memory.write_weight` times what a read gets: 1.44 to 1.66 on six virtual
machines with Emerald Rapids (benchmarks/runs/2026-11-22-h200-4gpus to 2026-11-27-two-gpus); 1 where nobody measured it.

Where a socket has several NUMA nodes (`numa_nodes`), each has its part of the memory. Devices get more of one node of
an EPYC, which they reach within a quadrant of the I/O die, than of a whole socket. Four A100 read 0.947 and write 0.881
of a node of an EPYC 7763, and get 0.926 of it both ways, an RTX 5090 reads 0.94 to 0.97 of one of an EPYC 9754
(`memory.node_reads`, `memory.node_writes`; of an EPYC without them the median of those that have them). Copies through
host memory get less, as they write and read the same few chunks of a buffer in turn: at NPS4 two hosts with Rome read
0.85 and 0.81 and write 0.78 and 0.75 of a node. Of an EPYC whose own shares nobody measured these are the means.

Where other tenants use the socket too (`shared`), a part's shares are the medians of such machines: four virtual
machines with two of the four H200 of an Emerald Rapids socket get 0.77 to 0.97 of what one with all four gets. Without
such a machine the share is that of a whole socket, and its low end 0.77 of it.

Two sockets that nobody named are none of the CPUs that work alone (cpu.sockets_max), which have the slowest memory of
their generation; their range begins at the least share that was measured of the slowest of the others.

Host bridge: all DMA of one direction through it, other than between two of its own ports. Eight RTX PRO 6000 behind two
ports of one quadrant of a Threadripper PRO 7955WX read 73.1 GB/s and write 72.9, behind two quadrants 114 and 113: 0.58
of the raw rate of two x16 ports of the CPU's generation. Two cards at one of an EPYC 7F32 read 0.57 of it, at a die of
an EPYC 7351 0.64. So one of another EPYC or Threadripper PRO passes the median of these shares, whatever the cards'
own generation. Of other CPUs it limits nothing, and its interval begins at the least share of what its ports carry.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from lanewise.catalog import Part
from lanewise.perf import mesh, packets
from lanewise.perf.known_parts import is_of_amd, part_of, settled_link
from lanewise.perf.resources import Resource, cite, figure_resource
from lanewise.perf.uncertainty import product
from lanewise.routes.endpoints import memory_node
from lanewise.routes.model import Hop, Route
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import Kind, LinkKind, System

DMA_READS, DMA_WRITES = 0.68, 0.54  # shares of memory.rate
NODE_READS, NODE_WRITES = 0.83, 0.77  # of that of one NUMA node of an EPYC
DMA_RANGE = (0.75, 1.3)
UNNAMED_LEAST = 0.63  # of 0.68: 0.428, between reads (0.423) and mixes (0.448) of Emerald Rapids, the least measured
TENANT_LEAST = 0.77  # 0.391 of 0.51: a tenant's reads beside those of the whole socket
MEMORY_WRITES = "memory_writes"  # the kind of what writes alone get at most
MEMORY = ("memory", MEMORY_WRITES)
BRIDGE_LEAST = 0.57  # of what its ports carry: the least of three that were measured, 36 of 63 GB/s at an EPYC 7F32


def memory_demand(system: System, src: str, dst: str, node: int | None) -> Iterator[tuple[Resource, float]]:
    """A byte of the memory that devices read (`src` a CPU) or write (`dst` a CPU); nothing where it is unknown.

    `node` is the NUMA node that the route names (Route.memory_node); without one it is the device's own. Of another
    node than the device's own a byte of the way there, too.
    """
    for cpu, device, is_write in ((src, dst, False), (dst, src, True)):
        if _is_cpu(system, cpu):
            node_of_device, both = memory_node(system, cpu, device, node), system.number(cpu, _BOTH)
            (reads, key), (writes, _) = (_share(system, cpu, key, node_of_device) for key in (_READS, _WRITES))
            resource = _memory(system, cpu, node_of_device, _BOTH if both else key, both or reads)
            if resource is None:
                continue
            amount = reads / writes if is_write and not both else 1.0
            yield resource, amount
            if both and is_write:
                yield _writes(system, resource, writes / both), 1.0
            alone = replace(resource, capacity=resource.capacity / amount).within(resource.factors)
            direction = mesh.WRITES if is_write else mesh.READS
            crossed = mesh.over_the_mesh(system, cpu, node_of_device, device, alone, direction)
            if crossed is not None:
                yield crossed, 1.0


def _writes(system: System, memory: Resource, share: float) -> Resource:
    """What devices get of a memory that only write; `share` is that of what they get of it both ways."""
    key, part = _WRITES, part_of(system, memory.place[0])
    figure = part.figure(key) if part is not None else None
    is_known = part is not None and figure is not None and figure.known
    return replace(
        memory, kind=MEMORY_WRITES, name=f"{memory.name} (writes)", capacity=memory.capacity * share,
        basis=figure.basis if figure is not None and is_known else "typical",
        rests_on=cite(part, key, figure) if part and figure and is_known else f"{memory.rests_on}, times {share:.2g}",
    ).within(memory.factors)  # fmt: skip


def _unmeasured_bridge(system: System, cpu: str, bridge: str) -> Resource | None:
    """What the ports of a host bridge carry together, possibly less; None for one port or where a speed is unknown.

    Never less than its widest port: none that was measured slows a port alone.
    """
    at_bridge = [link for link in system.links_at(cpu) if link.bridge == bridge and link.a == cpu]
    ports = [settled_link(system, link) for link in at_bridge]
    rates = [packets.raw_rate(link.gen, link.lanes) for link in ports if link.gen and link.lanes]
    if len(ports) < 2 or len(rates) < len(ports):
        return None
    carried = packets.PACKET_SHARE * sum(rates)
    ports_alone = Resource(
        kind="host_bridge", place=(cpu,), name=f"host bridge of {cpu}", capacity=carried, basis="typical",
        rests_on="its ports; the three bridges that were measured carry 0.57 to 0.64 of the raw rate of two",
    ).within((max(BRIDGE_LEAST, max(rates) / sum(rates)), 1.0))  # fmt: skip
    typical = _typical_bridge(system, cpu)
    if typical is None or typical >= carried:
        return ports_alone
    return replace(ports_alone, capacity=typical, rests_on="the share of two ports that bridges of other EPYC carry")


def _typical_bridge(system: System, cpu: str) -> float | None:
    """B/s of a host bridge of an EPYC or Threadripper PRO, by the share of those measured; None of other CPUs."""
    part = system.part(cpu)
    both = _two_ports(part) if part is not None else None
    share = _bridge_share(system)
    return share * both if share and both else None


@memoized_by_figures
def _bridge_share(system: System) -> float | None:
    """The median share of two x16 ports that host bridges of AMD's measured CPUs carry; None without any."""
    shares = set()  # a set, as parts that extend another have its figure
    for part in system.catalog.parts.values():
        both = _two_ports(part)
        figure = part.figure("cpu.host_bridge_rate") if both else None
        if both and figure and isinstance(figure.value, float) and not figure.carried_from:
            shares.add(figure.value / both)
    return statistics.median(shares) if shares else None


def _two_ports(part: Part) -> float | None:
    """Raw B/s of the two x16 ports of a quadrant or die of an EPYC or Threadripper PRO; None of other parts."""
    if part.kind != "cpu" or not is_of_amd(part) or part.text("cpu.host_bridges") != "per-port":
        return None
    gen = part.number("pcie.gen")
    return 2 * packets.raw_rate(int(gen), 16) if gen else None


_READS, _WRITES, _BOTH = "memory.dma_reads", "memory.dma_writes", "memory.dma_both"
_OF_SOCKET, _OF_NODE = ({_READS: reads, _WRITES: writes} for reads, writes in (
    (DMA_READS, DMA_WRITES), (NODE_READS, NODE_WRITES)))  # fmt: skip
_DIRECT = {_READS: "memory.node_reads", _WRITES: "memory.node_writes"}  # not through a buffer of the driver


def _share(system: System, cpu: str, key: str, node: int | None) -> tuple[float, str]:
    """The share of its rate that devices get of a socket's memory, or of that of one of its NUMA nodes, and its key."""
    if not _is_node_of_amd(system, cpu, node):
        return system.number(cpu, key) or _OF_SOCKET[key], key
    direct = _direct(system, cpu, key)
    if direct is None and key == _WRITES and (reads := _direct(system, cpu, _READS)) is not None:
        direct = reads * NODE_WRITES / NODE_READS
    return (direct, _DIRECT[key]) if direct else (_through_buffers(system, cpu, key), key)


def _direct(system: System, cpu: str, key: str) -> float | None:
    """The share of a NUMA node of an EPYC that copies with a program's memory get; None if nobody measured it."""
    return system.number(cpu, _DIRECT[key]) or _typical_direct(system, _DIRECT[key])


def _is_node_of_amd(system: System, cpu: str, node: int | None) -> bool:
    part = system.part(cpu)
    return node is not None and len(system.numa_nodes(cpu)) > 1 and part is not None and is_of_amd(part)


def _through_buffers(system: System, cpu: str, key: str) -> float:
    """The share of a NUMA node of an EPYC that copies through host memory get."""
    return system.number(cpu, key) or _OF_NODE[key]


@memoized_by_figures
def _typical_direct(system: System, key: str) -> float | None:
    """The median share of a NUMA node over AMD's CPUs of which it was measured; None without any."""
    cpus = [part for part in system.catalog.parts.values() if part.kind == "cpu" and is_of_amd(part)]
    figures = [part.figure(key) for part in cpus]
    own = [each.value for each in figures if isinstance(each.value, float) and not each.carried_from]
    return statistics.median(own) if own else None


def through_buffers(
    system: System, copy: Route, amounts: Iterable[tuple[Resource, float]]
) -> Iterator[tuple[Resource, float]]:
    """The amounts of a stage of a copy through host memory: it takes more of a NUMA node than a copy to a program's."""
    cpu, device, key = (copy.src, copy.dst, _READS) if _is_cpu(system, copy.src) else (copy.dst, copy.src, _WRITES)
    node = memory_node(system, cpu, device, copy.memory_node)
    more = 1.0
    if _is_node_of_amd(system, cpu, node):
        more = _share(system, cpu, key, node)[0] / _through_buffers(system, cpu, key)
    yield from ((each, amount * more if each.kind == "memory" else amount) for each, amount in amounts)


def _is_cpu(system: System, name: str) -> bool:
    return system.device(name).kind is Kind.CPU


def _memory(system: System, cpu: str, node: int | None, key: str, share: float) -> Resource | None:
    """The memory of a socket, or of one of its NUMA nodes, as `share` of its rate, which figure `key` states."""
    nodes = system.numa_nodes(cpu)
    split = len(nodes) > 1 and node is not None
    part = part_of(system, cpu)
    whole = figure_resource(system, cpu, "memory.rate", "memory", share / (len(nodes) if split else 1))
    if part is None or whole is None:
        return None
    rests_on = f"{whole.rests_on}, of which devices {'get' if key == _BOTH else 'read'} {share:.2g}"
    stated = part.figure(key)
    rests_on += f": {cite(part, key, stated)}" if stated.known else " (typical of the hosts measured)"
    name = f"memory of {cpu}, NUMA node {node}" if split else whole.name
    place = (cpu, str(node)) if split else (cpu,)
    basis = stated.basis if stated.known else "typical"
    # How much memory there is may be unknown too; a data sheet's rate has no range of its own.
    factors = product(DMA_RANGE, whole.factors) if part.figure("memory.rate").basis == "typical" else DMA_RANGE
    if system.part(cpu) is None and part.number("cpu.sockets_max"):  # else its range begins with those that work alone
        factors = product(factors, (UNNAMED_LEAST, 1.0))
    if system.device(cpu).shared and not stated.measured_shared:
        factors = product(factors, (TENANT_LEAST, 1.0))
    memory = replace(whole, place=place, name=name, basis=basis, rests_on=rests_on).within(factors)
    if split or len(nodes) < 2:
        return memory
    # Between one node of unknown number and all of them.
    return replace(memory, low=memory.low / len(nodes), doubt=f"the NUMA node is unknown, of {len(nodes)} of {cpu}")


def bridge_demand(system: System, hops: Sequence[Hop]) -> Iterator[tuple[Resource, float]]:
    """A byte of the host bridges that a PCIe segment passes, other than one which it enters and leaves again."""
    ports = [hop for hop in hops if hop.link.bridge and hop.link.kind is LinkKind.PCIE]
    bridges = [(hop.link.a, hop.link.bridge) for hop in ports]
    for hop, (cpu, bridge) in zip(ports, bridges, strict=True):
        resource = figure_resource(system, cpu, "cpu.host_bridge_rate", "host_bridge")
        resource = resource or _unmeasured_bridge(system, cpu, bridge)
        if resource is not None and bridges.count((cpu, bridge)) == 1:
            way = "to its devices" if hop.down else "from its devices"
            name = f"host bridge {bridge} of {cpu} ({way})"
            yield replace(resource, place=(cpu, bridge, way), name=name), 1.0
