"""Prepare a drawing: from an outline to boxes, lines, texts, markers and groups, every coordinate decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.report import grid as g
from lanewise.report.fold import arrange
from lanewise.report.legend import legend
from lanewise.report.levels import MIRRORED, detail_lines, one_line, shown_cells
from lanewise.report.metrics import clip, text_width
from lanewise.report.paths import route_shapes
from lanewise.report.shapes import BoxShape, GroupShape, LineShape, MarkerShape, Prepared, Shape, TextShape

if TYPE_CHECKING:
    from lanewise.report.grid import Cell
    from lanewise.report.levels import BarPlace, Levels, Way
    from lanewise.results.outline import Outline, OutlineBox, OutlineLine

_STEPS = (0.25, 0.5, 0.75, 0.9)
MARGIN = 8.0


def prepare(outline: Outline) -> Prepared:
    """Every shape of the drawing in drawing order; sizes in px."""
    out = arrange(outline)
    containers = _containers(outline, out)
    edges = [shape for shape in containers if isinstance(shape, BoxShape)]
    width = max([out.grid.width, *(box.x + box.w for box in edges), 420.0]) + MARGIN
    holders = {name: child.name for box in outline.boxes for child in _holders(box) for name in _names(child)}
    keys, height = legend(outline, out.height + 16, width)
    shapes = (
        GroupShape("containers", tuple(containers)),
        # Bars lie under the links: a link to something further down is then seen to cross, not to end there.
        GroupShape("bars", tuple(_bar_shape(bar, holders) for bar in out.bars.values())),
        GroupShape("links", tuple(shape for way in out.ways for shape in _way_shapes(way))),
        GroupShape("devices", tuple(_box_shapes(out, holders))),
        GroupShape("routes", tuple(route_shapes(outline, out))),
        GroupShape("names", tuple(_name_shapes(out))),
        GroupShape("labels", tuple(text for way in out.ways for text in _label_shapes(way, out.grid.routes))),
        GroupShape("legend", tuple(keys)),
    )
    return Prepared(_widest(shapes, width), height + MARGIN, outline.title, shapes)


def _widest(shapes: tuple[Shape, ...], width: float) -> float:
    texts = [text for group in shapes if isinstance(group, GroupShape) for text in group.shapes]
    return max([width, *(text.bounds[2] + MARGIN for text in texts if isinstance(text, TextShape))])


def _containers(outline: Outline, out: Levels) -> list[Shape]:
    shapes: list[Shape] = []
    for box in outline.boxes:
        cells = [out.grid.cells[name] for name in _names(box) if name in out.grid.cells]
        if not box.container or not cells:
            continue
        turned = cells[0].box.name in out.mirrored
        tier = MIRRORED if turned else 1 if cells[0].pooled else 0
        top, bottom = out.tiers[tier]
        left, right = shown_cells([cell for cell in cells if cell.parent not in cells])
        bars = [out.bars[name] for name in _names(box) if name in out.bars]
        right = max([right, *(bar.x + bar.w for bar in bars)])
        split = any(child.kind == "numa" for child in box.children)
        pad = g.PAD_HOST + (g.PAD_NUMA if split else 0)
        pad = min(pad, g.PAD_POOL - 3) if tier == 1 else pad
        wide = max(right - left + 2 * pad, text_width(box.title, g.NAME, True) + 2 * pad)
        shapes.append(BoxShape(left - pad, top, wide, bottom - top, box.kind, box.name))
        shapes.append(TextShape(left - pad + 8, bottom - 6 if tier else top + 14, box.title, g.NAME, "soft", bold=True))
        shapes.extend(_numa_shapes(box, out, bottom if turned else top))
    return shapes


def _numa_shapes(box: OutlineBox, out: Levels, edge: float) -> list[Shape]:
    shapes: list[Shape] = []
    for child in box.children:
        cells = [out.grid.cells[name] for name in _names(child) if name in out.grid.cells]
        if child.kind != "numa" or not cells:
            continue
        left, right = shown_cells([cells[0]])
        own = [cell for cell in cells[0].walk() if not cell.pooled]
        if cells[0].box.name in out.mirrored:
            y, low = min(cell.y for cell in own) - 6, edge - 20 - 6
        else:
            y, low = edge + 20, max(cell.y + cell.h for cell in own)
        title = low if cells[0].box.name in out.mirrored else y + 12
        wide = right - left + 2 * g.PAD_NUMA
        shapes.append(BoxShape(left - g.PAD_NUMA, y, wide, low - y + 6, "numa", child.name, box.name))
        shapes.append(TextShape(left - g.PAD_NUMA + 7, title, child.title, g.SMALL, "soft"))
    return shapes


def _names(box: OutlineBox) -> list[str]:
    own = [] if box.container else [box.name]
    return own + [name for child in box.children for name in _names(child)]


def _box_shapes(out: Levels, holders: dict[str, str]) -> list[Shape]:
    shapes: list[Shape] = []
    for cell in out.grid.cells.values():
        box = cell.box
        look = f"device {box.kind}" + (" unbound" if box.unbound else "")
        tip = ", ".join(part for part in (box.name, box.detail, box.bound and f"for {box.bound}") if part)
        holder = holders.get(box.name, "")
        shapes.append(BoxShape(cell.x, cell.y, cell.w, cell.h, look, box.name, holder, tip))
    return shapes


def _name_shapes(out: Levels) -> list[Shape]:
    shapes = [
        shape
        for cell in out.grid.cells.values()
        for shape in _cell_texts(cell, out.grid.routes, cell.box.name in out.mirrored)
    ]
    shapes += [shape for bar in out.bars.values() for shape in _bar_texts(bar, out.grid.routes)]
    for span, cells, y in out.spans:
        shapes.extend(_span_shapes(span.label, cells, y))
    return shapes


def _holders(box: OutlineBox) -> list[OutlineBox]:
    # Outer first, so that the inner one is what remains in the table.
    return [box, *(child for child in box.children if child.kind == "numa")] if box.container else []


def _cell_texts(cell: Cell, routes: int, turned: bool) -> list[Shape]:
    box, inset = cell.box, g.text_inset(cell, routes)
    # Upside down, routes turn at the upper border, and the name stands below them.
    x, y = cell.x + inset, cell.y + 13 + (g.ROUTE * routes + 2 if turned and routes and not cell.leaf else 0)
    name = clip(box.title, g.NAME, cell.w - inset - g.CLEAR, bold=True)
    shapes: list[Shape] = [TextShape(x, y, name, g.NAME, bold=True)]
    if one_line(cell):
        after = text_width(name, g.NAME, bold=True) + 8
        shapes.append(TextShape(x + after, y, box.detail, g.SMALL, "soft"))
        return shapes
    for index, text in enumerate(detail_lines(cell, routes)):
        shapes.append(TextShape(x, y + g.STEP * (index + 1), text, g.SMALL, "soft"))
    return shapes


def _bar_shape(bar: BarPlace, holders: dict[str, str]) -> Shape:
    box = bar.box
    tip = ", ".join(box.members) or box.name
    return BoxShape(bar.x, bar.y, bar.w, bar.h, f"device {box.kind}", box.name, holders.get(box.name, ""), tip)


def _bar_texts(bar: BarPlace, routes: int) -> list[Shape]:
    x, y = bar.x + g.inset_of(routes) + 5, bar.y + 15
    shapes: list[Shape] = [TextShape(x, y, bar.box.title, g.NAME, bold=True)]
    if bar.box.detail:
        after = text_width(bar.box.title, g.NAME, bold=True) + 8
        shapes.append(TextShape(x + after, y, bar.box.detail, g.SMALL, "soft"))
    return shapes


def _span_shapes(label: str, cells: list[Cell], y: float) -> list[Shape]:
    left, right = cells[0].x + 4, cells[-1].x + cells[-1].w - 4
    ticks = [
        LineShape(((cell.x + cell.w - 14, cell.y + cell.h + 2), (cell.x + cell.w - 14, y)), "span", 1.0)
        for cell in cells
    ]
    rule = LineShape(((left, y), (right, y)), "span", 2.4)
    return [*ticks, rule, TextShape((left + right) / 2, y + 12, label, g.LABEL, "", "middle", bold=True)]


def use_step(use: float | None) -> str:
    """The class of a use: u0 (to 25 %), u1, u2, u3 (to 90 %), u4; '' if unknown."""
    return "" if use is None else f"u{sum(use > step for step in _STEPS)}"


def use_width(use: float | None) -> float:
    """How wide a link is drawn, px."""
    return 1.5 if use is None else 1.6 + 4.4 * min(1.0, max(0.0, use))


def _way_shapes(way: Way) -> list[Shape]:
    line = way.line
    there = _loaded(line.load_ab, line.use_ab)
    back = _loaded(line.load_ba, line.use_ba)
    points = tuple(way.points)
    look, tip = f"link {line.kind}", _tip(line)
    if not there and not back:
        return [*_halo(points, 4.5), LineShape(points, look, 1.5, tip)]
    both = there and back
    apart = (use_width(line.use_ab) + use_width(line.use_ba)) / 4 + 1.2 if both else 0.0
    shapes: list[Shape] = [*_halo(points, use_width(line.use_ab) + 3 + 2 * apart)]
    if there:
        shapes.extend(_directed(_moved(points, -apart), look, line.use_ab, tip))
    if back:
        shapes.extend(_directed(_moved(points, apart)[::-1], look, line.use_ba, tip))
    return shapes


def _halo(points: tuple[tuple[float, float], ...], width: float) -> list[Shape]:
    # A pale casing under each link shows which one passes over where two must cross.
    return [LineShape(points, "halo", width)]


def _loaded(load: float | None, use: float | None) -> bool:
    return bool(load) or bool(use)


def _moved(points: tuple[tuple[float, float], ...], by: float) -> tuple[tuple[float, float], ...]:
    return tuple((x + by, y + (by if len(points) > 2 or points[0][1] == points[-1][1] else 0)) for x, y in points)


def _directed(points: tuple[tuple[float, float], ...], look: str, use: float | None, tip: str) -> list[Shape]:
    width = use_width(use)
    (x0, y0), (x1, y1) = points[-2], points[-1]
    length = max(1e-6, abs(x1 - x0) + abs(y1 - y0))
    dx, dy = (x1 - x0) / length, (y1 - y0) / length
    look = f"{look} {use_step(use) or 'flow'}"
    size = 3.2 + width
    short = (*points[:-1], (x1 - dx * size * 0.9, y1 - dy * size * 0.9))
    return [LineShape(short, look, width, tip), MarkerShape(x1, y1, dx, dy, size, look)]


def _tip(line: OutlineLine) -> str:
    parts = [f"{line.a} to {line.b}", line.label]
    for start, end, load, use in (
        (line.a, line.b, line.load_ab, line.use_ab),
        (line.b, line.a, line.load_ba, line.use_ba),
    ):
        if load is not None or use is not None:
            rate = "" if load is None else f" {load / 1e9:.2f} GB/s"
            share = "" if use is None else f" {100 * use:.0f} % used"
            parts.append(f"{start} to {end}:{rate}{share}")
    return ", ".join(part for part in parts if part)


def _label_shapes(way: Way, routes: int) -> list[Shape]:
    x, y = way.label
    line = way.line
    if way.level:
        return _level_label(way, routes)
    if way.laned:
        text = "  ".join(g.label_lines(line, *_arrows(way)))
        return [TextShape(x, y - 5, text, g.LABEL, "label", "middle")]
    wide = max(use_width(line.use_ab), use_width(line.use_ba))
    x += 4 + wide / 2 if not (_loaded(line.load_ab, line.use_ab) and _loaded(line.load_ba, line.use_ba)) else 4 + wide
    down, up = ("↓", "↑") if way.points[0][1] <= way.points[-1][1] else ("↑", "↓")
    texts = g.label_lines(line, down, up)
    start = y - 5 - g.STEP * (len(texts) - 1) if way.upward else y + 11
    return [
        TextShape(x, start + g.STEP * index, text, g.LABEL, "label", bold=index > 0 or not line.label)
        for index, text in enumerate(texts)
    ]


def _arrows(way: Way) -> tuple[str, str]:
    return ("→", "←") if way.points[0][0] <= way.points[-1][0] else ("←", "→")


def _level_label(way: Way, routes: int) -> list[Shape]:
    x, y = way.label
    texts = g.label_lines(way.line, *_arrows(way))
    shapes: list[Shape] = []
    for index, text in enumerate(texts):
        kind = index == 0 and bool(way.line.label)
        thick = max(use_width(way.line.use_ab), use_width(way.line.use_ba))
        above = y - 5 - thick - (3 + g.ROUTE * routes if routes else 0)
        at = above if kind else y + 10 + thick + g.STEP * (index - (1 if way.line.label else 0))
        shapes.append(TextShape(x, at, text, g.LABEL, "label", "middle", bold=not kind))
    return shapes


__all__ = ["prepare", "use_step", "use_width"]
