"""A prepared drawing as SVG text: five primitives, no library, colours by class so that dark mode applies."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from lanewise.report.layout import prepare
from lanewise.report.shapes import BoxShape, GroupShape, LineShape, MarkerShape, TextShape

if TYPE_CHECKING:
    from lanewise.report.shapes import Prepared, Shape
    from lanewise.results.outline import Outline


@cache
def style() -> str:
    """The style sheet of all drawings."""
    return (resources.files("lanewise.report") / "templates" / "drawing.css").read_text(encoding="utf-8")


def draw(outline: Outline, alone: bool = True) -> str:
    """The outline as an <svg> element; `alone` adds the style sheet, which a page of drawings needs once."""
    return draw_prepared(prepare(outline), alone)


def draw_prepared(drawing: Prepared, alone: bool = True) -> str:
    """The prepared drawing as an <svg> element."""
    width, height = _n(drawing.width), _n(drawing.height)
    sheet = f"<style>{style()}</style>" if alone else ""
    body = "\n".join(_shape(shape) for shape in drawing.shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lw" role="img" width="{width}" height="{height}" '
        f'style="min-width:{_n(0.72 * drawing.width)}px" '
        f'viewBox="0 0 {width} {height}"><title>{escape(drawing.title)}</title>{sheet}\n{body}\n</svg>'
    )


def _shape(shape: Shape) -> str:
    if isinstance(shape, BoxShape):
        return _box(shape)
    if isinstance(shape, LineShape):
        return _line(shape)
    if isinstance(shape, TextShape):
        return _text(shape)
    if isinstance(shape, MarkerShape):
        return _marker(shape)
    return _group(shape)


def _box(box: BoxShape) -> str:
    place = f'x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.w)}" height="{_n(box.h)}"'
    return _closed("rect", f'class="{box.look}" rx="2.5" {place}', box.tip)


def _line(line: LineShape) -> str:
    points = " ".join(f"{_n(x)},{_n(y)}" for x, y in line.points)
    return _closed("polyline", f'class="{line.look}" stroke-width="{_n(line.width)}" points="{points}"', line.tip)


def _text(text: TextShape) -> str:
    look = f' class="{text.look}"' if text.look else ""
    anchor = f' text-anchor="{text.anchor}"' if text.anchor != "start" else ""
    bold = ' font-weight="600"' if text.bold else ""
    place = f'x="{_n(text.x)}" y="{_n(text.y)}" font-size="{_n(text.size)}"'
    return f"<text{look} {place}{anchor}{bold}>{escape(text.text)}</text>"


def _marker(mark: MarkerShape) -> str:
    if not mark.dx and not mark.dy:
        return f'<circle class="{mark.look}" cx="{_n(mark.x)}" cy="{_n(mark.y)}" r="{_n(mark.size)}"/>'
    back_x, back_y = mark.x - mark.dx * mark.size, mark.y - mark.dy * mark.size
    side_x, side_y = -mark.dy * mark.size * 0.55, mark.dx * mark.size * 0.55
    path = (
        f"M{_n(mark.x)} {_n(mark.y)}L{_n(back_x + side_x)} {_n(back_y + side_y)}"
        f"L{_n(back_x - side_x)} {_n(back_y - side_y)}Z"
    )
    return f'<path class="{mark.look}" d="{path}"/>'


def _group(group: GroupShape) -> str:
    inner = "\n".join(_shape(shape) for shape in group.shapes)
    return f"<g class={quoteattr(group.look)}>\n{inner}\n</g>" if inner else ""


def _closed(tag: str, attributes: str, tip: str) -> str:
    return f"<{tag} {attributes}><title>{escape(tip)}</title></{tag}>" if tip else f"<{tag} {attributes}/>"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


__all__ = ["draw", "draw_prepared", "style"]
