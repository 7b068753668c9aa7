"""A prepared drawing as SVG text: five primitives, no library, colours by class so that a page's dark mode applies."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from lanewise.report.layout import prepare
from lanewise.report.shapes import BoxShape, GroupShape, LineShape, MarkerShape, TextShape

if TYPE_CHECKING:
    from lanewise.report.shapes import Prepared, Shape
    from lanewise.results.outline import Outline

# Use runs from pale to dark in one hue, and from thin to wide: told apart without colour vision, and in print.
STYLE = """
.lw { --d-paper: #fff; --d-ink: #1c2127; --d-soft: #5b6570; --d-line: #67717c; --d-rule: #b4bcc5; --d-host: #f7f8fa;
  --d-numa: #eef1f4; --d-pool: #fbf8f1; --d-gpu: #dcefe3; --d-cpu: #dde8f5; --d-switch: #fff; --d-nic: #e8e1f3;
  --d-ssd: #f6e7d3; --u0: #d9b65c; --u1: #e0912f; --u2: #c9600f; --u3: #9c3a0a; --u4: #5f1708; --flow: #3c4650;
  --r0: #0072b2; --r1: #cc3d8f; --r2: #009e73; --r3: #7a5195; --r4: #2fa8d5; --r5: #8a8a00;
  font-family: "Helvetica Neue", Arial, "Liberation Sans", sans-serif; }
@media (prefers-color-scheme: dark) { .lw { --d-paper: #15191e; --d-ink: #e4e8ec; --d-soft: #a5afb9; --d-line: #93a0ac;
  --d-rule: #4a5560; --d-host: #1a2027; --d-numa: #212932; --d-pool: #23211b; --d-gpu: #1f4632; --d-cpu: #22405f;
  --d-switch: #2a323b; --d-nic: #3e3157; --d-ssd: #55401f; --u0: #7d6a3a; --u1: #b3842f; --u2: #e09a3a; --u3: #ffbe6b;
  --u4: #fff3cf; --flow: #c9d2da; --r0: #5ab4e8; --r1: #f07fbc; --r2: #3fd0a3; --r3: #b690d6; --r4: #8fdcf7;
  --r5: #d0d04a; } }
@media print { .lw { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
.lw text { fill: var(--d-ink); } .lw .soft { fill: var(--d-soft); }
.lw .label { paint-order: stroke; stroke: var(--d-paper); stroke-width: 2.4px; stroke-linejoin: round; stroke-opacity: .75; }
.lw rect { stroke: var(--d-rule); stroke-width: 1; fill: var(--d-switch); }
.lw .host { fill: var(--d-host); stroke: var(--d-line); } .lw .numa { fill: var(--d-numa); stroke: none; }
.lw .pool { fill: var(--d-pool); stroke: var(--d-rule); stroke-dasharray: 2 2; }
.lw .device { stroke: var(--d-line); } .lw .gpu { fill: var(--d-gpu); } .lw .cpu { fill: var(--d-cpu); }
.lw .nic { fill: var(--d-nic); } .lw .ssd, .lw .raid { fill: var(--d-ssd); }
.lw rect.nvswitch, .lw rect.netswitch { fill: var(--d-switch); }
.lw .unbound { fill: none; stroke-dasharray: 4 3; }
.lw polyline { fill: none; stroke-linejoin: round; } .lw .halo { stroke: var(--d-paper); stroke-opacity: .85; }
.lw polyline.link { stroke: var(--d-line); } .lw polyline.fabric { stroke: #a8660b; } .lw polyline.nvlink { stroke: #4f8f00; }
.lw polyline.network { stroke: #5b62c9; } .lw polyline.socket { stroke-dasharray: 6 3; } .lw polyline.fabric { stroke-dasharray: 9 2.5; }
.lw polyline.network { stroke-dasharray: 2.5 2; } .lw polyline.nvlink { stroke-dasharray: 9 2 2 2; }
.lw polyline.flow { stroke: var(--flow); } .lw path.flow { fill: var(--flow); } .lw .span { stroke: var(--d-soft); }
""" + "".join(
    f".lw polyline.{kind}{n} {{ stroke: var(--{kind}{n}); }} "
    f".lw path.{kind}{n}, .lw circle.{kind}{n} {{ fill: var(--{kind}{n}); }}\n"
    for kind, count in (("u", 5), ("r", 6))
    for n in range(count)
) + ".lw polyline.under { stroke: var(--d-paper); }\n"  # fmt: skip


def draw(outline: Outline, alone: bool = True) -> str:
    """The outline as an <svg> element; `alone` adds the style sheet, which a page of several drawings needs once."""
    return draw_prepared(prepare(outline), alone)


def draw_prepared(drawing: Prepared, alone: bool = True) -> str:
    """The prepared drawing as an <svg> element."""
    width, height = _n(drawing.width), _n(drawing.height)
    style = f"<style>{STYLE}</style>" if alone else ""
    body = "\n".join(_shape(shape) for shape in drawing.shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lw" role="img" width="{width}" height="{height}" '
        f'style="min-width:{_n(0.72 * drawing.width)}px" '
        f'viewBox="0 0 {width} {height}"><title>{escape(drawing.title)}</title>{style}\n{body}\n</svg>'
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
    return _closed(
        "polyline", f'class="{line.look}" stroke-width="{_n(line.width)}" points="{points}"', line.tip
    )


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


__all__ = ["STYLE", "draw", "draw_prepared"]
