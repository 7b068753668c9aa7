"""Finite transfers in a plain event loop: every event computes all rates anew and advances every transfer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oracles.slow_maxmin import Flow, max_min


def finishes(
    capacities: Sequence[Any],
    transfers: Sequence[tuple[Flow, Any, Any]],
    after: Sequence[Sequence[int]] = (),
    queues: Sequence[int] = (),
) -> list[Any]:
    """When each (flow, size, start) ends; exact if all numbers are fractions.Fraction.

    Transfer i could begin its start after all of `after[i]` have ended; of one number in `queues` (not -1) one runs at
    a time, those that could begin earlier first.
    """
    everybody = range(len(transfers))
    left = [size for _, size, _ in transfers]
    done: list[Any] = [None] * len(transfers)
    now: Any = 0
    while None in done:
        ready: dict[int, Any] = {}
        for i in everybody:
            awaited = [done[j] for j in after[i]] if after else []
            if done[i] is None and None not in awaited:
                ready[i] = max(awaited, default=0) + transfers[i][2]
        active = [i for i in ready if ready[i] <= now]
        if queues:
            first = {queues[i]: i for i in sorted(active, key=lambda i: (ready[i], i), reverse=True)}
            active = [i for i in active if queues[i] == -1 or first[queues[i]] == i]
        rates = dict(zip(active, (s.rate for s in max_min(capacities, [transfers[i][0] for i in active])), strict=True))
        ends = {i: now + (left[i] / rates[i] if left[i] else 0) for i in active}
        then = min([*ends.values(), *(time for time in ready.values() if time > now)])
        for i in active:
            left[i] -= rates[i] * (then - now)
            if ends[i] == then:
                done[i] = then
        now = then
    return done
