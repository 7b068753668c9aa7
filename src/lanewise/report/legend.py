"""The legend under a drawing: only what the drawing really uses."""

from __future__ import annotations

from lanewise.report import grid as g
from lanewise.report.metrics import text_width
from lanewise.report.paths import ROUTE_COLOURS
from lanewise.report.shapes import BoxShape, LineShape, MarkerShape, Shape, TextShape
from lanewise.results.outline import Outline, OutlineBox

_KINDS = {
    "pcie": "PCIe",
    "fabric": "fabric link",
    "socket": "between sockets",
    "nvlink": "NVLink",
    "network": "network",
}
_USES = (
    ("u0", "to 25 %", 2.2),
    ("u1", "to 50 %", 3.3),
    ("u2", "to 75 %", 4.4),
    ("u3", "to 90 %", 5.2),
    ("u4", "over 90 %", 6.0),
)
_LINE, _ROW = 26.0, 16.0


class _LegendLayout:
    """Writes entries from left to right and breaks the line before the right border."""

    def __init__(self, top: float, width: float) -> None:
        self.x, self.y, self.width = g.PAD_HOST, top + 8, width
        self.shapes: list[Shape] = []

    def add(self, text: str, samples: list[Shape], room: float, bold: bool = False) -> None:
        wide = room + text_width(text, g.SMALL, bold) + 16
        if self.x + wide > self.width and self.x > g.PAD_HOST:
            self.new_line()
        self.shapes.extend(_moved(sample, self.x, self.y) for sample in samples)
        self.shapes.append(TextShape(self.x + room, self.y + 3.2, text, g.SMALL, "soft", bold=bold))
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
    if any(box.unbound for box in _every(outline.boxes)):
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


def _every(boxes: tuple[OutlineBox, ...]) -> list[OutlineBox]:
    return [inner for box in boxes for inner in (box, *_every(box.children))]


def _moved(shape: Shape, x: float, y: float) -> Shape:
    if isinstance(shape, LineShape):
        return LineShape(tuple((px + x, py + y) for px, py in shape.points), shape.css_class, shape.width)
    if isinstance(shape, BoxShape):
        return BoxShape(shape.x + x, shape.y + y, shape.w, shape.h, shape.css_class)
    if isinstance(shape, MarkerShape):
        return MarkerShape(shape.x + x, shape.y + y, shape.dx, shape.dy, shape.size, shape.css_class)
    return shape
