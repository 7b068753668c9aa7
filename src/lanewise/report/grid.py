"""Where the boxes of a drawing go: every device owns a column, its children stand inside it, one row a level.

A column is nobody else's all the polyline down, so a link to a child is one straight vertical line, and nothing
crosses it unless it must.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from lanewise.report.shapes import cut, text_width
from lanewise.results.outline import Outline, OutlineBox, OutlineLine

NAME, SMALL, LABEL = 10.5, 9.0, 9.0  # font sizes in px
LEAF, STEP, CLEAR = 70.0, 11.0, 5.0  # narrowest leaf, line of text, text to border
PAD_NUMA, PAD_HOST, PAD_POOL = 9.0, 11.0, 13.0
GAP_LEAF, GAP_TREE, GAP_TOP = 7.0, 13.0, 26.0
ROUTE = 5.0  # between two routes side by side
LINK_GAP = 9.0  # between two links of different kinds that join the same two boxes
WIDEST, DETAILS = 86, 3  # px and lines that the title of a part may take in a leaf
BARS = ("nvswitch", "netswitch")


@dataclass
class GridCell:
    """One device box in the grid; `drops` are thin columns at its right where other links leave downward, by width."""

    box: OutlineBox
    parent: GridCell | None = None
    children: list[GridCell] = field(default_factory=list)
    drops: dict[OutlineLine, float] = field(default_factory=dict)
    label_widths: dict[str, float] = field(default_factory=dict)
    pooled: bool = False
    entered: bool = False  # whether a highlighted route passes from its parent to it or back
    row: int = 0
    x: float = 0.0
    y: float = 0.0
    w: float = 0.0
    h: float = 0.0
    port: float = 0.0
    drop_at: dict[OutlineLine, float] = field(default_factory=dict)

    @property
    def leaf(self) -> bool:
        """Whether nothing hangs under it."""
        return not self.children and not self.drops

    def walk(self) -> Iterator[GridCell]:
        """This cell and all beneath it, left to right."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass
class Grid:
    """All cells with their columns placed: `tops` in order, rows counted from the hosts' CPUs down."""

    cells: dict[str, GridCell]
    tops: list[tuple[OutlineBox, list[GridCell]]]
    bars: list[OutlineBox]
    routes: int
    first_pool_row: int
    width: float = 0.0

    def rows(self) -> dict[int, list[GridCell]]:
        """Cells by row, left to right."""
        rows: dict[int, list[GridCell]] = {}
        for cell in sorted(self.cells.values(), key=lambda cell: (cell.row, cell.x)):
            rows.setdefault(cell.row, []).append(cell)
        return rows


def place_columns(outline: Outline) -> Grid:
    """The grid of an outline: rows and x positions, no y yet."""
    grid = _cells(outline)
    _find_drops(outline, grid)
    gaps = _lateral_gaps(outline, grid)
    x = PAD_HOST
    for box, roots in grid.tops:
        x = _place_top(box, roots, x, gaps, grid) + GAP_TOP
    grid.width = x - GAP_TOP + PAD_HOST
    for cell in grid.cells.values():
        _set_port(cell, grid.routes)
    return grid


def lateral(outline: Outline, grid: Grid) -> list[OutlineLine]:
    """Links between neighbours in one row: drawn as one level line."""
    order = _row_order(grid)
    return [
        line
        for line in outline.lines
        if not line.tree and line.kind not in ("nvlink", "network") and {line.a, line.b} <= grid.cells.keys()
        if grid.cells[line.a].row == grid.cells[line.b].row and abs(order[line.a] - order[line.b]) == 1
    ]


def label_lines(line: OutlineLine, down: str = "↓", up: str = "↑") -> list[str]:
    """The label of a link, line by line: what it is, then the goodput of each loaded direction in GB/s."""
    texts = [line.label] if line.label else []
    for arrow, load in ((down, line.load_ab), (up, line.load_ba)):
        if load is not None:
            texts.append(f"{arrow} {load / 1e9:.1f} GB/s")
    return texts


def label_width(line: OutlineLine) -> float:
    """The widest of those texts, px."""
    return max((text_width(text, LABEL, bold=True) for text in label_lines(line)), default=0.0)


def _cells(outline: Outline) -> Grid:
    cells: dict[str, GridCell] = {}
    tops: list[tuple[OutlineBox, list[GridCell]]] = []
    bars: list[OutlineBox] = []
    for top in outline.boxes:
        roots: list[GridCell] = []
        for box in _devices(top):
            if box.kind in BARS:
                bars.append(box)
            else:
                roots.append(_cell(box, None, cells, 0))
        if roots:
            tops.append((top, roots))
    above = {line.b: line.a for line in outline.lines if line.tree}
    hanging = [cell for _, roots in tops for cell in roots if above.get(cell.box.name) in cells]
    base = 1 + max((cell.row for cell in cells.values() if _root(cell) not in hanging), default=0)
    for cell in hanging:
        parent = cells[above[cell.box.name]]
        cell.parent = parent
        parent.children.append(cell)
        for inner in cell.walk():
            inner.pooled, inner.row = True, inner.row + base
    upright = [(box, [cell for cell in roots if cell.parent is None]) for box, roots in tops]
    grid = Grid(cells, [(box, roots) for box, roots in upright if roots], bars, len(outline.paths), base)
    steps = {step for path in outline.paths for step in pairwise(path.nodes)}
    for line in outline.lines:
        if line.tree and line.b in cells:
            cells[line.b].entered = not steps.isdisjoint({(line.a, line.b), (line.b, line.a)})
            widths = cells[line.b].label_widths
            widths["top"] = max(label_width(line), widths["top"] + LINK_GAP if "top" in widths else 0.0)
        elif not line.tree:
            for end in {line.a, line.b} & cells.keys():
                widths = cells[end].label_widths
                widths["bottom"] = max(widths.get("bottom", 0.0), label_width(line))
    return grid


def _devices(top: OutlineBox) -> list[OutlineBox]:
    if not top.container:
        return [top]
    return [device for child in top.children for device in _devices(child)]


def _cell(box: OutlineBox, parent: GridCell | None, cells: dict[str, GridCell], row: int) -> GridCell:
    cell = GridCell(box, parent, row=row)
    cells[box.name] = cell
    cell.children = [_cell(child, cell, cells, row + 1) for child in box.children]
    return cell


def _root(cell: GridCell) -> GridCell:
    while cell.parent is not None:
        cell = cell.parent
    return cell


def _find_drops(outline: Outline, grid: Grid) -> None:
    """Give every link that leaves a box with children downward a column of its own."""
    level = set(lateral(outline, grid))
    for line in outline.lines:
        if line.tree or line in level:
            continue
        ends = [grid.cells[end] for end in (line.a, line.b) if end in grid.cells]
        upper = min((cell.row for cell in ends), default=0)
        for cell in ends:
            enters_top = len(ends) == 2 and cell.row > upper
            if cell.children and not enters_top:
                cell.drops[line] = label_width(line) + 14 + ROUTE * grid.routes


def _row_order(grid: Grid) -> dict[str, int]:
    count: dict[int, int] = {}
    order = {}
    for _, roots in grid.tops:
        for root in roots:
            for cell in root.walk():
                order[cell.box.name] = count.get(cell.row, 0)
                count[cell.row] = order[cell.box.name] + 1
    return order


def _lateral_gaps(outline: Outline, grid: Grid) -> dict[tuple[str, str], float]:
    """How far apart the columns of two level neighbours must stand so that the label fits between them."""
    gaps: dict[tuple[str, str], float] = {}
    for line in lateral(outline, grid):
        left, right = _meet(grid.cells[line.a], grid.cells[line.b])
        width = label_width(line) + 22 + ROUTE * grid.routes
        for key in ((left, right), (right, left)):
            gaps[key] = max(gaps.get(key, 0.0), width)
    return gaps


def _meet(start: GridCell, end: GridCell) -> tuple[str, str]:
    """The two columns side by side, or roots, that hold a cell each."""
    pairs = zip(_line_of(start), _line_of(end), strict=False)
    return next((a.box.name, b.box.name) for a, b in pairs if a is not b)


def _line_of(cell: GridCell) -> list[GridCell]:
    """The cells from the root down to this one."""
    return [*(_line_of(cell.parent) if cell.parent else ()), cell]


def _place_top(
    box: OutlineBox, roots: list[GridCell], x: float, gaps: dict[tuple[str, str], float], grid: Grid
) -> float:
    """Place the columns of one host or pool from `x` on; the x where it ends."""
    split = any(child.kind == "numa" for child in box.children)
    inner = PAD_NUMA if split else 0.0
    x += PAD_HOST if box.container else 0.0
    for index, root in enumerate(roots):
        if index:
            x += max(GAP_TREE, gaps.get((roots[index - 1].box.name, root.box.name), 0.0))
        x += inner
        x += _place(root, x, gaps, grid) + inner
    return x + (PAD_HOST if box.container else 0.0)


def _place(cell: GridCell, x: float, gaps: dict[tuple[str, str], float], grid: Grid) -> float:
    """Place a cell and all beneath it with its left edge at `x`; its width."""
    pad = PAD_POOL if cell.pooled and not (cell.parent and cell.parent.pooled) else 0.0
    if cell.leaf:
        cell.x, cell.w = x + pad, _leaf_width(cell, grid)
        return cell.w + 2 * pad
    inset = 5.0
    at = x + pad + inset
    for index, child in enumerate(cell.children):
        if index:
            before = cell.children[index - 1]
            both = before.leaf and child.leaf
            at += max(GAP_LEAF if both else GAP_TREE, gaps.get((before.box.name, child.box.name), 0.0))
        at += _place(child, at, gaps, grid)
    for line, width in cell.drops.items():
        at += GAP_LEAF if cell.children else 0.0
        cell.drop_at[line] = at + 6 + ROUTE * grid.routes
        at += width
    inside = at - (x + pad + inset)
    own = max(inside + 2 * inset, _own_width(cell, grid))
    if own > inside + 2 * inset:
        _shift(cell, (own - inside - 2 * inset) / 2 if len(cell.children) > 1 else 0.0)
    cell.x, cell.w = x + pad, own
    return own + 2 * pad


def _shift(cell: GridCell, by: float) -> None:
    for child in cell.children:
        for inner in child.walk():
            inner.x += by
            inner.drop_at = {line: at + by for line, at in inner.drop_at.items()}
    cell.drop_at = {line: at + by for line, at in cell.drop_at.items()}


def inset_of(routes: int) -> float:
    """The distance of a leaf's link from its left border, which leaves room for the routes."""
    return 11.0 + ROUTE * routes


def text_area(cell: GridCell, routes: int) -> tuple[float, float]:
    """The x and the width of a box's text, clear of the routes that enter at the left of its port."""
    left, right = cell.x + CLEAR, cell.x + cell.w - CLEAR
    if cell.leaf:
        left = cell.x + _leaf_inset(routes)
    elif cell.entered:
        before, after = cell.port - 7 - ROUTE * routes, cell.port + CLEAR
        if one_line_width(cell.box) > before - left and right - after > before - left:
            return after, right - after
        right = before
    return left, right - left


def one_line_width(box: OutlineBox) -> float:
    """The width of name and part on one line, px."""
    return text_width(box.title, NAME, bold=True) + (8 + text_width(box.detail, SMALL) if box.detail else 0.0)


def _leaf_inset(routes: int) -> float:
    return inset_of(routes) - 1 if routes else CLEAR


def _leaf_width(cell: GridCell, grid: Grid) -> float:
    name = text_width(cell.box.title, NAME, bold=True) + _leaf_inset(grid.routes) + CLEAR
    label = max((inset_of(grid.routes) + 7 + width for width in cell.label_widths.values()), default=0.0)
    return max(LEAF + ROUTE * grid.routes, min(name, 130.0), label, _detail_width(cell, grid.routes))


def _detail_width(cell: GridCell, routes: int) -> float:
    """How wide a leaf must be so that its part's title is not cut; where that takes too much, it is."""
    around = _leaf_inset(routes) + CLEAR
    widths = range(int(LEAF), int(WIDEST + around), 2)
    return next((w for w in widths if not cut(cell.box.detail, SMALL, w - around, DETAILS)), 0.0)


def _own_width(cell: GridCell, grid: Grid) -> float:
    name = text_width(cell.box.title, NAME, bold=True) + 2 * CLEAR
    label = inset_of(grid.routes) + 7 + cell.label_widths.get("top", 0.0)
    return max(LEAF + 40, min(name, 160.0), label)


def _set_port(cell: GridCell, routes: int) -> None:
    """The x of the link to the parent: in line with an only child, else near the middle."""
    last = cell
    while len(last.children) == 1 and not last.drops:
        last = last.children[0]
    if last.leaf:
        cell.port = last.x + inset_of(routes)
    else:
        # Routes enter at the left of the port: with room for the text before them, they cross none of it.
        text = CLEAR + one_line_width(cell.box) + 8 + ROUTE * routes if cell.entered else 0.0
        cell.port = cell.x + max(inset_of(routes), min(max(cell.w / 2 - 20, text), cell.w - 80))
