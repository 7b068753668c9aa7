"""The verdict on one measured row: is its value within the expected interval, widened by a tolerance by basis?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

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


TABLE = {
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
class Expected:
    """What a row should show, in SI: the value, the interval it may lie in, and what that rests on.

    `basis` names a row of the table of tolerances. `value` None means that nothing is known, and `note` says why.
    """

    value: float | None
    low: float = 0.0
    high: float = 0.0
    basis: str = ""
    limit: str = ""
    rests_on: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class PathResult:
    """One row with its verdict: `value` in `unit` (SI), fine from `low` to `high`; None where unknown."""

    row: Observation
    value: float | None
    unit: str
    expected: Expected
    tolerance: Tolerance | None
    low: float | None
    high: float | None
    verdict: Verdict
    note: str = ""

    @property
    def share(self) -> float | None:
        """Measured over expected; None where either is unknown."""
        return self.value / self.expected.value if self.value is not None and self.expected.value else None

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
        return self.value is not None and value * (1 - share) <= self.value <= value * (1 + share)


def lower_is_better(unit: str) -> bool:
    """Whether a smaller value of this SI unit is the better one: times are, rates are not."""
    return unit == "s"


def judge(row: Observation, expected: Expected, tolerance: Tolerance | None) -> PathResult:
    """Whether a row lies in its expectation's interval, widened by the tolerance on both sides alike."""
    value, unit = row.value, row.unit
    if value is None:
        # A percentile that is missing had too few I/Os or messages: nothing went wrong.
        verdict = Verdict.UNKNOWN if row.metric.startswith("latency_p") else Verdict.FAILED
        note = row.note or "not measured, and no reason given"
        return PathResult(row, None, unit, expected, tolerance, None, None, verdict, note)
    if expected.value is None or tolerance is None:
        return PathResult(row, value, unit, expected, tolerance, None, None, Verdict.UNKNOWN, expected.note)
    low, high = expected.low * (1 - tolerance.share), expected.high * (1 + tolerance.share)
    below, above = Verdict.SLOW, Verdict.FAST
    if lower_is_better(unit):
        below, above = above, below
    verdict = below if value < low else above if value > high else Verdict.OK
    return PathResult(row, value, unit, expected, tolerance, low, high, verdict)


def tolerance_for(expected: Expected, share: float | None = None) -> Tolerance | None:
    """The table's tolerance for an expectation, or the user's own `share`; None where nothing is expected."""
    if expected.value is None:
        return None
    tolerance = TABLE[expected.basis]
    return tolerance if share is None else replace(tolerance, share=share, why="as given with --tolerance")
