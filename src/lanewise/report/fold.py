"""Many hosts on a network would make one endless row: fold it, the network's switches in the middle.

The lower hosts are drawn upside down, network cards first, so that every network link stays straight.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.report import grid as g
from lanewise.report import levels as lv
from lanewise.report.grid import Grid
from lanewise.report.levels import Levels, LinkPolyline, free_track
from lanewise.results.outline import Outline, OutlineBox

FOLD_WIDTH = 1500.0  # px; a page shows about 1250 at full size
_GAP = 24.0


def arrange(outline: Outline, top: float) -> Levels:
    """The levels of an outline from y `top` on, folded if several hosts on one network are wider than a page."""
    grid = g.place_columns(outline)
    hosts = [box for box in outline.boxes if box.kind == "host"]
    mixed = any(box.kind not in ("host", "netswitch") for box in outline.boxes)
    if grid.width <= FOLD_WIDTH or len(hosts) < 2 or mixed or len(hosts) == len(outline.boxes):
        return lv.place_levels(outline, grid, top)
    split = _halfway(grid, hosts)
    return _merge(outline, _half(outline, hosts[:split], top), _half(outline, hosts[split:], 6.0))


def _halfway(grid: Grid, hosts: list[OutlineBox]) -> int:
    """How many hosts the upper row takes: both rows as equally wide as can be."""
    ends = {box.name: lv.shown_cells(roots) for box, roots in grid.tops}
    widths = [ends[host.name][1] - ends[host.name][0] for host in hosts]
    return min(range(1, len(hosts)), key=lambda n: max(sum(widths[:n]), sum(widths[n:])))


def _half(outline: Outline, hosts: list[OutlineBox], top: float) -> Levels:
    bars = [box for box in outline.boxes if box.kind == "netswitch"]
    inside = {box.name for host in hosts for box in host.walk()}
    names = inside | {bar.name for bar in bars}
    lines = tuple(line for line in outline.lines if {line.a, line.b} <= names and {line.a, line.b} & inside)
    spans = tuple(span for span in outline.spans if set(span.members) <= inside)
    half = replace(outline, boxes=(*hosts, *bars), lines=lines, spans=spans)
    return lv.place_levels(half, g.place_columns(half), top)


def _merge(outline: Outline, upper: Levels, lower: Levels) -> Levels:
    middle = upper.tiers[0][1] + _GAP
    bars, below = _network_bars(outline, upper, lower, middle)
    base = below + _GAP
    tall = lower.tiers[0][1]
    grid = replace(
        upper.grid,
        cells={**upper.grid.cells, **lower.grid.cells},
        tops=[*upper.grid.tops, *lower.grid.tops],
        width=max(upper.grid.width, lower.grid.width, *(bar.x + bar.w + g.PAD_HOST for bar in bars.values())),
    )
    polylines = [polyline for polyline in upper.polylines if not _joins(polyline, bars)]
    polylines += [_flipped(polyline, lower, base + tall) for polyline in lower.polylines if not _joins(polyline, bars)]
    polylines += [_to_middle(polyline, bars, None) for polyline in upper.polylines if _joins(polyline, bars)]
    polylines += [_to_middle(polyline, bars, base + tall) for polyline in lower.polylines if _joins(polyline, bars)]
    for cell in lower.grid.cells.values():
        cell.y = base + tall - cell.y - cell.h
    nvswitches = {n: bar for n, bar in upper.bars.items() if bar.box.kind == "nvswitch"}
    for name, bar in lower.bars.items():
        if bar.box.kind == "nvswitch":
            bar.y = base + tall - bar.y - bar.h
            nvswitches[name] = bar
    for line in outline.lines:
        if between := lv.between_bars(bars.get(line.a), bars.get(line.b), line):
            polylines.append(between)
    out = lv.Levels(grid, {**nvswitches, **bars}, polylines, [*upper.spans], {0: upper.tiers[0]})
    out.spans += [(span, cells, base + tall - y) for span, cells, y in lower.spans]
    out.tiers[lv.MIRRORED] = (base, base + tall - lower.tiers[0][0])
    out.mirrored = set(lower.grid.cells) | {name for name in nvswitches if name in lower.bars}
    out.height = base + tall
    return out


def _joins(polyline: LinkPolyline, bars: dict[str, lv.BarPlace]) -> bool:
    return polyline.line.a in bars or polyline.line.b in bars


def _network_bars(outline: Outline, upper: Levels, lower: Levels, y: float) -> tuple[dict[str, lv.BarPlace], float]:
    """The network switches between the two rows, and the y where they end."""
    bars: dict[str, lv.BarPlace] = {}
    busy: list[tuple[float, float, int]] = []
    switches = {box.name: box for box in outline.boxes if box.kind == "netswitch"}
    for box in switches.values():
        joined = [link for half in (upper, lower) for link in half.polylines if box.name in (link.line.a, link.line.b)]
        xs = [x for link in joined for x, _ in link.points]
        own = [half.bars[box.name] for half in (upper, lower)]
        peers = [line for line in outline.lines if box.name in (line.a, line.b)]
        links = sum(g.label_width(line) + 24 for line in peers if {line.a, line.b} <= switches.keys())
        left = min(xs, default=own[0].x) - g.inset_of(upper.grid.routes)
        right = max(max(xs, default=left) + 62 + links, left + min(bar.w for bar in own))
        track = free_track(busy, left, right)
        height = lv.bar_height(upper)
        bars[box.name] = lv.BarPlace(box, left, right - left, 1, track, y + track * (height + 30), height)
    return bars, max((bar.y + bar.h for bar in bars.values()), default=y)


def _to_middle(polyline: LinkPolyline, bars: dict[str, lv.BarPlace], mirror: float | None) -> LinkPolyline:
    """A link between a card and a network switch, ended at the switch's new place."""
    first = polyline.line.a in bars
    bar = bars[polyline.line.a if first else polyline.line.b]
    x, start = polyline.points[-1] if first else polyline.points[0]
    y = start if mirror is None else mirror - start
    points = [(x, y), (x, bar.y if mirror is None else bar.y + bar.h)]
    return lv.LinkPolyline(polyline.line, points[::-1] if first else points, (x, y), upward=mirror is not None)


def _flipped(polyline: LinkPolyline, lower: Levels, mirror: float) -> LinkPolyline:
    if polyline.level:
        # A level link keeps its height within its boxes, where it does not touch the names.
        cell = lower.grid.cells[polyline.line.a]
        moved = mirror - cell.y - cell.h - cell.y
        points = [(x, y + moved) for x, y in polyline.points]
        return replace(polyline, points=points, label=(polyline.label[0], polyline.label[1] + moved))
    points = [(x, mirror - y) for x, y in polyline.points]
    return replace(polyline, points=points, label=(polyline.label[0], mirror - polyline.label[1]), upward=True)
