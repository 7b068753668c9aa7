"""Surfaces: a cell for each pair of settings, its value written in it, all panels on one colour scale.

Plain SVG with its coordinates decided here, as text has to fit into cells; it needs no matplotlib.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from lanewise.report.figure import EVEN, FONTS, INK, PAPER, SOFT, even, on
from lanewise.report.shapes import clip, px, text_width
from lanewise.report.words import place_name
from lanewise.results.run import Chart, Series

NARROW, WIDE = 620.0, 1160.0  # px: a chart among others, and one that takes the page's whole width
_SIZE, _SMALLEST, _SMALL = 12.0, 8.5, 11.5  # px of letters: values at best and at least, everything else
_CELL, _TITLE, _HEAD, _TICKS, _LABEL, _APART = 26.0, 20.0, 20.0, 18.0, 18.0, 16.0  # px: heights, and between panels
_EDGE = 3.0  # px: half of an outline
_BAR = 210.0
_BAND = "#f4f6f8"


@dataclass(frozen=True, slots=True)
class ColourScale:
    """The values that the colours represent, from `low` to `high`, and how many decimals cells have."""

    low: float
    high: float
    decimals: int

    def share(self, value: float) -> float:
        """Where a value lies, 0..1."""
        return (value - self.low) / (self.high - self.low)

    def text(self, value: float) -> str:
        """'7.1', '56.6': all with the same decimals unless that leaves nothing of a value."""
        small = value and abs(value) <= 0.5 * 10.0**-self.decimals
        return _signed(f"{value:.2g}" if small else f"{value:,.{self.decimals}f}")


@dataclass(frozen=True, slots=True)
class _SurfaceLayout:
    """Where everything goes: px."""

    width: float
    across: int
    labels: float
    cell: float
    size: float
    top: float
    columns: tuple[float | str, ...]


def surface(chart: Chart, salt: str = "lanewise") -> str:
    """The chart as an <svg> element; `salt` keeps the ids of several charts on a page apart."""
    panels: dict[str, list[Series]] = {}
    for row in chart.series:
        panels.setdefault(row.group, []).append(row)
    scale = scale_of(chart)
    grid = _arrange(chart, scale)
    body, y = _head(chart, scale, grid, salt), grid.top
    title = _TITLE if any(panels) else 0.0
    for start in range(0, len(panels), grid.across):
        across = list(panels.items())[start : start + grid.across]
        step = (grid.width + _APART) / grid.across
        for place, (name, rows) in enumerate(across):
            under = start + place + grid.across >= len(panels)
            body += _panel(chart, name, rows, scale, grid, (place * step, y + title), under)
        y += title + _HEAD + max(len(rows) for _, rows in across) * _CELL + _TICKS + _APART
    height = y - _APART + (_LABEL if chart.x_label else 0.0)
    label = f"{chart.title}: {chart.y_label} by {chart.x_label} and {chart.by_label}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" font-family="{FONTS}" '
        f'aria-label={quoteattr(label)} width="{px(grid.width)}" height="{px(height)}" '
        f'viewBox="0 0 {px(grid.width)} {px(height)}" font-size="{px(_SMALL)}" fill="{INK}" '
        f'style="font-variant-numeric:tabular-nums">\n' + "\n".join(body) + "\n</svg>"
    )


def is_wide(chart: Chart) -> bool:
    """Whether the chart takes the page's whole width."""
    return chart.kind == "surface" and _arrange(chart, scale_of(chart)).width > NARROW


def scale_of(chart: Chart) -> ColourScale:
    """One scale for all cells, from zero, since colours that begin elsewhere exaggerate every difference."""
    values = [y for row in chart.series for _, y in row.points if y is not None]
    low, high = min([0.0, *values]), max([0.0, *values])
    largest = max(-low, high)
    whole = all(value == int(value) for value in values)
    decimals = 0 if whole or largest >= 100 else 1 if largest >= 10 else 2 if largest >= 1 else 3
    return ColourScale(low, high if high > low else low + 1.0, decimals)


def near_best(row: Series, within: float) -> list[bool]:
    """For each cell of a row whether it lies that share or less below the row's largest value."""
    best = max((y for _, y in row.points if y is not None), default=0.0)
    least = best - abs(best) * within * (1 + 1e-9)
    return [y is not None and y >= least for _, y in row.points]


def _arrange(chart: Chart, scale: ColourScale) -> _SurfaceLayout:
    columns = _in_order(x for row in chart.series for x, _ in row.points)
    names = [row.name for row in chart.series] + [chart.by_label]
    labels = min(220.0, max((text_width(name, _SMALL) for name in names), default=0.0) + 10)
    texts = [scale.text(y) for row in chart.series for _, y in row.points if y is not None]
    widest = max((text_width(text, 1.0) for text in [*texts, *map(place_name, columns)]), default=1.0)
    width, across = (NARROW, 1) if len({row.group for row in chart.series}) < 2 else (WIDE, 2)
    need = labels + _EDGE + max(1, len(columns)) * (widest * _SMALLEST + 4)
    if across * need + (across - 1) * _APART > width:
        width, across = max(WIDE, need), 1
    room = ((width + _APART) / across - _APART - labels - _EDGE) / max(1, len(columns))
    size = min(_SIZE, (room - 4) / widest)
    outlined = chart.within is not None
    top = 42.0 if width > NARROW or not outlined else 64.0
    return _SurfaceLayout(width, across, labels, min(room, 96.0), size, top, columns)


def _in_order(values: Iterable[float | str]) -> tuple[float | str, ...]:
    once = list(dict.fromkeys(values))
    return (*sorted(v for v in once if not isinstance(v, str)), *(v for v in once if isinstance(v, str)))


def _signed(text: str) -> str:
    return text if "e" in text else text.replace("-", "\N{MINUS SIGN}")


def _head(chart: Chart, scale: ColourScale, grid: _SurfaceLayout, salt: str) -> list[str]:
    """The colours with their unit, and what the outline means."""
    name = f"{salt}-even"
    stops = "".join(f'<stop offset="{i / (len(EVEN) - 1):.4g}" stop-color="{c}"/>' for i, c in enumerate(EVEN))
    start = text_width(chart.y_label, _SMALL) + 8
    body = [
        f"<linearGradient id={quoteattr(name)}>{stops}</linearGradient>",
        _text(chart.y_label, 0.0, 16.0, ""),
        f'<rect x="{px(start)}" y="7" width="{px(_BAR)}" height="10" fill="url(#{escape(name)})"/>',
    ]
    for value in _ticks(scale):
        x = start + _BAR * scale.share(value)
        body.append(f'<path d="M{px(x)} 17v3" stroke="{SOFT}"/>')
        body.append(_text(_signed(f"{value:.4g}" if value % 1 else f"{value:,.0f}"), x, 30.0, "middle"))
    if chart.within is not None:
        x, y = (start + _BAR + 40, 6.0) if grid.width > NARROW else (0.0, 42.0)
        body.append(_outline(f"M{px(x + 2)} {px(y + 1)}h18v11h-18z"))
        text = f"outlined: at most {100 * chart.within:.3g} % below the largest value of its row"
        body.append(_text(text, x + 28, y + 10, ""))
    return body


def _ticks(scale: ColourScale) -> list[float]:
    """Three to six round values."""
    span = scale.high - scale.low
    if span < 1e-300:  # a third of it may be no number any more
        return [scale.low, scale.high]
    step = 10.0 ** math.floor(math.log10(span / 3))
    step *= next(factor for factor in (5, 2, 1) if span / (step * factor) >= 3 - 1e-9)
    first, last = math.ceil(scale.low / step - 1e-9), math.floor(scale.high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _panel(
    chart: Chart, name: str, rows: Sequence[Series], scale: ColourScale, grid: _SurfaceLayout,
    at: tuple[float, float], under: bool,
) -> list[str]:  # fmt: skip
    """The cells of a panel under its name, from the corner `at`; `under` says that no panel is below it."""
    x, y = at
    left, top = x + grid.labels, y + _HEAD
    body = [f'<g font-weight="600">{_text(name, x, y - 5, "")}</g>'] if name else []
    if chart.by_label:
        body.append(_text(clip(chart.by_label, _SMALL, grid.labels - 6), left - 6, y + 13, "end"))
    marked: set[tuple[int, int]] = set()
    unknown: list[str] = []
    dark: list[str] = []
    light: list[str] = []
    for r, row in enumerate(rows):
        middle = top + (r + 0.5) * _CELL + 4
        body.append(_text(clip(row.name, _SMALL, grid.labels - 8), left - 6, middle, "end"))
        good = near_best(row, chart.within) if chart.within is not None else [False] * len(row.points)
        for (place, value), near in zip(row.points, good, strict=True):
            c = grid.columns.index(place)
            start = left + c * grid.cell
            fill = _BAND if value is None else even(scale.share(value))
            size = f'width="{px(grid.cell - 1)}" height="{px(_CELL - 1)}"'
            body.append(f'<rect x="{px(start + 0.5)}" y="{px(top + r * _CELL + 0.5)}" {size} fill="{fill}"/>')
            text = _text("\N{EN DASH}" if value is None else scale.text(value), start + grid.cell / 2, middle, "")
            (unknown if value is None else dark if on(fill) == "#000000" else light).append(text)
            if near:
                marked.add((r, c))
    looks = f'font-size="{px(grid.size)}" text-anchor="middle"'
    for fill, texts in ((SOFT, unknown), ("#000", dark), ("#fff", light)):
        body += [f'<g {looks} fill="{fill}">', *texts, "</g>"] if texts else []
    if marked:
        body.append(_outline(_border(marked, left, top, grid.cell)))
    bottom = top + len(rows) * _CELL
    present = {place for row in rows for place, _ in row.points}
    ticks = [_text(place_name(v), left + (c + 0.5) * grid.cell, bottom + 13, "") for c, v in enumerate(grid.columns)
             if v in present]  # fmt: skip
    body.append(f'<g text-anchor="middle">{"".join(ticks)}</g>')
    if under and chart.x_label:
        body.append(_text(chart.x_label, left + len(grid.columns) * grid.cell / 2, bottom + 30, "middle"))
    return body


def _border(marked: set[tuple[int, int]], left: float, top: float, cell: float) -> str:
    """The edges between a marked cell and one that is not, joined to straight lines."""
    lines = []
    rows, columns = max(r for r, _ in marked) + 2, max(c for _, c in marked) + 2
    for r in range(rows):
        for start, length in _runs([((r, c) in marked) != ((r - 1, c) in marked) for c in range(columns)]):
            lines.append(f"M{px(left + start * cell)} {px(top + r * _CELL)}h{px(length * cell)}")
    for c in range(columns):
        for start, length in _runs([((r, c) in marked) != ((r, c - 1) in marked) for r in range(rows)]):
            lines.append(f"M{px(left + c * cell)} {px(top + start * _CELL)}v{px(length * _CELL)}")
    return "".join(lines)


def _runs(flags: Sequence[bool]) -> list[tuple[int, int]]:
    """Where each run of true flags begins, and how long it is."""
    runs, start = [], 0
    for flag, run in groupby(flags):
        length = len(list(run))
        if flag:
            runs.append((start, length))
        start += length
    return runs


def _outline(path: str) -> str:
    """A line that can be seen on any colour: the ink on a wider one of the paper."""
    look = 'fill="none" stroke-linecap="square"'
    return "".join(
        f'<path d="{path}" {look} stroke="{colour}" stroke-width="{width}"/>'
        for colour, width in ((PAPER, "4.4"), (INK, "2"))
    )


def _text(text: str, x: float, y: float, anchor: str) -> str:
    where = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{px(x)}" y="{px(y)}"{where}>{escape(text)}</text>'
