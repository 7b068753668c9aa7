"""The y side of the grid: rows, corridors between them, zones of brackets and bars, and every link's way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lanewise.report import grid as g
from lanewise.report.lanes import Lanes, free_lane
from lanewise.report.metrics import text_width, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lanewise.report.grid import Cell, Grid
    from lanewise.results.outline import Outline, OutlineBox, OutlineLine, OutlineSpan

Point = tuple[float, float]
LANE, SPAN, BAR, TITLE = 19.0, 26.0, 22.0, 17.0
MIRRORED = 2  # the tier of hosts drawn upside down


@dataclass
class BarPlace:
    """A switch that joins links from above: a wide low box."""

    box: OutlineBox
    x: float
    w: float
    tier: int
    lane: int = 0
    y: float = 0.0
    h: float = BAR


@dataclass
class Way:
    """The course of a link from its `a` to its `b`, and where its label starts."""

    line: OutlineLine
    points: list[Point]
    label: Point
    level: bool = False
    laned: bool = False
    upward: bool = False


@dataclass
class Levels:
    """Everything placed: cells have their y, bars and brackets too, `ways` tells how every link runs."""

    grid: Grid
    bars: dict[str, BarPlace] = field(default_factory=dict)
    ways: list[Way] = field(default_factory=list)
    spans: list[tuple[OutlineSpan, list[Cell], float]] = field(default_factory=list)
    tiers: dict[int, tuple[float, float]] = field(default_factory=dict)
    lanes: dict[tuple[str, int], float] = field(default_factory=dict)
    height: float = 0.0
    mirrored: set[str] = field(default_factory=set)


def detail_lines(cell: Cell, routes: int) -> list[str]:
    """The part and the binding under a device's name, broken to fit its box."""
    room = cell.w - g.text_inset(cell, routes) - g.CLEAR
    lines = wrap(cell.box.detail, g.SMALL, room, g.DETAILS if cell.leaf else 1)
    if cell.box.bound:
        lines.append(f"for {cell.box.bound}")
    elif cell.box.unbound:
        lines.append("not bound")
    return lines


def one_line(cell: Cell) -> bool:
    """Whether name and part stand side by side in a wide box."""
    name = text_width(cell.box.title, g.NAME, bold=True)
    rest = text_width(cell.box.detail, g.SMALL)
    return not cell.leaf and name + rest + 2 * g.CLEAR + 10 <= cell.w and not cell.box.bound


def place_levels(outline: Outline, grid: Grid) -> Levels:
    """Give every row, lane, bracket and bar its y, and every link its way."""
    out = Levels(grid)
    plan = Lanes(outline, grid)
    _place_bars(outline, grid, out)
    y, rows = 6.0 + TITLE + _numa_room(outline), grid.rows()
    last = max(rows, default=0)
    out.tiers[0] = (6.0, 0.0)
    for row, cells in rows.items():
        if row == grid.first_pool_row:
            y = _end_tier(out, plan, 0, y)
            y = _lanes_at(out, "gap", row, plan.count("gap", row), y) + (LANE if plan.count("gap", row) else 14)
            out.tiers[1] = (y, 0.0)
            y += 7
        y = _place_row(outline, out, plan, row, cells, y)
    y = _end_tier(out, plan, 1 if last >= grid.first_pool_row else 0, y)
    out.height = _place_network(out, y)
    _run_ways(outline, out, plan)
    return out


def _numa_room(outline: Outline) -> float:
    return 20.0 if any(child.kind == "numa" for box in outline.boxes for child in box.children) else 2.0


def _place_row(outline: Outline, out: Levels, plan: Lanes, row: int, cells: list[Cell], y: float) -> float:
    routes = out.grid.routes
    through = g.ROUTE * routes + (4 if routes else 0)
    for cell in cells:
        cell.y, cell.h = y, 18 + g.STEP * (0 if one_line(cell) else len(detail_lines(cell, routes))) + through
    # Leaves of a row are equally high; boxes with children stay slim, their links just run longer.
    for alike in ([c for c in cells if c.leaf], [c for c in cells if not c.leaf and routes]):
        for cell in alike:
            cell.h = max(other.h for other in alike)
    y += max(cell.h for cell in cells)
    texts = max((_texts_of(plan, line) for cell in cells for line in plan.below(cell)), default=0)
    y += 5 + g.STEP * texts
    y = _lanes_at(out, "row", row, plan.count("row", row), y)
    return y + (13 if texts else 4)


def _texts_of(plan: Lanes, line: OutlineLine) -> int:
    """How many lines of text stand at a link, and at those beside it."""
    return sum(len(g.label_lines(each)) for each in (plan.alike(line) if line.tree else [line]))


def _lanes_at(out: Levels, kind: str, row: int, count: int, y: float) -> float:
    for lane in range(count):
        y += LANE
        out.lanes[(f"{kind}{row}", lane)] = y
    return y


def _end_tier(out: Levels, plan: Lanes, tier: int, y: float) -> float:
    """Brackets, NVLink lanes and NVSwitch bars under the rows of a tier; the y of its lower border."""
    for lane in range(plan.spans[tier]):
        for span, cells, at in plan.spans_in(tier):
            if at == lane:
                out.spans.append((span, cells, y + 7))
        y += SPAN
    y = _lanes_at(out, "zone", tier, plan.count("zone", tier), y)
    y += 8 if plan.count("zone", tier) else 0
    inside = [bar for bar in out.bars.values() if bar.box.kind == "nvswitch" and bar.tier == tier]
    for lane in sorted({bar.lane for bar in inside}):
        for bar in inside:
            if bar.lane == lane:
                bar.y = y + 2
        y += bar_height(out) + 10
    # A pool's title stands at its foot: links come in from above.
    y += TITLE if tier else 4
    out.tiers[tier] = (out.tiers[tier][0], y)
    return y


def _place_network(out: Levels, y: float) -> float:
    bars = [bar for bar in out.bars.values() if bar.box.kind == "netswitch"]
    y += 26 if bars else 0
    for lane in sorted({bar.lane for bar in bars}):
        linked = any(bar.lane > lane for bar in bars)
        for bar in bars:
            if bar.lane == lane:
                bar.y = y
        y += bar_height(out) + (32 if linked else 8)
    return y


def bar_height(out: Levels) -> float:
    """How high a bar is: its name, and the routes that turn in it."""
    return BAR + g.ROUTE * out.grid.routes


def _place_bars(outline: Outline, grid: Grid, out: Levels) -> None:
    lanes: dict[tuple[str, int], list[tuple[float, float, int]]] = {}
    names = {box.name for box in grid.bars}
    waiting = []
    for box in grid.bars:
        ends = _ends_above(outline, grid, box.name)
        between = [line for line in outline.lines if box.name in (line.a, line.b) and {line.a, line.b} <= names]
        if not ends:
            waiting.append((box, between))
            continue
        left = min(x for x, _ in ends) - g.inset_of(grid.routes)
        right = max(x for x, _ in ends) + 62 + sum(g.label_width(line) + 24 for line in between)
        _add_bar(out, lanes, box, left, right, 1 if any(cell.pooled for _, cell in ends) else 0)
    for box, between in waiting:
        others = [out.bars[o] for line in between for o in (line.a, line.b) if o in out.bars and o != box.name]
        left = min((bar.x for bar in others), default=g.PAD_HOST)
        right = max((bar.x + bar.w for bar in others), default=left + 140)
        _add_bar(out, lanes, box, left, right, 1 if others else 0)
        if others:
            out.bars[box.name].lane = 1 + max(bar.lane for bar in others)


def _ends_above(outline: Outline, grid: Grid, name: str) -> list[tuple[float, Cell]]:
    found = []
    for line in outline.lines:
        if name in (line.a, line.b):
            other = grid.cells.get(line.b if line.a == name else line.a)
            if other is not None:
                found.append((other.drop_at.get(line, other.port), other))
    return found


def _add_bar(
    out: Levels,
    lanes: dict[tuple[str, int], list[tuple[float, float, int]]],
    box: OutlineBox,
    left: float,
    right: float,
    tier: int,
) -> None:
    wanted = text_width(box.title, g.NAME, True) + text_width(box.detail, g.SMALL) + 40 + g.ROUTE * out.grid.routes
    right = max(right, left + wanted)
    kind = (box.kind, tier if box.kind == "nvswitch" else 9)
    lane = free_lane(lanes.setdefault(kind, []), left, right)
    out.bars[box.name] = BarPlace(box, left, right - left, tier, lane, h=bar_height(out))
    out.grid.width = max(out.grid.width, right + g.PAD_HOST)


def _run_ways(outline: Outline, out: Levels, plan: Lanes) -> None:
    tops: dict[str, int] = {}
    drawn: dict[frozenset[str], int] = {}
    for line in outline.lines:
        way = _way(out, plan, line, tops, drawn)
        if way is not None:
            out.ways.append(way)


def _way(
    out: Levels, plan: Lanes, line: OutlineLine, tops: dict[str, int], drawn: dict[frozenset[str], int]
) -> Way | None:
    cells, bars = out.grid.cells, out.bars
    one, other = cells.get(line.a), cells.get(line.b)
    if one is None and other is None:
        return between_bars(bars.get(line.a), bars.get(line.b), line)
    if one is None or other is None:
        cell, bar = one or other, bars.get(line.a if one is None else line.b)
        return _to_bar(plan, line, cell, bar, one is None) if cell and bar else None
    if line in plan.level:
        return _level(one, other, line, drawn, out.grid.routes)
    if line.tree:
        return _straight(plan, line, one, other)
    return _by_lane(out, plan, line, one, other, tops)


def _straight(plan: Lanes, line: OutlineLine, one: Cell, other: Cell) -> Way:
    """Down to a child: links of several kinds run side by side, their labels under one another at the last."""
    alike = plan.alike(line) or [line]
    before = alike[: alike.index(line)]
    x, start = other.port + g.BESIDE * len(before), one.y + one.h
    down = g.STEP * sum(len(g.label_lines(each)) for each in before)
    return Way(line, [(x, start), (x, other.y)], (other.port + g.BESIDE * (len(alike) - 1), start + down))


def _bottom(plan: Lanes, line: OutlineLine, cell: Cell) -> Point:
    if line in cell.drop_at:
        return (cell.drop_at[line], cell.y + cell.h)
    bottoms = plan.bottoms(cell)
    index = bottoms.index(line) if line in bottoms else 0
    step = min(9.0, (cell.w - 20) / max(1, len(bottoms)))
    return (cell.port + step * index, cell.y + cell.h)


def _to_bar(plan: Lanes, line: OutlineLine, cell: Cell, bar: BarPlace, flipped: bool) -> Way:
    x, y = _bottom(plan, line, cell)
    points = [(x, y), (x, bar.y)]
    return Way(line, points[::-1] if flipped else points, (x, y))


def between_bars(one: BarPlace | None, other: BarPlace | None, line: OutlineLine) -> Way | None:
    """The way of a link that joins two bars, None if an end is none."""
    if one is None or other is None:
        return None
    upper, lower = (one, other) if one.y <= other.y else (other, one)
    x = min(upper.x + upper.w, lower.x + lower.w) - g.label_width(line) - 16
    points = [(x, upper.y + upper.h), (x, lower.y)]
    return Way(line, points if upper is one else points[::-1], (x, upper.y + upper.h))


def _level(one: Cell, other: Cell, line: OutlineLine, drawn: dict[frozenset[str], int], routes: int) -> Way:
    left, right = (one, other) if one.x < other.x else (other, one)
    key = frozenset((line.a, line.b))
    index = drawn[key] = drawn.get(key, -1) + 1
    h = min(left.h, right.h)
    # With routes beside it the link keeps low, so that they pass under the names.
    y = left.y + (h - 4 if routes else min(h - 5, h / 2 + 12 * index))
    points = [(left.x + left.w, y), (right.x, y)]
    middle = ((points[0][0] + points[1][0]) / 2, y)
    return Way(line, points if left is one else points[::-1], middle, level=True)


def _by_lane(out: Levels, plan: Lanes, line: OutlineLine, one: Cell, other: Cell, tops: dict[str, int]) -> Way:
    kind, row, lane = plan.lane[line]
    y = out.lanes[(f"{kind}{row}", lane)]
    flipped = one.row > other.row
    upper, lower = (other, one) if flipped else (one, other)
    x, start = _bottom(plan, line, upper)
    if upper.row == lower.row:
        end = _bottom(plan, line, lower)
    else:
        tops[lower.box.name] = tops.get(lower.box.name, 0) + 1
        inside = lower.x + 4 <= x <= lower.x + lower.w - 4 and abs(x - lower.port) > 12
        side = lower.x + lower.w - 12.0 * tops[lower.box.name] if x > lower.port else lower.x + 7
        end = (x if inside else side, lower.y)
    points = [(x, start), end] if end[0] == x else [(x, start), (x, y), (end[0], y), end]
    straight = upper.row != lower.row
    label = (x, start) if straight else ((x + end[0]) / 2, y)
    return Way(line, points[::-1] if flipped else points, label, laned=not straight)


def shown_cells(cells: Iterable[Cell]) -> tuple[float, float]:
    """The left and right ends of cells and all beneath them."""
    every = [inner for cell in cells for inner in cell.walk()]
    return min(cell.x for cell in every), max(cell.x + cell.w for cell in every)


__all__ = [
    "MIRRORED",
    "BarPlace",
    "Levels",
    "Way",
    "bar_height",
    "between_bars",
    "detail_lines",
    "one_line",
    "place_levels",
    "shown_cells",
]
