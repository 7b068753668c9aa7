"""How far a capacity may be from its nominal value, by what it comes from: the range of a figure and of a product.

A range is a pair of factors (low, high) of the nominal value. benchmarks/interval_quantiles.py prints how many
values of machines that no figure comes from lie within the ranges of their predictions, and how wide those are; the
constants below come from it (benchmarks/runs/2026-11-23-intervals.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, TypeAlias

from lanewise.catalog import Figure

Range: TypeAlias = tuple[float, float]
Interval: TypeAlias = tuple[float, float, float]  # low end, rate, high end
Bound: TypeAlias = Literal["low", "nominal", "high"]
BOUNDS: tuple[Bound, ...] = ("low", "nominal", "high")

CARRIED_OVER, UNKNOWN = "carried over", "unknown"
RANGES: dict[str, Range] = {
    "physics": (0.90, 1.02),
    "calibrated": (0.93, 1.05),
    CARRIED_OVER: (0.90, 1.07),
    "typical": (0.85, 1.10),
    "planning": (0.60, 1.60),
    UNKNOWN: (0.25, 1.0),
    "fitted": (0.90, 1.10),
}
# In addition, of what several flows use at once, both directions of a link or device together: arbitration, and Ack and
# flow-control packets, cost what is not modelled.
SHARED: Range = (0.90, 1.02)


def tier(figure: Figure) -> str:
    """What a figure's range depends on: its basis, or that it was measured on another part of the same chip."""
    return CARRIED_OVER if figure.carried_from else figure.basis


def figure_range(figure: Figure) -> Range:
    """The range of a figure that is a number: that of its tier, or the stated one where that is wider."""
    low, high = RANGES[tier(figure)]
    if isinstance(figure.value, float) and figure.value > 0:
        low = low if figure.low is None else min(low, figure.low / figure.value)
        high = high if figure.high is None else max(high, figure.high / figure.value)
    return low, high


# Rates this close are a tie: half of the 10 % by which measured paths must be apart to count.
TIE = 0.05


def is_tie(one: Interval, other: Interval) -> bool:
    """Whether two predictions cannot be told apart: within 5 %, and less apart than their errors together.

    What counts are the ends of the intervals that face each other; as independent errors they add in quadrature.
    """
    (_, slower, upper), (lower, faster, _) = sorted((one, other), key=lambda interval: interval[1])
    return faster <= (1 + TIE) * slower and faster - slower <= math.hypot(upper - slower, faster - lower)


def product(one: Range, other: Range) -> Range:
    """The range of the product of two factors that may be at the same end together, as where a part is unknown."""
    return one[0] * other[0], one[1] * other[1]


def independent(*ranges: Range) -> Range:
    """The range of a product of factors whose errors are independent: logarithms add in quadrature, at either end."""
    low = math.hypot(*(min(0.0, math.log(low)) for low, _ in ranges))
    high = math.hypot(*(max(0.0, math.log(high)) for _, high in ranges))
    return math.exp(-low), math.exp(high)


def widest(ranges: Iterable[Range]) -> Range:
    """The range that holds all of several; of none that of physics."""
    pairs = list(ranges) or [RANGES["physics"]]
    return min(low for low, _ in pairs), max(high for _, high in pairs)
