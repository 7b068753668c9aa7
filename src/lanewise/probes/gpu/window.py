"""Rates of copies that ran together, from the times at which they ended; and copies for flows to end together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommonWindow:
    """Copies a second of each flow in the `seconds` from the release to the first flow's end, and the `makespan` in s.

    `complete`: every flow finished a copy within the window; else its rate holds for times when others had ended.
    `in_turns`: the flows ran one after the other; then the window is the makespan, in which all rates add up to what
    was moved.
    """

    rates: tuple[float, ...]
    seconds: float
    makespan: float
    complete: bool
    in_turns: bool = False


def common_window(end_times: Sequence[Sequence[float]]) -> CommonWindow:
    """Rates from the ends of each flow's copies, in s after the release, ascending.

    A copy under way when the window closes counts at the pace of those before it: its later part, with fewer flows
    beside it, says nothing about the window. So a flow's rate is its copies finished in the window over the last one's
    end. Flows of which one engine serves a whole queue after another's have no such window.
    """
    window, makespan = min(ends[-1] for ends in end_times), max(ends[-1] for ends in end_times)
    counts = [bisect_right(ends, window) for ends in end_times]
    if not all(counts) and any(map(_waited, end_times)):
        rates = tuple(len(ends) / makespan for ends in end_times)
        return CommonWindow(rates, makespan, makespan, complete=False, in_turns=True)
    rates = tuple(max(k, 1) / ends[max(k, 1) - 1] for k, ends in zip(counts, end_times, strict=True))
    return CommonWindow(rates, window, makespan, all(counts))


def _waited(ends: Sequence[float]) -> bool:
    """Whether a flow's first copy took more than twice as long as its later ones."""
    return len(ends) > 1 and ends[0] * (len(ends) - 1) > 2 * (ends[-1] - ends[0])


def balanced(rates: Sequence[float], seconds: float, least: int = 4, most: int = 10**9) -> list[int]:
    """How many copies each flow needs so that all end about together, after about `seconds`.

    The slowest does a whole number, `least` at least, which may take longer; none more than `most`, which may be over
    sooner.
    """
    time = max(least, round(seconds * min(rates))) / min(rates)
    time = min(time, most / max(rates))
    return [max(1, round(rate * time)) for rate in rates]
