"""How far a fine path may lie from what is expected, by what the expectation rests on: one table, with reasons."""

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
    each.basis: each
    for each in (
        Tolerance("physics", 0.10, "the links' arithmetic; published copies lie up to 8 % from it"),
        Tolerance("calibrated", 0.10, "measured on such a part in another machine"),
        Tolerance("carried over", 0.15, "measured on a sibling of the part, or at another generation or width"),
        Tolerance("fitted", 0.15, "fitted to one published table of one machine"),
        Tolerance("staged", 0.20, "copies through host memory: published ones lie 17 % (rms) from their prediction"),
        Tolerance("SM copy", 0.20, "the figure is a copy engine's; copies by kernels lie 5 to 13 % below it (H200)"),
        Tolerance("latency", 0.60, "as much the driver's and the CPU's; published ones reach 151 % of the prediction"),
        Tolerance("earlier run", 0.05, "the same machine: medians of one path repeat within 1 to 2 % (H200)"),
        Tolerance("class", 0.02, "beside the spread of the machines themselves"),
    )
}


def tolerance_for(expected: Expected, share: float | None = None) -> Tolerance | None:
    """The table's tolerance for an expectation, or the user's own `share`; None where nothing is expected."""
    if expected.value is None:
        return None
    found = TABLE[expected.basis]
    return found if share is None else replace(found, share=share, why="as given with --tolerance")


__all__ = ["TABLE", "Tolerance", "tolerance_for"]
