"""The verdict on one measured row: is its value within the expected interval, widened by a tolerance by basis?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from lanewise import units
from lanewise.checking.expectation import Expectation
from lanewise.checking.flow_rates import ENGINE_SHARE
from lanewise.checking.tolerances import Tolerance
from lanewise.perf.uncertainty import RANGES, UNKNOWN
from lanewise.results.observation import Observation

# A cause explains a value if the prediction with it is within the row's tolerance, or this where that is stricter.
LEAST_TOLERANCE = 0.05


class Verdict(StrEnum):
    """What a row is: `fast` means faster than it can be, so its size, unit or cache is suspected."""

    SLOW = "slow"
    FAST = "fast"
    FAILED = "failed"
    UNKNOWN = "unknown"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class PathResult:
    """A measured row with its verdict: fine from `fine_low` to `fine_high` (SI; None where it is not judged).

    `expected` is the same row as predicted; without a value nothing is known, and its note says why.
    """

    row: Observation
    expected: Observation
    tolerance: Tolerance | None
    verdict: Verdict
    fine_low: float | None = None
    fine_high: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Measured over expected; None where either is unknown."""
        return self.row.value / self.expected.value if self.row.value is not None and self.expected.value else None

    @property
    def fine_shares(self) -> tuple[float | None, float | None]:
        """How far below and above the expected value a row is fine, relative to it; None where it has no such end."""
        low, high, value = self.fine_low, self.fine_high, self.expected.value
        if not value:
            return None, None
        return None if low is None else 1 - low / value, None if high is None else high / value - 1

    @property
    def relative_range(self) -> float | None:
        """(largest - smallest) / median of the samples; None with fewer than three."""
        row = self.row
        if len(row.samples) < 3 or not row.value or row.low is None or row.high is None:
            return None
        return (row.high - row.low) / row.value

    def reached_by(self, value: float) -> bool:
        """Whether another prediction (SI) comes as near to the measured value as a fine row must to its own."""
        tolerance = max(LEAST_TOLERANCE, self.tolerance.relative if self.tolerance else 0.0)
        return self.row.value is not None and value * (1 - tolerance) <= self.row.value <= value * (1 + tolerance)

    def better_than(self, value: float) -> bool:
        """Whether the measured value is better than another prediction (SI) by more than the tolerance."""
        tolerance = self.tolerance.relative if self.tolerance else 0.0
        if self.row.value is None:
            return False
        if lower_is_better(self.row.unit):
            return self.row.value < value * (1 - tolerance)
        return self.row.value > value * (1 + tolerance)


def lower_is_better(unit: str) -> bool:
    """Whether a smaller value of this SI unit is the better one: times are, rates are not."""
    return unit == "s"


def judge(row: Observation, expectation: Expectation, relative_tolerance: float | None = None) -> PathResult:
    """Whether a row lies in its expected interval, widened on both sides by its basis' tolerance.

    With `relative_tolerance` (0..1) it is fine that far from the expected value itself, whatever the interval.
    """
    expected, tolerance = expectation.expected, expectation.tolerance
    if tolerance is not None and relative_tolerance is not None:
        tolerance = replace(tolerance, relative=relative_tolerance, why="as given with --tolerance")
        expected = replace(expected, low=expected.value, high=expected.value)
    if row.value is None:
        # A percentile that is missing had too few I/Os or messages: nothing went wrong.
        verdict = Verdict.UNKNOWN if row.metric.startswith("latency_p") else Verdict.FAILED
        return PathResult(row, expected, tolerance, verdict, note=row.note or "not measured, and no reason given")
    if tolerance is None or expected.low is None or expected.high is None:
        return PathResult(row, expected, tolerance, Verdict.UNKNOWN, note=expected.note)
    fine_low, fine_high = expected.low * (1 - tolerance.relative), expected.high * (1 + tolerance.relative)
    below, above = (Verdict.FAST, Verdict.SLOW) if lower_is_better(row.unit) else (Verdict.SLOW, Verdict.FAST)
    verdict = below if row.value < fine_low else above if row.value > fine_high else Verdict.OK
    if expectation.ceiling and expected.value is not None:
        fine_low = ENGINE_SHARE * expected.value
        # A full cache or a small model writes less than a quarter of what drives write: the interval has that.
        least = min(RANGES[UNKNOWN][0] * expected.value, expected.low)
        if least * (1 - tolerance.relative) <= row.value < fine_low:
            note = f"{expectation.ceiling}, so rates below {units.show(fine_low, row.display_unit, 3)} are not judged"
            return PathResult(row, expected, tolerance, Verdict.UNKNOWN, fine_low, fine_high, note)
        verdict = Verdict.SLOW if row.value < fine_low else verdict
    return PathResult(row, expected, tolerance, verdict, fine_low, fine_high)
