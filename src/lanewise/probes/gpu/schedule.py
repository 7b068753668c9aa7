"""How many copies flows need to end together, and the rate of each in the window in which all of them ran."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lanewise._native import CUDA_MOST_COPIES, CudaFlow, CudaRun, ProbeFailure

SECONDS = 0.025  # of one sample: long against the release (microseconds), short enough for whole matrices
INTERVAL = 0.004  # between two timestamps: an event and a launch take some 5 us, which copies alone would not
DUPLEX_INTERVAL = 0.025  # of a kernel for both directions, whose last blocks run some 50 us alone
PILOT = 2  # copies of each flow when nothing is known of its rate
LEAST = 4  # copies of the slowest flow in a sample
_HELD = "held too long"


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


@dataclass(frozen=True, slots=True)
class CopySchedule:
    """For each flow the number of timestamps in a sample, and the number of copies before each timestamp."""

    timestamps: list[int]
    copies_each: list[int]

    @property
    def copies(self) -> list[int]:
        """Of each flow in a sample."""
        return [number * copies for number, copies in zip(self.timestamps, self.copies_each, strict=True)]

    def run(self, run: CudaRun) -> CommonWindow:
        """One run of these copies."""
        window = common_window([timing.timestamps for timing in run.run()])
        rates = tuple(rate * copies for rate, copies in zip(window.rates, self.copies_each, strict=True))
        return replace(window, rates=rates)


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


def tuned_schedule(run: CudaRun, flows: Sequence[CudaFlow], counts: Sequence[int]) -> CopySchedule:
    """Copies of each flow so that all end about together: a short run tells rates, one like a sample warms up.

    `counts` are the copies that a flow with a size is made of, 0 for a flow that goes on as long as the others. Where a
    sample cannot be queued before the hold times out, shorter ones are tried; ProbeFailure if none can.
    """
    pilot = CopySchedule([flow.copies for flow in flows], [1] * len(flows))
    rates, halvings = pilot.run(run).rates, 0
    while True:
        schedule = _schedule(flows, counts, rates, halvings)
        run.resize(schedule.timestamps, schedule.copies_each)
        try:
            rates = schedule.run(run).rates
        except ProbeFailure as error:
            halvings += 1
            if _HELD not in error.args[0] or max(schedule.copies) <= PILOT or all(counts):
                raise
        else:
            break
    if len(flows) > 1:
        schedule = _schedule(flows, counts, rates, halvings)
        run.resize(schedule.timestamps, schedule.copies_each)
    return schedule


def _schedule(
    flows: Sequence[CudaFlow], counts: Sequence[int], rates: Sequence[float], halvings: int
) -> CopySchedule:  # fmt: skip
    """Copies by rate, in copies a second; each halving halves the time of a sample."""
    sized = [count / rate for count, rate in zip(counts, rates, strict=True) if count]
    seconds = max(sized, default=SECONDS / 2**halvings)
    least, most = max(1, LEAST >> halvings), max(1, CUDA_MOST_COPIES >> halvings)
    copies_each = []
    for flow, count, rate in zip(flows, counts, rates, strict=True):
        interval = (DUPLEX_INTERVAL if flow.duplex else INTERVAL) / 2**halvings
        copies_each.append(1 if count else max(1, min(round(rate * interval), most // LEAST)))
    per_second = [rate / copies for rate, copies in zip(rates, copies_each, strict=True)]
    numbers = balanced(per_second, seconds, least, most // max(copies_each))
    return CopySchedule([count or number for count, number in zip(counts, numbers, strict=True)], copies_each)
