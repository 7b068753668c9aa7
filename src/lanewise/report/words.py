"""Words that several verbs, the page and the charts share."""

from __future__ import annotations

from lanewise import units
from lanewise.results import statistics
from lanewise.topology.model import Link


def link_speed(link: Link) -> str:
    """'Gen4 x16', 'NVLink x12', 'socket x3' or the stated rate."""
    if link.gen and link.lanes:
        label = f"Gen{link.gen} x{link.lanes}"
    elif link.kind.value == "nvlink":
        label = f"NVLink x{link.count}"
    else:
        label = f"{link.kind} x{link.count}" if link.count > 1 else str(link.kind)
    return label if link.rate is None else f"{label}, {units.show(link.rate, 'GB/s', 3)}"


def grade(residual_pct: float | None) -> str:
    """'' up to 5 %, 'off' up to 10 %, 'far' beyond."""
    if residual_pct is None or abs(residual_pct) <= statistics.CLOSE_PCT:
        return ""
    return "far" if abs(residual_pct) > statistics.FAR_PCT else "off"


def plural(count: int, noun: str) -> str:
    """'1 row', '2 rows', '1,200 rows'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def clock(seconds: float) -> str:
    """'0 s', '40.83 ms', '0.105 us'."""
    unit = "s" if seconds >= 1 or seconds == 0 else "ms" if seconds >= 1e-3 else "us"
    return units.show(seconds, unit)
