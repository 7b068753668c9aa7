"""Many hosts on a network would stand in one endless row: fold it, the network's switches in the middle.

The lower hosts are drawn upside down, network cards first, so that every network link stays straight.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lanewise.report import grid as g
from lanewise.report import levels as lv
from lanewise.report.lanes import free_lane

if TYPE_CHECKING:
    from lanewise.report.grid import Grid
    from lanewise.report.levels import Levels, Way
    from lanewise.results.outline import Outline, OutlineBox

FOLD_WIDTH = 1500.0  # px; a page shows about 1250 at full size
_GAP = 24.0


def arrange(outline: Outline) -> Levels:
    """The levels of an outline, folded if it has several hosts, one network and more width than a page."""
    grid = g.place_columns(outline)
    hosts = [box for box in outline.boxes if box.kind == "host"]
    others = [box for box in outline.boxes if box.kind not in ("host", "netswitch")]
    if grid.width <= FOLD_WIDTH or len(hosts) < 2 or others or len(hosts) == len(outline.boxes):
        return lv.place_levels(outline, grid)
    split = _halfway(grid, hosts)
    return _merge(outline, _part(outline, hosts[:split]), _part(outline, hosts[split:]))


def _halfway(grid: Grid, hosts: list[OutlineBox]) -> int:
    """How many hosts stand above: both rows as equally wide as can be."""
    ends = {box.name: lv.shown_cells(roots) for box, roots in grid.tops}
    widths = [ends[host.name][1] - ends[host.name][0] for host in hosts]
    return min(range(1, len(hosts)), key=lambda n: max(sum(widths[:n]), sum(widths[n:])))


def _part(outline: Outline, hosts: list[OutlineBox]) -> Levels:
    bars = [box for box in outline.boxes if box.kind == "netswitch"]
    inside = {name for host in hosts for name in _names(host)}
    known = inside | {bar.name for bar in bars}
    lines = tuple(
        line for line in outline.lines if {line.a, line.b} <= known and (line.a in inside or line.b in inside)
    )
    spans = tuple(span for span in outline.spans if set(span.members) <= inside)
    part = replace(outline, boxes=(*hosts, *bars), lines=lines, spans=spans)
    return lv.place_levels(part, g.place_columns(part))


def _names(box: OutlineBox) -> list[str]:
    return [box.name, *(name for child in box.children for name in _names(child))]


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
    ways = [way for way in upper.ways if not _joins(way, bars)]
    ways += [_flipped(way, lower, base + tall) for way in lower.ways if not _joins(way, bars)]
    ways += [_to_middle(way, bars, None) for way in upper.ways if _joins(way, bars)]
    ways += [_to_middle(way, bars, base + tall) for way in lower.ways if _joins(way, bars)]
    for cell in lower.grid.cells.values():
        cell.y = base + tall - cell.y - cell.h
    kept = {n: bar for n, bar in upper.bars.items() if bar.box.kind == "nvswitch"}
    for name, bar in lower.bars.items():
        if bar.box.kind == "nvswitch":
            bar.y = base + tall - bar.y - bar.h
            kept[name] = bar
    for line in outline.lines:
        between = lv.between_bars(bars.get(line.a), bars.get(line.b), line)
        ways += [between] if between else []
    out = lv.Levels(grid, {**kept, **bars}, ways, [*upper.spans], {0: upper.tiers[0]})
    out.spans += [(span, cells, base + tall - y) for span, cells, y in lower.spans]
    out.tiers[lv.MIRRORED] = (base, base + tall - lower.tiers[0][0])
    out.mirrored = set(lower.grid.cells) | {name for name in kept if name in lower.bars}
    out.height = base + tall
    return out


def _joins(way: Way, bars: dict[str, lv.BarPlace]) -> bool:
    return way.line.a in bars or way.line.b in bars


def _network_bars(outline: Outline, upper: Levels, lower: Levels, y: float) -> tuple[dict[str, lv.BarPlace], float]:
    """The network switches between the two rows, and the y where they end."""
    bars: dict[str, lv.BarPlace] = {}
    busy: list[tuple[float, float, int]] = []
    for box in (box for box in outline.boxes if box.kind == "netswitch"):
        xs = [x for part in (upper, lower) for way in part.ways if box.name in (way.line.a, way.line.b)
              for x, _ in way.points]  # fmt: skip
        own = [bar for part in (upper, lower) for bar in (part.bars[box.name],)]
        peers = [line for line in outline.lines if box.name in (line.a, line.b)]
        links = sum(g.label_width(line) + 24 for line in peers if {line.a, line.b} <= _switches(outline))
        left = min(xs, default=own[0].x) - g.inset_of(upper.grid.routes)
        right = max(max(xs, default=left) + 62 + links, left + min(bar.w for bar in own))
        lane = free_lane(busy, left, right)
        height = lv.bar_height(upper)
        bars[box.name] = lv.BarPlace(box, left, right - left, 1, lane, y + lane * (height + 30), height)
    return bars, max((bar.y + bar.h for bar in bars.values()), default=y)


def _switches(outline: Outline) -> set[str]:
    return {box.name for box in outline.boxes if box.kind == "netswitch"}


def _to_middle(way: Way, bars: dict[str, lv.BarPlace], mirror: float | None) -> Way:
    """A link between a card and a network switch, ended at the switch's new place."""
    first = way.line.a in bars
    bar = bars[way.line.a if first else way.line.b]
    x, start = way.points[-1] if first else way.points[0]
    y = start if mirror is None else mirror - start
    points = [(x, y), (x, bar.y if mirror is None else bar.y + bar.h)]
    return lv.Way(way.line, points[::-1] if first else points, (x, y), upward=mirror is not None)


def _flipped(way: Way, lower: Levels, mirror: float) -> Way:
    if way.level:
        # A level link keeps its height within its boxes, where there is room beside the names.
        cell = lower.grid.cells[way.line.a]
        moved = mirror - cell.y - cell.h - cell.y
        points = [(x, y + moved) for x, y in way.points]
        return replace(way, points=points, label=(way.label[0], way.label[1] + moved))
    points = [(x, mirror - y) for x, y in way.points]
    return replace(way, points=points, label=(way.label[0], mirror - way.label[1]), upward=True)


__all__ = ["FOLD_WIDTH", "arrange"]
