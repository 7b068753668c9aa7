"""A drawing as SVG text: five primitives, no library; light colours as attributes, dark ones as a style sheet."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from xml.sax.saxutils import escape, quoteattr

from lanewise.errors import printable
from lanewise.report.layout import prepare
from lanewise.report.shapes import BoxShape, GroupShape, LineShape, MarkerShape, Shape, TextShape, px
from lanewise.results.outline import Outline

_FONTS = "'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"
_RULE = re.compile(r"(\w*)(?:\.(\w+))? \{ (.*?) \}")


@cache
def _sheet() -> tuple[str, str]:
    text = (resources.files("lanewise.report") / "templates" / "drawing.css").read_text(encoding="utf-8")
    light, query, dark = re.sub(r"/\*.*?\*/\s*", "", text, flags=re.DOTALL).partition("@media")
    return light, query + dark


def style() -> str:
    """The style sheet of all drawings: what dark mode and print change, as every shape carries its light colours."""
    return _sheet()[1]


@cache
def _paint(tag: str, css_class: str) -> str:
    """The light colours of an element as its presentation attributes; a later rule wins over an earlier one."""
    values: dict[str, str] = {}
    for rule_tag, name, body in _RULE.findall(_sheet()[0]):
        if rule_tag in ("", tag) and (not name or name in css_class.split()):
            values |= dict(declaration.strip().split(": ") for declaration in body.rstrip(";").split(";"))
    return "".join(f' {key}="{value}"' for key, value in values.items())


def draw(outline: Outline, alone: bool = True) -> str:
    """The outline as an <svg> element; `alone` adds background and dark colours, which a page of drawings has once."""
    canvas = prepare(outline)
    width, height = px(canvas.width), px(canvas.height)
    sheet = f"<style>{style()}</style>{_open('rect', 'paper')} width={quoteattr(width)} height={quoteattr(height)}/>"
    body = "\n".join(_group(group) for group in canvas.groups)
    return printable(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lw" role="img" width="{width}" height="{height}" '
        f'style="min-width:{px(0.72 * canvas.width)}px" font-family="{_FONTS}" fill="none" stroke-linejoin="round" '
        f'viewBox="0 0 {width} {height}"><title>{escape(canvas.title)}</title>{sheet if alone else ""}\n{body}\n</svg>'
    )


def _group(group: GroupShape) -> str:
    inner = "\n".join(_shape(shape) for shape in group.shapes)
    return f"<g class={quoteattr(group.css_class)}>\n{inner}\n</g>" if inner else ""


def _shape(shape: Shape) -> str:
    if isinstance(shape, BoxShape):
        box = f'rx="2.5" x="{px(shape.x)}" y="{px(shape.y)}" width="{px(shape.w)}" height="{px(shape.h)}"'
        return _closed("rect", shape.css_class, box, shape.tip)
    if isinstance(shape, LineShape):
        points = " ".join(f"{px(x)},{px(y)}" for x, y in shape.points)
        return _closed("polyline", shape.css_class, f'stroke-width="{px(shape.width)}" points="{points}"', shape.tip)
    return _text(shape) if isinstance(shape, TextShape) else _marker(shape)


def _text(text: TextShape) -> str:
    anchor = f' text-anchor="{text.anchor}"' if text.anchor != "start" else ""
    bold = ' font-weight="600"' if text.bold else ""
    place = f'x="{px(text.x)}" y="{px(text.y)}" font-size="{px(text.size)}"'
    return f"{_open('text', text.css_class)} {place}{anchor}{bold}>{escape(text.text)}</text>"


def _marker(mark: MarkerShape) -> str:
    if not mark.dx and not mark.dy:
        return f'{_open("circle", mark.css_class)} cx="{px(mark.x)}" cy="{px(mark.y)}" r="{px(mark.size)}"/>'
    back_x, back_y = mark.x - mark.dx * mark.size, mark.y - mark.dy * mark.size
    side_x, side_y = -mark.dy * mark.size * 0.55, mark.dx * mark.size * 0.55
    path = (
        f"M{px(mark.x)} {px(mark.y)}L{px(back_x + side_x)} {px(back_y + side_y)}"
        f"L{px(back_x - side_x)} {px(back_y - side_y)}Z"
    )
    return f'{_open("path", mark.css_class)} d="{path}"/>'


def _open(tag: str, css_class: str) -> str:
    name = f' class="{css_class}"' if css_class else ""
    return f"<{tag}{name}{_paint(tag, css_class)}"


def _closed(tag: str, css_class: str, attributes: str, tip: str) -> str:
    inner = f"><title>{escape(tip)}</title></{tag}>" if tip else "/>"
    return f"{_open(tag, css_class)} {attributes}{inner}"
