"""Disjoint rings over direct links: how many times all ranks can be joined in a circle, each link used once a way."""

from __future__ import annotations

from collections.abc import Mapping

MOST_STEPS = 20_000


def disjoint_rings(ranks: tuple[str, ...], widths: Mapping[tuple[str, str], int]) -> tuple[int, tuple[str, ...]]:
    """The number of directed rings that fit, and the order of the first.

    `widths` is the number of links from a rank to another. Where every rank has equally many links to each other one,
    all links are used (a complete directed graph falls apart into rings, Tillson 1980, but for four and six).
    """
    degrees = {rank: sum(width for (start, _), width in widths.items() if start == rank) for rank in ranks}
    complete = len(ranks) * (len(ranks) - 1)
    if len(widths) == complete and len(set(widths.values())) == 1:
        return min(degrees.values()), ranks
    free = dict(widths)
    first: tuple[str, ...] = ()
    count = 0
    while count < min(degrees.values()):
        ring = _ring(ranks, free)
        if ring is None:
            break
        first = first or ring
        count += 1
        for pair in zip(ring, (*ring[1:], ring[0]), strict=True):
            free[pair] -= 1
    return count, first or ranks


def _ring(ranks: tuple[str, ...], free: Mapping[tuple[str, str], int]) -> tuple[str, ...] | None:
    """A ring over links that are free, those with the most left first; None if there is none within MOST_STEPS."""
    path = [ranks[0]]
    choices = [_next(ranks, free, path)]
    for _ in range(MOST_STEPS):
        if not choices:
            return None
        if not choices[-1]:
            choices.pop()
            path.pop()
            continue
        path.append(choices[-1].pop())
        if len(path) == len(ranks):
            if free.get((path[-1], path[0]), 0) > 0:
                return tuple(path)
            path.pop()
            continue
        choices.append(_next(ranks, free, path))
    return None


def _next(ranks: tuple[str, ...], free: Mapping[tuple[str, str], int], path: list[str]) -> list[str]:
    """The ranks that may follow, the best last."""
    onward = [rank for rank in ranks if rank not in path and free.get((path[-1], rank), 0) > 0]
    return sorted(onward, key=lambda rank: free[path[-1], rank])
