"""What a GPU answers reads of drives and network cards with: what it sends to a host.

GPUs that read each other get as much: 26.34 GB/s of an RTX A6000 (Gen4) and 13.17 of a P100 (Gen3), which send 26.3 and
13.2, and 55.3 of an RTX PRO 6000. So drives read an L40S at 25.8 GB/s where its link carries 28.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lanewise.perf.known_parts import link_with_speed
from lanewise.perf.resources import Resource, engine_demand
from lanewise.topology.model import Link, LinkKind, System


def reads_of_gpu(system: System, gpu: str, link: Link) -> Iterator[tuple[Resource, float]]:
    """A byte that a drive or card reads of a GPU over the GPU's own `link`; it takes no engine from copies."""
    if link.kind is not LinkKind.PCIE:
        return
    demand = engine_demand(system, gpu, "d2h", link_with_speed(system, link))
    if demand is not None:
        sends, amount = demand
        yield replace(sends, kind="completions", name=f"reads of {gpu} by drives and cards"), amount
