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
        Column("source"),
    ]  # fmt: skip
    table = Table(columns, [_line(point, notes) for point in curve.points])
    ranks = plural(len(curve.ranks), "rank")
    what = f"{curve.collective} of {ranks}, {curve.library}, {_LAUNCHES[curve.settings.launch]}"
    peaks = [
        f"{peak.algorithm} {units.number(peak.bus_bandwidth / 1e9, 3)} GB/s ({peak.limit})" for peak in curve.peaks
    ]
    return "\n".join([
        heading(curve.system), screen.wrap(what, indent=2), render_table(table, screen), "",
        screen.wrap(f"long messages reach: {'; '.join(peaks)}", indent=2),
        *([screen.wrap(_transports(curve), indent=2)] if len(curve.transports) > 1 else []),
        *([screen.wrap(_choice(curve), indent=2)] if curve.compared else []), notes.render(screen),
    ])  # fmt: skip


def _choice(curve: CollectiveCurve) -> str:
    """Which algorithms were compared at the largest size, by which times, and what the others would reach."""
    first, *others = curve.compared
    texts = [f"{first.algorithm} {first.protocol} {clock(first.planned)}"]
    for each in others:
        rate = units.number(each.bus_bandwidth / 1e9, 3)
        texts.append(f"{each.algorithm} {each.protocol} {clock(each.planned)}, would reach {rate} GB/s")
    size = units.size(max(point.size for point in curve.points))
    decided = curve.chosen_by or f"by the times that {curve.library.partition(' ')[0]} itself plans"
    return f"choice at {size}, {decided}: {'; '.join(texts)} (--algorithm forces one)"


def _transports(curve: CollectiveCurve) -> str:
    """What each transport over PCIe would reach, which of them the table is of, and what tells which one runs."""
    rates = {(peak.bus_bandwidth, peak.low, peak.high) for peak in curve.peaks}
    taken = next((each for each in curve.transports if (each.bus_bandwidth, each.low, each.high) in rates), None)
    texts = [
        f"{each.transport} {units.number(each.bus_bandwidth / 1e9, 3)} GB/s "
        f"({range_text(each.bus_bandwidth, each.low, each.high)})" + ", which the table takes" * (each is taken)
        for each in curve.transports
    ]
    steps = ["NCCL_DEBUG=INFO prints 'via P2P' or 'via SHM'", "nvidia-smi topo -p2p r whether P2P is allowed"]
    if any("IOMMU" in each.transport for each in curve.transports):
        told = "/sys/kernel/iommu_groups/*/type whether the IOMMU translates (DMA)"
        is_open = curve.system.policies.iommu is None
        steps.append(f"{told}, which policies: {{iommu: translate}} or passthrough states" if is_open else told)
    return f"by transport: {'; '.join(texts)}. {', '.join(steps)}"


def _line(point: CollectivePoint, notes: Footnotes) -> tuple[str, ...]:
    rate = units.number(point.bus_bandwidth / 1e9, 3)
    interval = range_text(point.bus_bandwidth, point.low, point.high)
    chosen = f"{point.algorithm} {point.protocol}"
    return (
        units.size(point.size), clock(point.time), rate, interval, chosen, str(point.channels), point.limit,
        notes.mark(point.rests_on),
    )  # fmt: skip
