"""A value that is a power of 1000 too high or too low, or eight times too high: its unit was mistaken."""

from __future__ import annotations

from lanewise import units
from lanewise.checking.cause import Cause
from lanewise.checking.verdict import PathResult, Verdict

_FACTORS = (1e-6, 1e-3, 1e3, 1e6)
# A rate in bits a second that was taken for one in bytes.
_BITS = 1 / 8
_STEP = "look up the unit where the figure comes from (Gb/s, MB/s or GB/s, us or ms), and check it again with that unit"


def mistaken_unit(result: PathResult) -> Cause | None:
    """The unit as a cause, where the value times a power of 1000, or as bits, would be fine; None otherwise."""
    value, low, high = result.row.value, result.fine_low, result.fine_high
    if value is None or low is None or high is None:
        return None
    factors = (*_FACTORS, _BITS) if result.verdict is Verdict.FAST and result.row.unit == "B/s" else _FACTORS
    factor = next((factor for factor in factors if low <= value * factor <= high), None)
    if factor is None:
        return None
    times, side = (factor, "low") if factor > 1 else (1 / factor, "high")
    shown, fine = units.show(value, result.row.display_unit), units.readable(value * factor, result.row.unit)
    what = f"the unit is mistaken: {shown} is {times:,.0f} times too {side}, {fine} would be fine"
    return Cause(("unit", side), what, _STEP, explains=True)
