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
    system: System,
    flows: Sequence[Flow],
    routes: Sequence[Route],
    alone: Sequence[Amounts],
    together: Sequence[Amounts],
) -> list[Amounts]:
    """What a byte of each flow takes `together` with others: of interleaved flows of one GPU and direction the mean.

    So none of these runs ahead. Of a GPU that both writes and reads so, reads have what the writes leave them, by what
    a byte of each takes `alone`.
    """
    result = list(together)
    copies = _interleaved_copies(system, flows, routes)
    for numbers in copies.values():
        mean = summed((each, amount / len(numbers)) for number in numbers for each, amount in together[number].items())
        for number in numbers:
            result[number] = mean
    for gpu in {gpu for gpu, _ in copies}:
        writes, reads = copies.get((gpu, True), []), copies.get((gpu, False), [])
        weight = _write_weight(system, {routes[number].dst for number in writes})
        if weight is not None and writes and reads:
            rates = _reads_behind_writes(_engine(alone[writes[0]], "d2h"), _engine(together[writes[0]], "d2h"),
                                         _engine(alone[reads[0]], "h2d"), weight)  # fmt: skip
            for number in (*writes, *reads):
                result[number] = {_at_rate(each, rates): amount for each, amount in result[number].items()}
    return result


def _interleaved_copies(
    system: System, flows: Sequence[Flow], routes: Sequence[Route]
) -> Mapping[tuple[str, bool], list[int]]:
    """The numbers of the interleaved flows by GPU, and whether it writes memory."""
    copies: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for number, (flow, route) in enumerate(zip(flows, routes, strict=True)):
        if flow.interleaved:
            to_memory = system.device(route.dst).kind is Kind.CPU
            copies[route.src if to_memory else route.dst, to_memory].append(number)
    return copies


def _write_weight(system: System, sockets: set[str]) -> float | None:
    """What a device that writes far memory gets over one that reads it; None for one socket, or where unmeasured."""
    weights = [number_of(system, cpu, "intersocket.write_weight") for cpu in sockets]
    return max((each for each in weights if each is not None), default=None) if len(sockets) > 1 else None


def _reads_behind_writes(writes: float, writes_with_reads: float, reads: float, weight: float) -> dict[str, float]:
    """B/s that a GPU writes and reads while its writes wait for one socket after the other.

    Read requests do not pass posted writes (PCI Express Base Specification, transaction ordering), so the reads get
    what a full far memory leaves them: R = W / weight. They displace as much for each byte as at full rate, where
    `writes_with_reads` is left of `writes`: W = writes - (writes - writes_with_reads) / reads * R.
    """
    rate = writes / (1 + (writes - writes_with_reads) / (reads * weight))
    return {"d2h": rate, "h2d": rate / weight}


def _engine(amounts: Amounts, kind: str) -> float:
    return next(each.capacity / amount for each, amount in amounts.items() if each.kind == kind)


def _at_rate(engine: Resource, rates: Mapping[str, float]) -> Resource:
    rate = rates.get(engine.kind)
    return engine.with_capacity(rate).within(engine.factors) if rate is not None else engine


def _slower(system: System, engine: Resource, sockets: set[str], in_turn: bool) -> Resource:
    """The engine with the share of its rate that alternating pages get, `in_turn` if they do, else as its low end."""
    shares = [number_of(system, cpu, "intersocket.spread_writes") for cpu in sorted(sockets)]
    share = min((each for each in shares if each is not None), default=1.0)
    if share == 1:
        return engine
    if in_turn:
        return engine.with_capacity(engine.capacity * share).within(engine.factors)
    return replace(engine, low=engine.low * share, doubt=engine.doubt or DOUBT.format(share))
