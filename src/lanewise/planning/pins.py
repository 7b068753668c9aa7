"""Pin network cards: which card each GPU should use, the nearest class first, then so that no card is overloaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lanewise.errors import InputError, LanewiseError, Unreachable
from lanewise.perf.flow import Flow
from lanewise.perf.flow_demand import flow_demand
from lanewise.planning.question import ceiling, parts_of
from lanewise.planning.score import GB, Allocation, Score, by_model
from lanewise.planning.search import Judge, PlacementSearch, SearchLimits
from lanewise.planning.solver import FlowGroup, FlowVariant, Item, ItemOption, Pick, Problem
from lanewise.planning.work import Work
from lanewise.routes.classify import rank, topo_class
from lanewise.routes.endpoints import memory_node
from lanewise.routes.paths import cpu_above
from lanewise.topology.model import Kind, System


@dataclass(frozen=True, slots=True)
class Pin:
    """A GPU and its card, the class between them, and what it sends and receives (B/s) while all others do.

    `index` is the GPU's number within its host, `numa` the NUMA node of its socket.
    """

    gpu: str
    host: str
    card: str
    route_class: str
    index: int
    numa: int | None
    sends: Allocation
    receives: Allocation


@dataclass(frozen=True, slots=True)
class Pinning:
    """A card for each GPU; `further` is the best that cards of a further class would give, if that is more."""

    system: System
    pins: tuple[Pin, ...]
    score: Score
    doubt: str
    further: Score | None
    interrupted: bool = False
    error: ClassVar[None] = None


def pin(system: System, limits: SearchLimits = SearchLimits()) -> Pinning:  # noqa: B008
    """The card each bound GPU should use when all send and receive at once; InputError if a host has none."""
    cards = {gpu: _cards(system, gpu) for gpu in system.of_kind(Kind.GPU) if system.device(gpu).host}
    if not cards:
        raise InputError(f"no GPU of {system.name} is bound to a host", hint="attach some: lanewise system attach")

    def judge(pick: Pick) -> Score:
        chosen = [(gpu, *options[i]) for (gpu, options), i in zip(cards.items(), pick, strict=True)]
        flows = tuple(flow for gpu, card, _ in chosen for flow in _both_ways(gpu, card))
        result = by_model(system, Work(flows, by="slowest"))
        near = -sum(distance for _, _, distance in chosen)
        return Score((float(near), *result.goals), result.lines, result.limit, result.limited, result.busiest)

    search = PlacementSearch(_problem(system, cards, ("near", "worst", "total")), judge, limits)
    result = search.best()
    if result.pick is None and result.interrupted:
        raise KeyboardInterrupt
    if result.pick is None:
        raise search.error or Unreachable("no GPU reaches a network card", hint="describe the cards' links")
    score = search.scores[result.pick]
    assert score is not None
    further = None if result.interrupted else _further(system, cards, judge, limits, score)
    pins = _pins(system, {gpu: cards[gpu][i][0] for gpu, i in zip(cards, result.pick, strict=True)}, score)
    return Pinning(system, tuple(pins), score, result.doubt, further, result.interrupted)


def nearest_cards(system: System, gpus: Sequence[str]) -> dict[str, str]:
    """For each GPU a card of the nearest class, GPUs with the same choice taking turns; InputError as `pin`."""
    turns: dict[tuple[str, ...], int] = {}
    cards = {}
    for gpu in gpus:
        ranked = _cards(system, gpu)
        near = tuple(card for card, distance in ranked if distance == ranked[0][1])
        cards[gpu] = near[turns.get(near, 0) % len(near)]
        turns[near] = turns.get(near, 0) + 1
    return cards


def lines(pinning: Pinning) -> list[str]:
    """For each GPU the environment and the affinity of the process that drives it."""
    texts = []
    for pin in pinning.pins:
        numa = "" if pin.numa is None else f" numactl --cpunodebind={pin.numa} --membind={pin.numa}"
        # The second '=' asks NCCL for this very card, not for all whose names begin so.
        texts.append(f"CUDA_VISIBLE_DEVICES={pin.index} NCCL_IB_HCA=={pin.card} UCX_NET_DEVICES={pin.card}:1{numa}")
    return texts


def _cards(system: System, gpu: str) -> list[tuple[str, int]]:
    """The cards of a GPU's host with the rank of their class, nearest first."""
    host = system.device(gpu).host
    cards = [(card, rank(topo_class(system, gpu, card))) for card in system.of_kind(Kind.NIC, host=host)]
    if not cards:
        raise InputError(f"{host} of {system.name} has GPUs but no network card", hint="describe one: {nic: ...}")
    return sorted(cards, key=lambda pair: pair[1])


def _problem(system: System, cards: dict[str, list[tuple[str, int]]], goals: tuple[str, ...]) -> Problem:
    items, groups, variants = [], [], []
    turns = nearest_cards(system, list(cards))
    for number, (gpu, options) in enumerate(cards.items()):
        # Of pinnings that are equally good, the one in which GPUs take turns is what people expect.
        items.append(
            Item(gpu, tuple(ItemOption(card, int(card != turns[gpu]), 0, distance) for card, distance in options))
        )
        groups += [FlowGroup(f"{gpu} sends", GB, bounded=False), FlowGroup(f"{gpu} receives", GB, bounded=False)]
        for index, (card, _) in enumerate(options):
            for direction, flow in enumerate(_both_ways(gpu, card)):
                try:
                    demand = flow_demand(system, flow)
                except LanewiseError:
                    continue
                group = 2 * number + direction
                variants.append(FlowVariant(group, ((number, index),), parts_of(demand), ceiling(demand)))
    return Problem(tuple(items), tuple(groups), tuple(variants), goals)


def _further(
    system: System, cards: dict[str, list[tuple[str, int]]], judge: Judge, limits: SearchLimits, near: Score
) -> Score | None:
    """The score if load came before class, None if that is no faster."""

    def by_load(pick: Pick) -> Score:
        score = judge(pick)
        return Score((*score.goals[1:], score.goals[0]), score.lines, score.limit, score.limited, score.busiest)

    search = PlacementSearch(_problem(system, cards, ("worst", "total", "near")), by_load, limits)
    best = search.best()
    score = search.scores[best.pick] if best.pick is not None else None
    if score is None or score.slowest <= near.slowest * (1 + limits.tolerance):
        return None
    return score


def _both_ways(gpu: str, card: str) -> tuple[Flow, Flow]:
    return Flow(gpu, card), Flow(card, gpu)


def _pins(system: System, chosen: dict[str, str], score: Score) -> Iterator[Pin]:
    for (gpu, card), sends, receives in zip(chosen.items(), score.lines[::2], score.lines[1::2], strict=True):
        host = system.device(gpu).host or ""
        index = system.of_kind(Kind.GPU, host=host).index(gpu)
        numa = memory_node(system, cpu_above(system, gpu), gpu)
        yield Pin(gpu, host, card, topo_class(system, gpu, card), index, numa, sends, receives)
