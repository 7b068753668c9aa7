"""`lanewise predict --collective` as text: time and bus bandwidth against size."""

from __future__ import annotations

from lanewise import units
from lanewise.collectives.model import CollectiveCurve, CollectivePoint, Launch
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Footnotes, Table, number_columns, render_table
from lanewise.report.words import clock, heading, plural, range_text

_LAUNCHES = {
    Launch.GRAPH: "launched in a CUDA graph",
    Launch.NCCL_TESTS: "issued by nccl-tests, a process for each GPU",
    Launch.ONE_PROCESS: "issued by nccl-tests -g, one process for all GPUs of a node",
    Launch.TORCH: "issued by torch eagerly",
}


def render_collective(curve: CollectiveCurve, screen: Screen = PLAIN) -> str:
    """One line a size, then what long messages reach with each algorithm."""
    notes = Footnotes()
    columns = [
        *number_columns("size", "time"), Column("bus GB/s", number=True), Column("interval", drop_order=1),
        Column("algorithm"), Column("channels", number=True, drop_order=3), Column("limit", wrap=True, drop_order=2),
    ]  # fmt: skip
    table = Table(columns, [_line(point) for point in curve.points])
    ranks = plural(len(curve.ranks), "rank")
    what = f"{curve.collective} of {ranks}, {curve.library}, {_LAUNCHES[curve.settings.launch]}"
    peaks = [
        f"{peak.algorithm} {units.number(peak.bus_bandwidth / 1e9, 3)} GB/s ({peak.limit})" for peak in curve.peaks
    ]
    notes.mark(curve.sources)
    return "\n".join([
        heading(curve.system), screen.wrap(what, indent=2), render_table(table, screen), "",
        screen.wrap(f"long messages reach: {'; '.join(peaks)}", indent=2), notes.render(screen),
    ])  # fmt: skip


def _line(point: CollectivePoint) -> tuple[str, ...]:
    rate = units.number(point.bus_bandwidth / 1e9, 3)
    interval = range_text(point.bus_bandwidth, point.low, point.high)
    chosen = f"{point.algorithm} {point.protocol}"
    return units.size(point.size), clock(point.time), rate, interval, chosen, str(point.channels), point.limit
