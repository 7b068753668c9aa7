"""How far the value of a fine path may be from the expected one, by its basis: one table, with reasons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lanewise.checking.verdict import Expected


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


def tolerance_for(expected: Expected, share: float | None = None) -> Tolerance | None:
    """The table's tolerance for an expectation, or the user's own `share`; None where nothing is expected."""
    if expected.value is None:
        return None
    found = TABLE[expected.basis]
    return found if share is None else replace(found, share=share, why="as given with --tolerance")


__all__ = ["TABLE", "Tolerance", "tolerance_for"]
