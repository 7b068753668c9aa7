"""The verdict on one measured row: is its value within the expected interval, widened by a tolerance by basis?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from lanewise.results.observation import Observation

# A cause explains a value when the prediction with it comes at least as near as this, however strict the verdict is.
LEAST_SHARE = 0.05


class Verdict(StrEnum):
    """What a row is: `fast` means faster than it can be, so its size, unit or cache is suspected."""

    SLOW = "slow"
    FAST = "fast"
    FAILED = "failed"
    UNKNOWN = "unknown"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """`share` (0..1) to either side of the expected interval, and why that much."""

    basis: str
    share: float
    why: str


# The same row as predicted, and the tolerance for its basis; without a value, no tolerance, and a note that says why.
Expectation: TypeAlias = tuple[Observation, Tolerance | None]

TOLERANCES = {
    row.basis: row
    for row in (
        Tolerance("physics", 0.10, "arithmetic of the links; published copies are up to 8 % away from it"),
        Tolerance("calibrated", 0.10, "measured on the same part in another machine"),
        Tolerance("carried over", 0.15, "measured on a related part, or at another generation or width"),
        Tolerance("fitted", 0.15, "fitted to one published table of one machine"),
        Tolerance("staged", 0.20, "copies through host memory: the rms residual of published ones is 17 %"),
        Tolerance("SM copy", 0.20, "the figure is a copy engine's; copies by kernels are 5 to 13 % slower (H200)"),
        Tolerance("latency", 0.60, "depends on driver and CPU as well; published ones reach 151 % of the prediction"),
        Tolerance("earlier run", 0.05, "the same machine: medians of one path repeat within 1 to 2 % (H200)"),
        Tolerance("class", 0.02, "in addition to the standard deviation among the machines"),
    )
}


@dataclass(frozen=True, slots=True)
class PathResult:
    """A measured row with its verdict: its value is fine from `low` to `high` (SI; None where it is not judged).

    `expected` is the same row as predicted; without a value nothing is known, and its note says why.
    """

    row: Observation
    expected: Observation
    tolerance: Tolerance | None
    verdict: Verdict
    low: float | None = None
    high: float | None = None
    note: str = ""

    @property
    def share(self) -> float | None:
        """Measured over expected; None where either is unknown."""
        return self.row.value / self.expected.value if self.row.value is not None and self.expected.value else None

    @property
    def range_share(self) -> float | None:
        """(largest - smallest) / median of the samples; None with fewer than three."""
        row = self.row
        if len(row.samples) < 3 or not row.value or row.low is None or row.high is None:
            return None
        return (row.high - row.low) / row.value

    def reached_by(self, value: float) -> bool:
        """Whether another prediction (SI) comes as near to the measured value as a fine row must to its own."""
        share = max(LEAST_SHARE, self.tolerance.share if self.tolerance else 0.0)
        return self.row.value is not None and value * (1 - share) <= self.row.value <= value * (1 + share)

    def better_than(self, value: float) -> bool:
        """Whether the measured value is better than another prediction (SI) by more than the tolerance."""
        share = self.tolerance.share if self.tolerance else 0.0
        if self.row.value is None:
            return False
        if lower_is_better(self.row.unit):
            return self.row.value < value * (1 - share)
        return self.row.value > value * (1 + share)


def lower_is_better(unit: str) -> bool:
    """Whether a smaller value of this SI unit is the better one: times are, rates are not."""
    return unit == "s"


def judge(row: Observation, expectation: Expectation, share: float | None = None) -> PathResult:
    """Whether a row lies in its expected interval, widened by the tolerance, or by `share` (0..1), on both sides."""
    expected, tolerance = expectation
    if tolerance is not None and share is not None:
        tolerance = replace(tolerance, share=share, why="as given with --tolerance")
    if row.value is None:
        # A percentile that is missing had too few I/Os or messages: nothing went wrong.
        verdict = Verdict.UNKNOWN if row.metric.startswith("latency_p") else Verdict.FAILED
        return PathResult(row, expected, tolerance, verdict, note=row.note or "not measured, and no reason given")
    if tolerance is None or expected.low is None or expected.high is None:
        return PathResult(row, expected, tolerance, Verdict.UNKNOWN, note=expected.note)
    low, high = expected.low * (1 - tolerance.share), expected.high * (1 + tolerance.share)
    below, above = (Verdict.FAST, Verdict.SLOW) if lower_is_better(row.unit) else (Verdict.SLOW, Verdict.FAST)
    verdict = below if row.value < low else above if row.value > high else Verdict.OK
    return PathResult(row, expected, tolerance, verdict, low, high)
