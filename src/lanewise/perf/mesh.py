"""What devices get of the memory of another NUMA node of their own socket, on Intel's CPUs.

Sub-NUMA clustering cuts a socket into nodes, each with its own memory controllers and its own part of the cache (Intel
Xeon Processor Scalable Family Technical Overview); a device at one node reaches the others over the socket's mesh. On
both sockets of two nodes with Sapphire Rapids and four nodes a socket, an H100 reads 0.86 and 0.75 (0.83 and 0.78 on
the other socket) of what its own node gives from the two nodes next to it, and 0.63 (0.61) from the diagonal one: each
border that it crosses costs its share, 0.80 of both. Of writes the shares are 1.0, 0.72 and 0.86 (1.0, 0.68, 0.89),
0.93 a border, and its source names no cause. The I/O die of an EPYC costs next to nothing: four hosts with two or four
nodes a socket read as much of every node, and write 1.0, 0.99, 0.89 and 0.88 of it, so there it limits nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from lanewise.perf.known_parts import maker
from lanewise.perf.resources import Resource, cite
from lanewise.perf.uncertainty import Range, product
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import System

READS, WRITES = "memory.step_reads", "memory.step_writes"
STEP_RANGE: Range = (0.73, 1.08)  # of the shares above: each border's of its figure
# B/s that a GPU writes at least across a border there, of nodes with two channels each. Whether nodes with more of them
# would give more is not known, so it is the low end of all.
LEAST = 28.9e9
# Where no Intel CPU was measured: the mean of what the four EPYC read and write, and the least of them.
_UNMEASURED, _UNMEASURED_RANGE = 0.97, (0.88 / 0.97, 1.0 / 0.97)


def over_the_mesh(
    system: System, cpu: str, node: int | None, device: str, memory: Resource, key: str
) -> Resource | None:
    """The way over the mesh of `cpu` between its NUMA node `node` and a device at another; None if it limits nothing.

    `memory` is what devices get of that node, and `key` READS or WRITES.
    """
    nodes, near = system.numa_nodes(cpu), system.numa_node(device)
    part = system.part(cpu)
    if part is None or maker(part) != "Intel" or len(nodes) < 2 or node not in nodes or near in (node, None):
        return None
    borders = _borders(nodes, node, near)
    figure = part.figure(key)
    share = figure.value if isinstance(figure.value, float) else _typical_step(system, key)
    step, ends = (share, STEP_RANGE) if share else (_UNMEASURED, _UNMEASURED_RANGE)
    capacity = memory.capacity * step**borders
    what = cite(part, key, figure) if figure.known else f"{step:.2g} of it each border (typical of the hosts measured)"
    low, high = product(memory.factors, (ends[0] ** borders, ends[1] ** borders))
    return Resource(
        kind="mesh", place=(cpu, str(near), str(node), key), name=f"mesh of {cpu}, NUMA nodes {near} and {node}",
        capacity=capacity, basis="typical", rests_on=f"{memory.rests_on}; {what}",
    ).within((min(low, LEAST / capacity), high))  # fmt: skip


def _borders(nodes: Sequence[int], node: int, near: int) -> int:
    """The borders between two nodes of a socket: four lie two by two, other numbers in a row.

    Another socket is no nearer than the farthest node of this one.
    """
    one = nodes.index(node)
    others = [nodes.index(near)] if near in nodes else range(len(nodes))
    return max((one ^ other).bit_count() if len(nodes) == 4 else abs(one - other) for other in others)


@memoized_by_figures
def _typical_step(system: System, key: str) -> float | None:
    """The median share of Intel's CPUs of which it was measured; None without any."""
    figures = [part.figure(key) for part in system.catalog.parts.values() if part.kind == "cpu"]
    own = [each.value for each in figures if isinstance(each.value, float) and not each.carried_from]
    return statistics.median(own) if own else None
