"""The y side of the grid: rows, corridors with their tracks, zones of brackets and bars, and every link's polyline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lanewise.report import grid as g
from lanewise.report.grid import Grid, GridCell
from lanewise.report.shapes import text_width, wrap
from lanewise.results.outline import Outline, OutlineBox, OutlineLine, OutlineSpan

Point = tuple[float, float]
TRACK, SPAN, BAR, TITLE = 19.0, 26.0, 22.0, 17.0
MIRRORED = 2  # the tier of hosts drawn upside down


@dataclass
class BarPlace:
    """A switch that joins links from above: a wide low box."""

    box: OutlineBox
    x: float
    w: float
    tier: int
    track: int = 0
    y: float = 0.0
    h: float = BAR


@dataclass
class LinkPolyline:
    """The course of a link from its `a` to its `b`, and where its label starts."""

    line: OutlineLine
    points: list[Point]
    label: Point
    level: bool = False
    in_track: bool = False
    upward: bool = False


@dataclass
class Levels:
    """Everything placed: cells have their y, bars and brackets too, `polylines` tells how every link runs."""

    grid: Grid
    bars: dict[str, BarPlace] = field(default_factory=dict)
    polylines: list[LinkPolyline] = field(default_factory=list)
    spans: list[tuple[OutlineSpan, list[GridCell], float]] = field(default_factory=list)
    tiers: dict[int, tuple[float, float]] = field(default_factory=dict)
    tracks: dict[tuple[str, int], float] = field(default_factory=dict)
    height: float = 0.0
    mirrored: set[str] = field(default_factory=set)


class Tracks:
    """Which links need a track of their own, and in which corridor or zone it runs."""

    def __init__(self, outline: Outline, grid: Grid) -> None:
        self.grid = grid
        self.level = set(g.lateral(outline, grid))
        self.track: dict[OutlineLine, tuple[str, int, int]] = {}
        self._below: dict[str, list[OutlineLine]] = {}
        self.spans = {0: 0, 1: 0}
        self.brackets: list[tuple[OutlineSpan, list[GridCell], int, int]] = []
        self._assign(outline)
        self._assign_spans(outline)

    def parallel(self, line: OutlineLine) -> list[OutlineLine]:
        """The links from a box to one below it that join the same two, this one among them."""
        return [link for link in self._below.get(line.a, ()) if link.tree and (link.a, link.b) == (line.a, line.b)]

    def below(self, cell: GridCell) -> list[OutlineLine]:
        """The links whose label is drawn below a cell."""
        return self._below.get(cell.box.name, [])

    def bottoms(self, cell: GridCell) -> list[OutlineLine]:
        """The links that leave a leaf downward, in the order of their ports."""
        return [line for line in self.below(cell) if not (line.tree and line.a == cell.box.name)]

    def count(self, kind: str, row: int) -> int:
        """How many tracks a corridor needs."""
        used = [track for where, at, track in self.track.values() if (where, at) == (kind, row)]
        return 1 + max(used, default=-1)

    def _assign(self, outline: Outline) -> None:
        busy: dict[tuple[str, int], list[tuple[float, float, int]]] = {}
        for line in outline.lines:
            ends = [self.grid.cells[end] for end in (line.a, line.b) if end in self.grid.cells]
            if line in self.level or not ends:
                continue
            upper = min(ends, key=lambda cell: cell.row)
            for cell in ends:
                if cell is upper or cell.row == upper.row:
                    self._below.setdefault(cell.box.name, []).append(line)
            if line.tree or len(ends) < 2:
                continue
            where = self._where(line, ends)
            left, right = sorted(cell.drop_at.get(line, cell.port) for cell in ends)
            half = text_width("  ".join(g.label_lines(line, "→", "←")), g.LABEL, bold=True) / 2 + 4
            middle = (left + right) / 2
            span = (min(left, middle - half), max(right, middle + half))
            track = free_track(busy.setdefault(where, []), *span)
            self.track[line] = (*where, track)

    def _where(self, line: OutlineLine, ends: list[GridCell]) -> tuple[str, int]:
        low = max(cell.row for cell in ends)
        if line.kind == "nvlink":
            return ("zone", 1 if any(cell.pooled for cell in ends) else 0)
        if ends[0].row == ends[1].row:
            return ("row", low)
        return ("gap", low) if low == self.grid.first_pool_row else ("row", low - 1)

    def _assign_spans(self, outline: Outline) -> None:
        busy: dict[tuple[str, int], list[tuple[float, float, int]]] = {}
        for span in outline.spans:
            cells = sorted((self.grid.cells[m] for m in span.members if m in self.grid.cells), key=lambda c: c.x)
            if not cells:
                continue
            tier = 1 if cells[0].pooled else 0
            half = text_width(span.label, g.LABEL, bold=True) / 2 + 3
            left, right = cells[0].x, cells[-1].x + cells[-1].w
            middle = (left + right) / 2
            ends = (min(left, middle - half), max(right, middle + half))
            track = free_track(busy.setdefault(("span", tier), []), *ends)
            self.brackets.append((span, cells, tier, track))
            self.spans[tier] = max(self.spans[tier], track + 1)


def free_track(busy: list[tuple[float, float, int]], left: float, right: float) -> int:
    """The lowest track where nothing overlaps `left` to `right`; it is taken from then on."""
    taken = {track for start, end, track in busy if start < right + 4 and end > left - 4}
    track = next(index for index in range(len(taken) + 1) if index not in taken)
    busy.append((left, right, track))
    return track


def detail_lines(cell: GridCell, routes: int) -> list[str]:
    """The part and the binding under a device's name, broken to fit its box."""
    lines = wrap(cell.box.detail, g.SMALL, g.text_area(cell, routes)[1], g.DETAILS if cell.leaf else 2)
    if cell.box.bound:
        lines.append(f"for {cell.box.bound}")
    elif cell.box.unbound:
        lines.append("not bound")
    return lines


def one_line(cell: GridCell, routes: int) -> bool:
    """Whether name and part are on one line in a wide box."""
    return not cell.leaf and not cell.box.bound and g.one_line_width(cell.box) <= g.text_area(cell, routes)[1]


def place_levels(outline: Outline, grid: Grid, top: float) -> Levels:
    """Give every row, track, bracket and bar its y, from `top` on, and every link its polyline."""
    out = Levels(grid)
    plan = Tracks(outline, grid)
    _place_bars(outline, grid, out)
    split = any(child.kind == "numa" for box in outline.boxes for child in box.children)
    y, rows = top + TITLE + (20.0 if split else 2.0), grid.rows()
    last = max(rows, default=0)
    out.tiers[0] = (top, 0.0)
    for row, cells in rows.items():
        if row == grid.first_pool_row:
            y = _end_tier(out, plan, 0, y)
            y = _track_rows(out, "gap", row, plan.count("gap", row), y) + (TRACK if plan.count("gap", row) else 14)
            out.tiers[1] = (y, 0.0)
            y += 7
        y = _place_row(out, plan, row, cells, y)
    y = _end_tier(out, plan, 1 if last >= grid.first_pool_row else 0, y)
    out.height = _place_network(out, y)
    tops: dict[str, int] = {}
    drawn: dict[frozenset[str], int] = {}
    polylines = (_polyline(out, plan, line, tops, drawn) for line in outline.lines)
    out.polylines = [polyline for polyline in polylines if polyline is not None]
    return out


def _place_row(out: Levels, plan: Tracks, row: int, cells: list[GridCell], y: float) -> float:
    routes = out.grid.routes
    through = g.ROUTE * routes + (6 if routes else 0)
    for cell in cells:
        cell.y, cell.h = y, 18 + g.STEP * (0 if one_line(cell, routes) else len(detail_lines(cell, routes))) + through
    # Leaves of a row are equally high; boxes with children stay slim, their links just run longer.
    for group in ([c for c in cells if c.leaf], [c for c in cells if not c.leaf and routes]):
        height = max((cell.h for cell in group), default=0.0)
        for cell in group:
            cell.h = height
    y += max(cell.h for cell in cells)
    # The largest number of text lines at any link.
    links = (plan.parallel(line) if line.tree else [line] for cell in cells for line in plan.below(cell))
    texts = max((sum(len(g.label_lines(link)) for link in beside) for beside in links), default=0)
    y += 5 + g.STEP * texts
    y = _track_rows(out, "row", row, plan.count("row", row), y)
    return y + (13 if texts else 4)


def _track_rows(out: Levels, kind: str, row: int, count: int, y: float) -> float:
    for track in range(count):
        y += TRACK
        out.tracks[(f"{kind}{row}", track)] = y
    return y


def _end_tier(out: Levels, plan: Tracks, tier: int, y: float) -> float:
    """Brackets, NVLink tracks and NVSwitch bars under the rows of a tier; the y of its lower border."""
    out.spans += [(span, cells, y + 7 + SPAN * track) for span, cells, at, track in plan.brackets if at == tier]
    y += SPAN * plan.spans[tier]
    y = _track_rows(out, "zone", tier, plan.count("zone", tier), y)
    y += 8 if plan.count("zone", tier) else 0
    inside = [bar for bar in out.bars.values() if bar.box.kind == "nvswitch" and bar.tier == tier]
    for track in sorted({bar.track for bar in inside}):
        for bar in inside:
            if bar.track == track:
                bar.y = y + 2
        y += bar_height(out) + 10
    # A pool's title is at its bottom: links enter from above.
    y += TITLE if tier else 4
    out.tiers[tier] = (out.tiers[tier][0], y)
    return y


def _place_network(out: Levels, y: float) -> float:
    bars = [bar for bar in out.bars.values() if bar.box.kind == "netswitch"]
    y += 26 if bars else 0
    for track in sorted({bar.track for bar in bars}):
        linked = any(bar.track > track for bar in bars)
        for bar in bars:
            if bar.track == track:
                bar.y = y
        y += bar_height(out) + (32 if linked else 8)
    return y


def bar_height(out: Levels) -> float:
    """How high a bar is: its name, and the routes that turn in it."""
    return BAR + g.ROUTE * out.grid.routes


def _place_bars(outline: Outline, grid: Grid, out: Levels) -> None:
    tracks: dict[tuple[str, int], list[tuple[float, float, int]]] = {}
    names = {box.name for box in grid.bars}
    unlinked = []
    for box in grid.bars:
        ends = _ends_above(outline, grid, box.name)
        between = [line for line in outline.lines if box.name in (line.a, line.b) and {line.a, line.b} <= names]
        if not ends:
            unlinked.append((box, between))
            continue
        left = min(x for x, _ in ends) - g.inset_of(grid.routes)
        right = max(x for x, _ in ends) + 62 + sum(g.label_width(line) + 24 for line in between)
        _add_bar(out, tracks, box, left, right, 1 if any(cell.pooled for _, cell in ends) else 0)
    for box, between in unlinked:
        peers = [out.bars[end] for line in between for end in (line.a, line.b) if end in out.bars and end != box.name]
        left = min((bar.x for bar in peers), default=g.PAD_HOST)
        right = max((bar.x + bar.w for bar in peers), default=left + 140)
        _add_bar(out, tracks, box, left, right, 1 if peers else 0)
        if peers:
            out.bars[box.name].track = 1 + max(bar.track for bar in peers)


def _ends_above(outline: Outline, grid: Grid, name: str) -> list[tuple[float, GridCell]]:
    """The devices linked to a bar, and the x at which the link of each leaves it."""
    links = [(line, line.b if line.a == name else line.a) for line in outline.lines if name in (line.a, line.b)]
    cells = [(line, grid.cells[end]) for line, end in links if end in grid.cells]
    return [(cell.drop_at.get(line, cell.port), cell) for line, cell in cells]


def _add_bar(
    out: Levels,
    tracks: dict[tuple[str, int], list[tuple[float, float, int]]],
    box: OutlineBox,
    left: float,
    right: float,
    tier: int,
) -> None:
    right = max(right, left + g.one_line_width(box) + 32 + g.ROUTE * out.grid.routes)
    kind = (box.kind, tier if box.kind == "nvswitch" else 9)
    track = free_track(tracks.setdefault(kind, []), left, right)
    out.bars[box.name] = BarPlace(box, left, right - left, tier, track, h=bar_height(out))
    out.grid.width = max(out.grid.width, right + g.PAD_HOST)


def _polyline(
    out: Levels, plan: Tracks, line: OutlineLine, tops: dict[str, int], drawn: dict[frozenset[str], int]
) -> LinkPolyline | None:
    cells, bars = out.grid.cells, out.bars
    start, end = cells.get(line.a), cells.get(line.b)
    if start is None and end is None:
        return between_bars(bars.get(line.a), bars.get(line.b), line)
    if start is None or end is None:
        cell, bar = start or end, bars.get(line.a if start is None else line.b)
        return _to_bar(plan, line, cell, bar, start is None) if cell and bar else None
    if line in plan.level:
        return _level(start, end, line, drawn, out.grid.routes)
    if line.tree:
        return _straight(plan, line, start, end)
    return _by_track(out, plan, line, start, end, tops)


def _straight(plan: Tracks, line: OutlineLine, parent: GridCell, child: GridCell) -> LinkPolyline:
    """Down to a child: links of several kinds run side by side, their labels under one another at the last."""
    links = plan.parallel(line) or [line]
    before = links[: links.index(line)]
    x, y = child.port + g.LINK_GAP * len(before), parent.y + parent.h
    down = g.STEP * sum(len(g.label_lines(link)) for link in before)
    return LinkPolyline(line, [(x, y), (x, child.y)], (child.port + g.LINK_GAP * (len(links) - 1), y + down))


def _bottom(plan: Tracks, line: OutlineLine, cell: GridCell) -> Point:
    if line in cell.drop_at:
        return (cell.drop_at[line], cell.y + cell.h)
    bottoms = plan.bottoms(cell)
    index = bottoms.index(line) if line in bottoms else 0
    step = min(9.0, (cell.w - 20) / max(1, len(bottoms)))
    return (cell.port + step * index, cell.y + cell.h)


def _to_bar(plan: Tracks, line: OutlineLine, cell: GridCell, bar: BarPlace, flipped: bool) -> LinkPolyline:
    x, y = _bottom(plan, line, cell)
    points = [(x, y), (x, bar.y)]
    return LinkPolyline(line, points[::-1] if flipped else points, (x, y))


def between_bars(start: BarPlace | None, end: BarPlace | None, line: OutlineLine) -> LinkPolyline | None:
    """The polyline of a link that joins two bars, None if an end is none."""
    if start is None or end is None:
        return None
    upper, lower = (start, end) if start.y <= end.y else (end, start)
    x = min(upper.x + upper.w, lower.x + lower.w) - g.label_width(line) - 16
    points = [(x, upper.y + upper.h), (x, lower.y)]
    return LinkPolyline(line, points if upper is start else points[::-1], (x, upper.y + upper.h))


def _level(
    start: GridCell, end: GridCell, line: OutlineLine, drawn: dict[frozenset[str], int], routes: int
) -> LinkPolyline:
    left, right = (start, end) if start.x < end.x else (end, start)
    key = frozenset((line.a, line.b))
    index = drawn[key] = drawn.get(key, -1) + 1
    h = min(left.h, right.h)
    # The link of a box with routes is drawn low, so that the routes pass under the names.
    y = left.y + (h - 4 if routes else min(h - 5, h / 2 + 12 * index))
    points = [(left.x + left.w, y), (right.x, y)]
    middle = ((points[0][0] + points[1][0]) / 2, y)
    return LinkPolyline(line, points if left is start else points[::-1], middle, level=True)


def _by_track(
    out: Levels, plan: Tracks, line: OutlineLine, start: GridCell, end: GridCell, tops: dict[str, int]
) -> LinkPolyline:
    kind, row, track = plan.track[line]
    level = out.tracks[(f"{kind}{row}", track)]
    flipped = start.row > end.row
    upper, lower = (end, start) if flipped else (start, end)
    x, y = _bottom(plan, line, upper)
    if upper.row == lower.row:
        last = _bottom(plan, line, lower)
    else:
        tops[lower.box.name] = tops.get(lower.box.name, 0) + 1
        inside = lower.x + 4 <= x <= lower.x + lower.w - 4 and abs(x - lower.port) > 12
        side = lower.x + lower.w - 12.0 * tops[lower.box.name] if x > lower.port else lower.x + 7
        last = (x if inside else side, lower.y)
    points = [(x, y), last] if last[0] == x else [(x, y), (x, level), (last[0], level), last]
    straight = upper.row != lower.row
    label = (x, y) if straight else ((x + last[0]) / 2, level)
    return LinkPolyline(line, points[::-1] if flipped else points, label, in_track=not straight)


def shown_cells(cells: Iterable[GridCell]) -> tuple[float, float]:
    """The left and right ends of cells and all beneath them."""
    every = [inner for cell in cells for inner in cell.walk()]
    return min(cell.x for cell in every), max(cell.x + cell.w for cell in every)
