"""Writes of one GPU to the memory of both sockets at once: its interval begins lower.

Posted writes of a device stay in order (PCI Express Base Specification, transaction ordering), so one to the other
socket may wait for the one before. Where pages alternate between the sockets, as numactl --interleave spreads them, an
A100 at two EPYC writes 16.4 and 18.1 GB/s where it writes 23.2 and 26.2 to its own; it reads such memory as fast as its
own, and pages that alternate between the NUMA nodes of one socket cost nothing (EPYC 7763). Copies of their own, one to
each socket, do not alternate: what is predicted is those, and the low end is pages in turn (intersocket.spread_writes).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from lanewise.perf.known_parts import number_of
from lanewise.perf.resources import Resource
from lanewise.routes.model import Route
from lanewise.topology.model import Kind, System

Amounts: TypeAlias = Mapping[Resource, float]
DOUBT = "pages that alternate between the sockets, as numactl --interleave spreads them, get {:.2f} of a GPU's writes"


def where_pages_alternate(
    system: System, routes: Sequence[Route], amounts: Sequence[Amounts]
) -> list[dict[Resource, float]]:
    """What a byte of each flow takes, with a lower end of the engines that write to the memory of several sockets."""
    sockets: dict[str, set[str]] = defaultdict(set)
    for route in routes:
        if system.device(route.dst).kind is Kind.CPU:
            sockets[route.src].add(route.dst)
    return [
        {_lowered(system, each, sockets[route.src]) if each.kind == "d2h" else each: amount
         for each, amount in taken.items()}
        if len(sockets.get(route.src, ())) > 1 and not route.stages else dict(taken)
        for route, taken in zip(routes, amounts, strict=True)
    ]  # fmt: skip


def _lowered(system: System, engine: Resource, sockets: set[str]) -> Resource:
    shares = [number_of(system, cpu, "intersocket.spread_writes") for cpu in sorted(sockets)]
    share = min((each for each in shares if each is not None), default=1.0)
    return engine if share == 1 else replace(engine, low=engine.low * share, doubt=engine.doubt or DOUBT.format(share))
