"""The class of a route, in the words of nvidia-smi topo -m and NCCL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.topology.model import Kind, LinkKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.routes.model import Hop
    from lanewise.topology.model import System

CLASSES = ("NV", "PIX", "PXB", "PHB", "NODE", "SYS", "NET")


def classify(system: System, hops: Sequence[Hop]) -> str:
    """NV#, NET, SYS, NODE, PHB, PXB or PIX by what the hops cross; LOC for no hop at all.

    PIX passes at most one PCIe switch, PXB several, PHB one host bridge, NODE two host bridges of one NUMA node, SYS
    the link between NUMA nodes.
    """
    if not hops:
        return "LOC"
    kinds = {hop.link.kind for hop in hops}
    if LinkKind.NVLINK in kinds:
        return f"NV{min(hop.link.count for hop in hops)}"
    if LinkKind.NETWORK in kinds:
        return "NET"
    if LinkKind.SOCKET in kinds:
        return "SYS"
    bridges = _bridges(system, hops)
    if bridges:
        return _through_cpu(system, bridges)
    switches = [hop.end for hop in hops[:-1] if system.device(hop.end).kind is Kind.SWITCH]
    return "PIX" if len(switches) <= 1 else "PXB"


def _bridges(system: System, hops: Sequence[Hop]) -> list[tuple[str, str, str]]:
    """(CPU, host bridge, root port) of every hop that ends or starts at a CPU."""
    found = []
    for hop in hops:
        for end in (hop.start, hop.end):
            if system.device(end).kind is Kind.CPU:
                found.append((end, hop.link.bridge, hop.link.port))
    return found


def _through_cpu(system: System, bridges: list[tuple[str, str, str]]) -> str:
    nodes = {(system.device(cpu).host, system.device(cpu).numa) for cpu, _, _ in bridges}
    if len(nodes) > 1:
        return "SYS"
    return "PHB" if len({(cpu, bridge) for cpu, bridge, _ in bridges}) == 1 else "NODE"
