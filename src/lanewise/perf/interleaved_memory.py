"""Copies of one GPU whose pages alternate between NUMA nodes, as numactl --interleave spreads them.

Such a copy goes at one pace, so the slower pages hold the others (`Flow.interleaved`: one flow to or from each node).
Posted writes of a device stay in order (PCI Express Base Specification, transaction ordering), so one to the other
socket may wait for the one before: with pages at both sockets in turn an A100 at two EPYC writes 16.4 and 18.1 GB/s
where it writes 23.2 and 26.2 to its own (intersocket.spread_writes); it reads such memory as fast as its own, and pages
that alternate between the NUMA nodes of one socket cost nothing (EPYC 7763). Flows to both sockets that do not say
whether their pages alternate may be copies of their own: for them that share is the low end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from lanewise.perf.flow import Flow
from lanewise.perf.known_parts import number_of
from lanewise.perf.resources import Resource, summed
from lanewise.routes.model import Route
from lanewise.topology.model import Kind, System

Amounts: TypeAlias = Mapping[Resource, float]
DOUBT = "pages that alternate between the sockets, as numactl --interleave spreads them, get {:.2f} of a GPU's writes"


def where_pages_alternate(
    system: System, flows: Sequence[Flow], routes: Sequence[Route], amounts: Sequence[Amounts]
) -> list[dict[Resource, float]]:
    """What a byte of each flow takes, with slower engines where they write to the memory of several sockets."""
    sockets: dict[str, set[str]] = defaultdict(set)
    for route in routes:
        if system.device(route.dst).kind is Kind.CPU:
            sockets[route.src].add(route.dst)
    return [
        {_slower(system, each, sockets[route.src], flow.interleaved) if each.kind == "d2h" else each: amount
         for each, amount in taken.items()}
        if len(sockets.get(route.src, ())) > 1 and not route.stages else dict(taken)
        for flow, route, taken in zip(flows, routes, amounts, strict=True)
    ]  # fmt: skip


def at_one_pace(
    system: System, flows: Sequence[Flow], routes: Sequence[Route], amounts: Sequence[Amounts]
) -> list[Amounts]:
    """The amounts, those of interleaved flows of one GPU and direction as their mean, so that none runs ahead."""
    copies: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for number, (flow, route) in enumerate(zip(flows, routes, strict=True)):
        if flow.interleaved:
            to_memory = system.device(route.dst).kind is Kind.CPU
            copies[route.src if to_memory else route.dst, to_memory].append(number)
    result = list(amounts)
    for numbers in copies.values():
        mean = summed((each, amount / len(numbers)) for number in numbers for each, amount in amounts[number].items())
        for number in numbers:
            result[number] = mean
    return result


def _slower(system: System, engine: Resource, sockets: set[str], in_turn: bool) -> Resource:
    """The engine with the share of its rate that alternating pages get, `in_turn` if they do, else as its low end."""
    shares = [number_of(system, cpu, "intersocket.spread_writes") for cpu in sorted(sockets)]
    share = min((each for each in shares if each is not None), default=1.0)
    if share == 1:
        return engine
    if in_turn:
        return engine.with_capacity(engine.capacity * share).within(engine.factors)
    return replace(engine, low=engine.low * share, doubt=engine.doubt or DOUBT.format(share))
