"""How many copies flows need to end together, and the rate of each in the window in which all of them ran."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
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
    `in_turns`: of each flow, whether it ran before or after others that one engine serves; then its rate is over the
    time of all of them, in which they add up to what the engine moved.
    """

    copies_per_second: tuple[float, ...]
    makespan: float
    every_flow_copied: bool
    in_turns: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class CopySchedule:
    """For each flow the number of timestamps in a sample, of copies before each timestamp, and the engine it is on."""

    timestamp_counts: list[int]
    copies_per_timestamp: list[int]
    engines: list[Hashable]

    @property
    def copies(self) -> list[int]:
        """Of each flow in a sample."""
        return [count * copies for count, copies in zip(self.timestamp_counts, self.copies_per_timestamp, strict=True)]

    def run_once(self, prepared: PreparedCopies) -> CommonWindow:
        """The rates in one run of these copies."""
        end_times = [timing.timestamps for timing in prepared.run()]
        return common_window(end_times, self.copies_per_timestamp, self.engines)


def common_window(
    end_times: Sequence[Sequence[float]], copies_per_timestamp: Sequence[int], engines: Sequence[Hashable]
) -> CommonWindow:
    """Rates from each flow's timestamps: the ends of its copies, or of several, in s after the release, ascending.

    A copy under way when the window closes counts at the pace of those before it: its later part, with fewer concurrent
    flows, says nothing about the window. So a flow's rate is its copies finished in the window over the last one's
    end. `engines` names what serves each flow: an engine may serve the whole queue of one flow after another's, and
    then counts as one flow, which ends with the last of them.
    """
    turns = _turns(end_times, engines)
    last = [ends[-1] for ends in end_times]
    until = [
        end if engine is None else max(other for other, own in zip(last, turns, strict=True) if own == engine)
        for end, engine in zip(last, turns, strict=True)
    ]
    counts = [bisect_right(ends, min(until)) for ends in end_times]
    rates = tuple(
        copies * (max(count, 1) / ends[max(count, 1) - 1] if engine is None else len(ends) / end)
        for copies, count, ends, end, engine in zip(copies_per_timestamp, counts, end_times, until, turns, strict=True)
    )
    in_turns = tuple(engine is not None for engine in turns)
    return CommonWindow(rates, max(last), every_flow_copied=all(counts), in_turns=in_turns)


def _turns(end_times: Sequence[Sequence[float]], engines: Sequence[Hashable]) -> list[Hashable]:
    """Of each flow the engine that served its flows one after the other; None where it served them together."""
    window = min(ends[-1] for ends in end_times)
    waiting = {engine for ends, engine in zip(end_times, engines, strict=True) if _waited(ends)}
    if not waiting or all(ends[0] <= window for ends in end_times):
        return [None] * len(engines)
    if any(list(engines).count(engine) == 1 for engine in waiting):
        return ["whatever serves all of them"] * len(engines)
    return [engine if engine in waiting else None for engine in engines]


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
    pilot = CopySchedule([flow.copies for flow in flows], [1] * len(flows), _engines(flows))
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
    return CopySchedule(counts, copies_per_timestamp, _engines(flows))


def _engines(flows: Sequence[CudaFlow]) -> list[Hashable]:
    """What copies each flow: of the GPU that starts its copies an engine for each direction, or a kernel of its own."""
    return [number if flow.sm or not flow.p2p else _engine(flow) for number, flow in enumerate(flows)]


def _engine(flow: CudaFlow) -> tuple[int, str]:
    if min(flow.src, flow.dst) < 0:  # the host's memory
        return max(flow.src, flow.dst), "from the host" if flow.src < 0 else "to the host"
    return (flow.dst, "peer reads") if flow.read else (flow.src, "peer writes")
