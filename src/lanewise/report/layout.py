"""Prepare a drawing: from an outline to boxes, lines, texts, markers and groups, every coordinate decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise.report import grid as g
from lanewise.report.fold import arrange
from lanewise.report.grid import GridCell
from lanewise.report.levels import MIRRORED, BarPlace, Levels, LinkPolyline, detail_lines, one_line, shown_cells
from lanewise.report.paths import ROUTE_COLOURS, route_shapes, shifted
from lanewise.report.shapes import (
    BoxShape,
    Canvas,
    GroupShape,
    LineShape,
    MarkerShape,
    Shape,
    TextShape,
    arrow_head,
    clip,
    text_width,
)
from lanewise.results.outline import Outline, OutlineBox, OutlineLine

_STEPS = (0.25, 0.5, 0.75, 0.9)
MARGIN = 8.0
_TITLE = 12.5  # px: the letters of the system's name


def prepare(outline: Outline) -> Canvas:
    """Every shape of the drawing in drawing order; sizes in px."""
    title = _title(outline)
    out = arrange(outline, title[0].bounds[3] + 8)
    containers = _containers(outline, out)
    edges = [shape for shape in containers if isinstance(shape, BoxShape)]
    width = max([out.grid.width, *(box.x + box.w for box in edges), 420.0]) + MARGIN
    keys, height = legend(outline, out.height + 16, width)
    groups = (
        GroupShape("title", title),
        GroupShape("containers", tuple(containers)),
        # Bars are drawn first: a link to something further down then visibly crosses the bar.
        GroupShape("bars", tuple(_bar_shape(bar) for bar in out.bars.values())),
        GroupShape("links", tuple(shape for polyline in out.polylines for shape in _link_shapes(polyline))),
        GroupShape("devices", tuple(_box_shapes(out))),
        GroupShape("routes", tuple(route_shapes(outline, out))),
        GroupShape("names", tuple(_name_shapes(out))),
        GroupShape("labels", tuple(t for polyline in out.polylines for t in _label_shapes(polyline, out.grid.routes))),
        GroupShape("legend", tuple(keys)),
    )
    texts = [shape for group in groups for shape in group.shapes if isinstance(shape, TextShape)]
    width = max([width, *(text.bounds[2] + MARGIN for text in texts)])
    return Canvas(width, height + MARGIN, outline.title, groups)


def _title(outline: Outline) -> tuple[TextShape, ...]:
    """The system's name, and what it is."""
    name = TextShape(g.PAD_HOST, 16, outline.name, _TITLE, bold=True)
    if outline.title == outline.name:
        return (name,)
    return (name, TextShape(name.bounds[2] + 8, 16, outline.title, g.NAME, "soft"))


def _containers(outline: Outline, out: Levels) -> list[Shape]:
    shapes: list[Shape] = []
    for box in outline.boxes:
        cells = [out.grid.cells[name] for name in box.devices() if name in out.grid.cells]
        if not box.container or not cells:
            continue
        turned = cells[0].box.name in out.mirrored
        tier = MIRRORED if turned else 1 if cells[0].pooled else 0
        top, bottom = out.tiers[tier]
        left, right = shown_cells([cell for cell in cells if cell.parent not in cells])
        bars = [out.bars[name] for name in box.devices() if name in out.bars]
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
        cells = [out.grid.cells[name] for name in child.devices() if name in out.grid.cells]
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
        shapes.append(BoxShape(left - g.PAD_NUMA, y, wide, low - y + 6, "numa", child.name))
        shapes.append(TextShape(left - g.PAD_NUMA + 7, title, child.title, g.SMALL, "soft"))
    return shapes


def _box_shapes(out: Levels) -> list[Shape]:
    shapes: list[Shape] = []
    for cell in out.grid.cells.values():
        box = cell.box
        css_class = f"device {box.kind}" + (" unbound" if box.unbound else "")
        tip = ", ".join(part for part in (box.name, box.detail, box.bound and f"for {box.bound}") if part)
        shapes.append(BoxShape(cell.x, cell.y, cell.w, cell.h, css_class, box.name, tip))
    return shapes


def _name_shapes(out: Levels) -> list[Shape]:
    shapes = [
        shape
        for cell in out.grid.cells.values()
        for shape in _cell_texts(cell, out.grid.routes, cell.box.name in out.mirrored)
    ]
    for bar in out.bars.values():
        shapes += _one_line(bar.box, bar.x + g.inset_of(out.grid.routes) + 5, bar.y + 15)
    for span, cells, y in out.spans:
        shapes.extend(_span_shapes(span.label, cells, y))
    return shapes


def _cell_texts(cell: GridCell, routes: int, turned: bool) -> list[Shape]:
    box, (x, width) = cell.box, g.text_area(cell, routes)
    # Upside down, routes turn at the upper border, and the name is below them.
    y = cell.y + 13 + (g.ROUTE * routes + 2 if turned and routes and not cell.leaf else 0)
    if one_line(cell, routes):
        return _one_line(box, x, y)
    name = TextShape(x, y, clip(box.title, g.NAME, width, bold=True), g.NAME, bold=True)
    lines = enumerate(detail_lines(cell, routes), 1)
    return [name, *(TextShape(x, y + g.STEP * index, text, g.SMALL, "soft") for index, text in lines)]


def _one_line(box: OutlineBox, x: float, y: float) -> list[Shape]:
    name = TextShape(x, y, box.title, g.NAME, bold=True)
    return [name, TextShape(name.bounds[2] + 8, y, box.detail, g.SMALL, "soft")] if box.detail else [name]


def _bar_shape(bar: BarPlace) -> Shape:
    tip = ", ".join(bar.box.members) or bar.box.name
    return BoxShape(bar.x, bar.y, bar.w, bar.h, f"device {bar.box.kind}", bar.box.name, tip)


def _span_shapes(label: str, cells: list[GridCell], y: float) -> list[Shape]:
    left, right = cells[0].x + 4, cells[-1].x + cells[-1].w - 4
    ticks = [
        LineShape(((cell.x + cell.w - 14, cell.y + cell.h + 2), (cell.x + cell.w - 14, y)), "span", 1.0)
        for cell in cells
    ]
    rule = LineShape(((left, y), (right, y)), "span", 2.4)
    return [*ticks, rule, TextShape((left + right) / 2, y + 12, label, g.LABEL, "label", "middle", bold=True)]


def use_width(use: float | None) -> float:
    """How wide a link is drawn, px."""
    return 1.5 if use is None else 1.6 + 4.4 * min(1.0, max(0.0, use))


def _link_shapes(polyline: LinkPolyline) -> list[Shape]:
    line = polyline.line
    forth, back = _loaded(line.load_ab, line.use_ab), _loaded(line.load_ba, line.use_ba)
    points = tuple(polyline.points)
    css_class, tip = f"link {line.kind}", _tip(line)
    if not forth and not back:
        return [LineShape(points, "halo", 4.5), LineShape(points, css_class, 1.5, tip)]
    both = forth and back
    apart = (use_width(line.use_ab) + use_width(line.use_ba)) / 4 + 1.2 if both else 0.0
    # A pale casing under each link shows which one passes over where two must cross.
    shapes: list[Shape] = [LineShape(points, "halo", use_width(line.use_ab) + 3 + 2 * apart)]
    if forth:
        shapes.extend(_directed(shifted(points, apart), css_class, line.use_ab, tip))
    if back:
        shapes.extend(_directed(shifted(points, -apart)[::-1], css_class, line.use_ba, tip))
    return shapes


def _loaded(load: float | None, use: float | None) -> bool:
    return bool(load) or bool(use)


def _directed(points: Sequence[tuple[float, float]], css_class: str, use: float | None, tip: str) -> list[Shape]:
    width = use_width(use)
    # u0 to 25 % of the link's rate, u1, u2, u3 to 90 %, u4
    css_class += " flow" if use is None else f" u{sum(use > step for step in _STEPS)}"
    head = arrow_head(points[-2], points[-1], 3.2 + width, css_class)
    short = (*points[:-1], (head.x - head.dx * head.size * 0.9, head.y - head.dy * head.size * 0.9))
    return [LineShape(short, css_class, width, tip), head]


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


def _label_shapes(polyline: LinkPolyline, routes: int) -> list[Shape]:
    x, y = polyline.label
    line = polyline.line
    if polyline.level:
        return _level_label(polyline, routes)
    if polyline.in_track:
        text = "  ".join(g.label_lines(line, *_arrows(polyline)))
        return [TextShape(x, y - 5, text, g.LABEL, "label", "middle")]
    wide = max(use_width(line.use_ab), use_width(line.use_ba))
    x += 4 + wide / 2 if not (_loaded(line.load_ab, line.use_ab) and _loaded(line.load_ba, line.use_ba)) else 4 + wide
    down, up = ("↓", "↑") if polyline.points[0][1] <= polyline.points[-1][1] else ("↑", "↓")
    texts = g.label_lines(line, down, up)
    start = y - 5 - g.STEP * (len(texts) - 1) if polyline.upward else y + 11
    return [
        TextShape(x, start + g.STEP * index, text, g.LABEL, "label", bold=index > 0 or not line.label)
        for index, text in enumerate(texts)
    ]


def _arrows(polyline: LinkPolyline) -> tuple[str, str]:
    return ("→", "←") if polyline.points[0][0] <= polyline.points[-1][0] else ("←", "→")


def _level_label(polyline: LinkPolyline, routes: int) -> list[Shape]:
    x, y = polyline.label
    texts = g.label_lines(polyline.line, *_arrows(polyline))
    shapes: list[Shape] = []
    for index, text in enumerate(texts):
        kind = index == 0 and bool(polyline.line.label)
        thick = max(use_width(polyline.line.use_ab), use_width(polyline.line.use_ba))
        above = y - 5 - thick - (3 + g.ROUTE * routes if routes else 0)
        at = above if kind else y + 10 + thick + g.STEP * (index - (1 if polyline.line.label else 0))
        shapes.append(TextShape(x, at, text, g.LABEL, "label", "middle", bold=not kind))
    return shapes


_KINDS = {
    "pcie": "PCIe", "fabric": "fabric link", "socket": "between sockets", "nvlink": "NVLink", "network": "network",
}  # fmt: skip
_USES = (
    ("u0", "to 25 %", 2.2), ("u1", "to 50 %", 3.3), ("u2", "to 75 %", 4.4), ("u3", "to 90 %", 5.2),
    ("u4", "over 90 %", 6.0),
)  # fmt: skip
_LINE, _ROW = 26.0, 16.0


class _LegendLayout:
    """Writes entries from left to right and breaks the line before the right border."""

    def __init__(self, top: float, width: float) -> None:
        self.x, self.y, self.width = g.PAD_HOST, top + 8, width
        self.shapes: list[Shape] = []

    def add(self, text: str, samples: list[Shape], room: float) -> None:
        wide = room + text_width(text, g.SMALL) + 16
        if self.x + wide > self.width and self.x > g.PAD_HOST:
            self.new_line()
        self.shapes.extend(_moved(sample, self.x, self.y) for sample in samples)
        self.shapes.append(TextShape(self.x + room, self.y + 3.2, text, g.SMALL, "soft"))
        self.x += wide

    def new_line(self) -> None:
        if self.x > g.PAD_HOST:
            self.x, self.y = g.PAD_HOST, self.y + _ROW


def legend(outline: Outline, top: float, width: float) -> tuple[list[Shape], float]:
    """The legend's shapes from y `top` on, and the y where it ends."""
    entries = _LegendLayout(top, width)
    kinds = {line.kind for line in outline.lines}
    for kind, text in _KINDS.items():
        if kind in kinds:
            entries.add(text, [LineShape(((0, 0), (_LINE, 0)), f"link {kind}", 1.5)], _LINE + 5)
    if any(inner.unbound for box in outline.boxes for inner in box.walk()):
        entries.add("not bound to a host", [BoxShape(0, -5, 18, 10, "device unbound")], 23)
    if any(use is not None for line in outline.lines for use in (line.use_ab, line.use_ba)):
        entries.new_line()
        entries.add("share of the link's rate in use:", [], 0)
        for css_class, text, wide in _USES:
            entries.add(text, [LineShape(((0, 0), (_LINE, 0)), f"link {css_class}", wide)], _LINE + 5)
    for path in outline.paths:
        entries.new_line()
        css_class = f"route r{path.colour % ROUTE_COLOURS}"
        mark = MarkerShape(_LINE, 0, 1, 0, 7, css_class)
        entries.add(path.label, [LineShape(((0, 0), (_LINE - 4, 0)), css_class, 2.6), mark], _LINE + 6)
    for note in outline.notes:
        entries.new_line()
        entries.add(note, [], 0)
    return entries.shapes, entries.y + 8


def _moved(shape: Shape, x: float, y: float) -> Shape:
    if isinstance(shape, LineShape):
        return replace(shape, points=tuple((px + x, py + y) for px, py in shape.points))
    return replace(shape, x=shape.x + x, y=shape.y + y)
