"""How many copies flows need to end together, and the rate of each in the window in which all of them ran."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from lanewise._native import CUDA_MOST_COPIES, CudaFlow, PreparedCopies, ProbeFailure

SECONDS = 0.025  # of one sample: long against the release (microseconds), short enough for whole matrices
INTERVAL = 0.004  # between two timestamps: an event and a launch take some 5 us, which copies alone would not
DUPLEX_INTERVAL = 0.025  # of a kernel for both directions, whose last blocks run some 50 us alone
PILOT_COPIES = 2  # of each flow, while nothing is known of its rate
LEAST = 4  # copies of the slowest flow in a sample
_HELD = "held too long"


@dataclass(frozen=True, slots=True)
class CommonWindow:
    """Each flow's rate from the release to the first flow's end, and the `makespan` (s) to the last one's.

    `every_flow_copied`: each finished a copy within the window; else its rate holds for times when others had ended.
    `in_turns`: the flows ran one after the other; then the window is the makespan, in which all rates add up to what
    was moved.
    """

    copies_per_second: tuple[float, ...]
    makespan: float
    every_flow_copied: bool
    in_turns: bool = False


@dataclass(frozen=True, slots=True)
class CopySchedule:
    """For each flow the number of timestamps in a sample, and the number of copies before each timestamp."""

    timestamp_counts: list[int]
    copies_per_timestamp: list[int]

    @property
    def copies(self) -> list[int]:
        """Of each flow in a sample."""
        return [count * copies for count, copies in zip(self.timestamp_counts, self.copies_per_timestamp, strict=True)]

    def run_once(self, prepared: PreparedCopies) -> CommonWindow:
        """The rates in one run of these copies."""
        return common_window([timing.timestamps for timing in prepared.run()], self.copies_per_timestamp)


def common_window(end_times: Sequence[Sequence[float]], copies_per_timestamp: Sequence[int]) -> CommonWindow:
    """Rates from each flow's timestamps: the ends of its copies, or of several, in s after the release, ascending.

    A copy under way when the window closes counts at the pace of those before it: its later part, with fewer concurrent
    flows, says nothing about the window. So a flow's rate is its copies finished in the window over the last one's
    end. Flows of which one engine serves a whole queue after another's have no such window.
    """
    window, makespan = min(ends[-1] for ends in end_times), max(ends[-1] for ends in end_times)
    counts = [bisect_right(ends, window) for ends in end_times]
    in_turns = not all(counts) and any(map(_waited, end_times))
    rates = tuple(
        copies * (len(ends) / makespan if in_turns else max(count, 1) / ends[max(count, 1) - 1])
        for copies, count, ends in zip(copies_per_timestamp, counts, end_times, strict=True)
    )
    return CommonWindow(rates, makespan, every_flow_copied=all(counts), in_turns=in_turns)


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


def tuned_schedule(
    prepared: PreparedCopies, flows: Sequence[CudaFlow], fixed_copies: Sequence[int | None]
) -> CopySchedule:  # fmt: skip
    """Copies of each flow so that all end about together: a short run tells rates, one like a sample warms up.

    `fixed_copies` are what a flow with a size is made of, None for a flow that goes on as long as the others. Where a
    sample cannot be queued before the hold times out, shorter ones are tried; ProbeFailure if none can.
    """
    pilot = CopySchedule([flow.copies for flow in flows], [1] * len(flows))
    rates, halvings = pilot.run_once(prepared).copies_per_second, 0
    while True:
        schedule = _schedule(flows, fixed_copies, rates, halvings)
        prepared.resize(schedule.timestamp_counts, schedule.copies_per_timestamp)
        try:
            rates = schedule.run_once(prepared).copies_per_second
        except ProbeFailure as error:
            halvings += 1
            if _HELD not in error.args[0] or max(schedule.copies) <= PILOT_COPIES or all(fixed_copies):
                raise
        else:
            break
    if len(flows) > 1:
        schedule = _schedule(flows, fixed_copies, rates, halvings)
        prepared.resize(schedule.timestamp_counts, schedule.copies_per_timestamp)
    return schedule


def _schedule(
    flows: Sequence[CudaFlow], fixed_copies: Sequence[int | None], rates: Sequence[float], halvings: int
) -> CopySchedule:  # fmt: skip
    """Copies by rate, in copies a second; each halving halves the time of a sample."""
    sized = [fixed / rate for fixed, rate in zip(fixed_copies, rates, strict=True) if fixed]
    seconds = max(sized, default=SECONDS / 2**halvings)
    least, most = max(1, LEAST >> halvings), max(1, CUDA_MOST_COPIES >> halvings)
    copies_per_timestamp = []
    for flow, fixed, rate in zip(flows, fixed_copies, rates, strict=True):
        interval = (DUPLEX_INTERVAL if flow.duplex else INTERVAL) / 2**halvings
        copies_per_timestamp.append(1 if fixed else max(1, min(round(rate * interval), most // LEAST)))
    timestamps_per_second = [rate / copies for rate, copies in zip(rates, copies_per_timestamp, strict=True)]
    counts = balanced(timestamps_per_second, seconds, least, most // max(copies_per_timestamp))
    counts = [fixed or count for fixed, count in zip(fixed_copies, counts, strict=True)]
    return CopySchedule(counts, copies_per_timestamp)
