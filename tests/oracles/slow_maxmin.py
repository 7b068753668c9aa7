"""Weighted max-min by textbook progressive filling, flow by flow: slow, and written apart from the C++.

Source: Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2. Any number type will do; with
fractions.Fraction every result is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OWN_CAP = "own cap"


@dataclass(frozen=True)
class Flow:
    """One flow: what it takes of each resource for each unit of rate; `cap` None means none."""

    uses: Mapping[int, Any]
    weight: Any = 1
    cap: Any = None


@dataclass(frozen=True)
class Share:
    """One flow's rate and everything that held it when it stopped rising (resource indices, OWN_CAP)."""

    rate: Any
    limits: frozenset[int | str]


def max_min(capacities: Sequence[Any], flows: Sequence[Flow]) -> list[Share]:
    """The weighted max-min rate of each flow; ValueError for a flow that nothing bounds."""
    shares: list[Share | None] = [None] * len(flows)
    while None in shares:
        rising = [i for i, share in enumerate(shares) if share is None]
        fills = _levels_at_which_resources_fill(capacities, flows, shares)
        caps = {i: flows[i].cap / flows[i].weight for i in rising if flows[i].cap is not None}
        if not fills and not caps:
            raise ValueError("a flow is bounded by nothing")
        level = min([*fills.values(), *caps.values()])
        full = {r for r, at in fills.items() if at == level}
        for i in rising:
            limits = {r for r, a in flows[i].uses.items() if a > 0 and r in full}
            at_cap = caps.get(i) == level
            if limits or at_cap:
                rate = flows[i].cap if at_cap else flows[i].weight * level
                shares[i] = Share(rate, frozenset(limits | ({OWN_CAP} if at_cap else set())))
    return [share for share in shares if share is not None]


def _levels_at_which_resources_fill(
    capacities: Sequence[Any], flows: Sequence[Flow], shares: Sequence[Share | None]
) -> dict[int, Any]:
    """For each resource that a rising flow uses: the common rate / weight of those flows when it is full."""
    fills = {}
    for r, capacity in enumerate(capacities):
        taken = sum(flow.uses.get(r, 0) * s.rate for flow, s in zip(flows, shares, strict=True) if s)
        pull = sum(flow.uses.get(r, 0) * flow.weight for flow, s in zip(flows, shares, strict=True) if not s)
        if pull > 0:
            fills[r] = (capacity - taken) / pull
    return fills
