"""Finite transfers in a plain event loop: every event computes all rates anew and advances every transfer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oracles.slow_maxmin import Flow, max_min


def finishes(capacities: Sequence[Any], transfers: Sequence[tuple[Flow, Any, Any]]) -> list[Any]:
    """When each (flow, size, start) ends; exact if all numbers are fractions.Fraction."""
    left = [size for _, size, _ in transfers]
    done: list[Any] = [start if size == 0 else None for _, size, start in transfers]
    now = min((start for _, _, start in transfers), default=0)
    while None in done:
        open_ = [i for i, end in enumerate(done) if end is None]
        active = [i for i in open_ if transfers[i][2] <= now]
        rates = dict(zip(active, (s.rate for s in max_min(capacities, [transfers[i][0] for i in active])), strict=True))
        ends = {i: now + left[i] / rates[i] for i in active}
        starts = [transfers[i][2] for i in open_ if transfers[i][2] > now]
        then = min([*ends.values(), *starts])
        for i in active:
            left[i] -= rates[i] * (then - now)
            if ends[i] == then:
                done[i] = then
        now = then
    return done
