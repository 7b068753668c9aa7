"""Flows between GPUs of two hosts over all network cards near them, as software for EFA spreads pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise.perf.flow import Flow
from lanewise.perf.predict import FlowRate, predict
from lanewise.routes.network import nearest
from lanewise.topology.model import Kind, System


def own_cards(system: System, gpu: str) -> tuple[str, ...]:
    """The cards nearest to a GPU; GPUs near to the same cards divide them, or take turns if there are fewer."""
    cards = nearest(system, gpu)
    mates = [name for name in system.of_kind(Kind.GPU, host=system.device(gpu).host) if nearest(system, name) == cards]
    place = mates.index(gpu)
    return cards[place :: len(mates)] if len(mates) < len(cards) else (cards[place % len(cards)],)


def over_all_cards(system: System, rates: Sequence[FlowRate]) -> list[FlowRate]:
    """The rates of flows that run together, of those between GPUs over as many cards as both ends have.

    The slowest of three stages counts: from the GPUs to their cards, between the cards, and from there to the GPUs.
    """
    stages: list[list[tuple[int, Flow]]] = [[], [], []]
    for place, rate in enumerate(rates):
        ends = rate.routes[0].src, rate.routes[0].dst
        if all(system.device(end).kind is Kind.GPU for end in ends):
            for first, second in zip(*(own_cards(system, end) for end in ends), strict=False):
                legs = Flow(ends[0], first), Flow(first, second), Flow(second, ends[1])
                for stage, leg in zip(stages, legs, strict=True):
                    stage.append((place, leg))
    spread = list(rates)
    places = {place for place, _ in stages[0]}
    slowest: dict[int, FlowRate] = {}
    for stage in filter(None, stages):
        legs_rates = predict(system, [leg for _, leg in stage]).rates
        for place in places:
            legs_of = [leg for (owner, _), leg in zip(stage, legs_rates, strict=True) if owner == place]
            whole = _together(rates[place], legs_of)
            slowest[place] = min(slowest.get(place, whole), whole, key=lambda each: each.rate)
    for place, whole in slowest.items():
        spread[place] = whole
    return spread


def _together(path: FlowRate, legs: Sequence[FlowRate]) -> FlowRate:
    """The path at the sum of its legs."""
    least = min(legs, key=lambda leg: leg.rate)
    limit = f"{len(legs)} network card{'s' * (len(legs) > 1)}: {least.limit}"
    return replace(
        path, rate=sum(leg.rate for leg in legs), low=sum(leg.low for leg in legs), high=sum(leg.high for leg in legs),
        limit=limit, basis=least.basis, rests_on=least.rests_on, doubt=least.doubt,
    )  # fmt: skip
