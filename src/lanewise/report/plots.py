"""Charts of a study as small static SVG: published as markers or hatched bars, predicted as lines or solid bars.

matplotlib is imported on first use. Text stays text, laid out by the metrics of matplotlib's DejaVu Sans
(wider than what browsers will show, so nothing runs over); the output holds no date and no random id.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lanewise import units
from lanewise.errors import MissingDependency
from lanewise.report.surfaces import surface

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lanewise.results.run import Chart, Series

# Okabe and Ito's colours, which colour-blind readers can tell apart, without yellow (too pale) and black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#6b6b6b")
FONTS = "'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"
# Stand-ins for the page's own ink and rules, so that a chart inside a page follows light and dark.
INK, SOFT, RULE, PAPER = "#010203", "#040506", "#070809", "#fefdfc"
_CSS = {
    INK: "var(--ink, #1c2127)",
    SOFT: "var(--soft, #5b6570)",
    RULE: "var(--rule, #d5dae0)",
    PAPER: "var(--paper, #ffffff)",
}
_DASHES: dict[str, Any] = {"measured": (0, (4, 1.5)), "extrapolated": (0, (1, 1.5))}
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True, slots=True)
class _Group:
    """The series that share a colour."""

    name: str
    colour: str
    marker: str
    series: tuple[Series, ...]


def plot(chart: Chart, salt: str = "lanewise") -> str:
    """The chart as an <svg> element; `salt` keeps the ids of several charts on a page apart.

    Published series without a value take no room. MissingDependency if matplotlib is not installed.
    """
    if chart.kind == "surface":
        return surface(chart, salt)
    told = tuple(one for one in chart.series if one.source != "published" or _told(one))
    chart = replace(chart, series=told)

    def paint(figure: Any) -> None:
        axes = figure.add_axes(_frame(chart), facecolor="none")
        groups = _groups(chart.series)
        if chart.kind == "bar":
            _bars(axes, chart, groups)
        else:
            _lines(axes, chart, groups)
        _dress(axes, chart)
        _legend(figure, chart, groups)

    return painted(_size(chart), f"{chart.title}: {chart.y_label} against {chart.x_label}", salt, paint)


def _told(series: Series) -> bool:
    return any(y is not None for _, y in series.points)


def painted(size: tuple[float, float], label: str, salt: str, paint: Callable[[Any], None]) -> str:
    """What `paint` draws on a figure of `size` inches, as an <svg> element that is read out as `label`."""
    try:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependency("charts need matplotlib", hint="pip install matplotlib") from None
    settings: Any = _settings(salt)
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=size, facecolor="none")
        FigureCanvasSVG(figure)
        paint(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _clean(buffer.getvalue(), label)


def _settings(salt: str) -> dict[str, Any]:
    return {
        "svg.fonttype": "none", "svg.hashsalt": salt, "font.family": "DejaVu Sans", "font.size": 9.0,
        "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": SOFT, "xtick.color": SOFT,
        "ytick.color": SOFT, "xtick.labelcolor": INK, "ytick.labelcolor": INK, "hatch.linewidth": 0.8,
        "axes.linewidth": 0.8, "path.simplify": True, "axes.unicode_minus": True, "text.parse_math": False,
    }  # fmt: skip


def _categories(chart: Chart) -> list[str]:
    names = dict.fromkeys(x for series in chart.series for x, _ in series.points if isinstance(x, str))
    return list(names)


def _size(chart: Chart) -> tuple[float, float]:
    if chart.kind != "bar":
        return (6.6, 3.7)
    bars = len(_categories_or_numbers(chart)) * max(1, len(chart.series))
    return (6.6, min(9.0, 1.25 + 0.19 * bars + 0.16 * len(_categories_or_numbers(chart))))


def _frame(chart: Chart) -> tuple[float, float, float, float]:
    width, height = _size(chart)
    if chart.kind != "bar":
        longest = max((len(group.name) for group in _groups(chart.series)), default=0)
        right = min(2.0, 0.2 + 0.078 * longest)
        return (0.62 / width, 0.55 / height, (width - 0.62 - right) / width, (height - 0.95) / height)
    longest = max((len(name) for name in _categories_or_numbers(chart)), default=0)
    left = min(2.6, 0.25 + 0.076 * longest)
    return (left / width, 0.52 / height, (width - left - 0.62) / width, (height - 0.92) / height)


def _groups(series: Sequence[Series]) -> tuple[_Group, ...]:
    names = dict.fromkeys(one.group or one.name for one in series)
    return tuple(
        _Group(
            name,
            COLOURS[index % len(COLOURS)],
            _MARKERS[index % len(_MARKERS)],
            tuple(one for one in series if (one.group or one.name) == name),
        )
        for index, name in enumerate(names)
    )


def _lines(axes: Any, chart: Chart, groups: Sequence[_Group]) -> None:
    names = _categories(chart)
    place = {name: float(index) for index, name in enumerate(names)}
    ends: list[tuple[float, float, _Group]] = []
    for group in groups:
        for series in group.series:
            points = [
                (place[x] if isinstance(x, str) else float(x), y, _flag(series, index))
                for index, (x, y) in enumerate(series.points)
            ]
            _one_line(axes, points, group, series.source)
        last = [p for s in group.series for p in _known(s, place)]
        if last:
            ends.append((*max(last, key=lambda point: point[0]), group))
    if names:
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.25, len(names) - 0.75)
    axes.set_ylim(*_from_zero(axes.get_ylim()))
    axes.set_xlim(*axes.get_xlim())
    _label_ends(axes, ends)


def _flag(series: Series, index: int) -> bool:
    return index < len(series.extrapolated) and series.extrapolated[index]


def _known(series: Series, place: dict[str, float]) -> list[tuple[float, float]]:
    return [(place[x] if isinstance(x, str) else float(x), y) for x, y in series.points if y is not None]


def _one_line(axes: Any, points: list[tuple[float, float | None, bool]], group: _Group, source: str) -> None:
    xs = [x for x, _, _ in points]
    ys = [float("nan") if y is None else y for _, y, _ in points]
    if source == "published":
        for hollow in (False, True):
            chosen = [(x, y) for (x, y, flag) in points if y is not None and flag is hollow]
            if chosen:
                face = PAPER if hollow else group.colour
                axes.plot(
                    *zip(*chosen, strict=True),
                    linestyle="none",
                    marker=group.marker,
                    markersize=5.5,
                    markerfacecolor=face,
                    markeredgecolor=group.colour,
                    markeredgewidth=1.2,
                    zorder=4,
                )
        return
    # What was measured here and there only is a point without neighbours, which no line shows.
    mark: Any = {"marker": "x", "markersize": 5.5, "markeredgewidth": 1.5} if source == "measured" else {}
    axes.plot(xs, ys, color=group.colour, linewidth=1.7, linestyle=_DASHES.get(source, "solid"), zorder=3, **mark)
    hollow_points = [(x, y) for (x, y, flag) in points if flag and y is not None]
    if hollow_points:
        axes.plot(*zip(*hollow_points, strict=True), linestyle="none", marker=".", markersize=6,
                  markerfacecolor=PAPER, markeredgecolor=group.colour, zorder=3)  # fmt: skip


def _from_zero(limits: tuple[float, float]) -> tuple[float, float]:
    # A rate that starts anywhere but at zero exaggerates every difference.
    low, high = limits
    return (0.0, high) if low >= 0 or abs(low) < 0.2 * high else (low, high)


def _label_ends(axes: Any, ends: list[tuple[float, float, _Group]]) -> None:
    """Name each group in its colour's row at the right, apart from the others, beside where its line ends."""
    low, high = axes.get_ylim()
    step = (high - low) * 0.062
    wanted = sorted(ends, key=lambda end: end[1])
    spots: list[float] = []
    for _, y, _ in wanted:
        spots.append(max(y, spots[-1] + step) if spots else y)
    over = max(0.0, spots[-1] - high) if spots else 0.0
    right = axes.get_xlim()[1]
    for (x, y, group), spot in zip(wanted, spots, strict=True):
        at = spot - over
        style = {"color": group.colour, "linewidth": 0.7, "clip_on": False, "zorder": 2, "alpha": 0.55}
        axes.plot([x, right], [y, at], linestyle=(0, (1, 2)), **style)
        axes.annotate(group.name, xy=(right, at), xytext=(5, 0), textcoords="offset points", va="center",
                      ha="left", color=INK, fontsize=8.6, annotation_clip=False)  # fmt: skip


def _bars(axes: Any, chart: Chart, groups: Sequence[_Group]) -> None:
    names = _categories_or_numbers(chart)
    count = sum(len(group.series) for group in groups)
    height = 0.82 / max(1, count)
    index, widest = 0, 0.0
    for group in groups:
        for series in group.series:
            shift = -0.41 + height * (index + 0.5)
            for spot, (x, y) in enumerate(series.points):
                if y is not None:
                    where = names.index(_as_name(x)) + shift
                    widest = max(widest, y)
                    hollow = _flag(series, spot)
                    _one_bar(axes, where, y, height, group.colour, series.source, hollow)
            index += 1
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(max(1, len(names)) - 0.5, -0.5)
    axes.set_xlim(0, widest * 1.02 if widest else 1)


def _one_bar(axes: Any, where: float, y: float, height: float, colour: str, source: str, hollow: bool) -> None:
    outline = source == "published"
    style = {"facecolor": PAPER if outline or hollow else colour, "edgecolor": colour, "linewidth": 0.9}
    if outline and not hollow:
        style["hatch"] = "////"
    if source == "measured":
        style |= {"facecolor": PAPER, "hatch": "...."}
    if hollow:
        style["linestyle"] = (0, (3, 1.5))
    axes.barh(where, y, height=height * 0.9, zorder=3, **style)
    axes.annotate(_short(y), xy=(y, where), xytext=(3, 0), textcoords="offset points", va="center", ha="left",
                  fontsize=7.4, color=INK, annotation_clip=False)  # fmt: skip


def _short(value: float) -> str:
    return units.number(value, 4 if abs(value) >= 100 else 3)


def _as_name(x: float | str) -> str:
    return x if isinstance(x, str) else f"{x:g}"


def _categories_or_numbers(chart: Chart) -> list[str]:
    return list(dict.fromkeys(_as_name(x) for series in chart.series for x, _ in series.points))


def _dress(axes: Any, chart: Chart) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    bar = chart.kind == "bar"
    axes.set_xlabel(chart.y_label if bar else chart.x_label, labelpad=4)
    # The quantity stands above its axis, level and readable, instead of turned on its side.
    axes.annotate(chart.x_label if bar else chart.y_label, xy=(0, 1), xycoords="axes fraction",
                  xytext=(0, 2 if bar else 8), textcoords="offset points", ha="right" if bar else "center",
                  va="bottom", color=INK, annotation_clip=False)  # fmt: skip
    axes.grid(axis="x" if bar else "y", color=RULE, linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, width=0.8)
    if bar:
        axes.tick_params(axis="y", length=0)


def _legend(figure: Any, chart: Chart, groups: Sequence[_Group]) -> None:
    """A line of keys above the axes, where it can cover nothing."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    sources = dict.fromkeys(series.source for series in chart.series if _told(series))
    hollow = any(any(series.extrapolated) for series in chart.series)
    keys: list[Any] = []
    for source in sources:
        if chart.kind == "bar":
            hatch = {"published": "////", "measured": "...."}.get(source)
            keys.append(Patch(facecolor=PAPER if hatch else SOFT, edgecolor=SOFT, label=source, hatch=hatch))
        elif source == "published":
            keys.append(Line2D([], [], color=SOFT, marker="o", linestyle="none", markersize=5, label=source))
        else:
            mark: Any = {"marker": "x", "markersize": 5} if source == "measured" else {}
            dashes = _DASHES.get(source, "solid")
            keys.append(Line2D([], [], color=SOFT, linewidth=1.7, linestyle=dashes, label=source, **mark))
    if hollow:
        shape: dict[str, Any] = {"markerfacecolor": PAPER, "markeredgecolor": SOFT, "markersize": 5.5}
        keys.append(Line2D([], [], marker="o", linestyle="none", label="extrapolated", **shape))
    if chart.kind == "bar" and len(groups) > 1:
        keys.extend(Patch(facecolor=group.colour, label=group.name) for group in groups)
    figure.legend(
        handles=keys,
        loc="upper right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=len(keys),
        frameon=False,
        fontsize=8.2,
        handlelength=1.6,
        columnspacing=1.2,
        handletextpad=0.5,
        borderaxespad=0.2,
    )


def _clean(svg: str, label: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.S)
    # matplotlib's own style sheet says `*`, which would reach the whole page.
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", svg, flags=re.S)
    for colour, variable in _CSS.items():
        svg = svg.replace(colour, variable)
    svg = svg.replace("'DejaVu Sans'", FONTS)
    svg = re.sub(r"\n\s*", "\n", svg)
    # A hundredth of a point is finer than any screen; six decimals double the page.
    svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)
    title = label.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return svg.replace("<svg ", f'<svg role="img" stroke-linejoin="round" aria-label="{title}" ', 1).strip()


__all__ = ["COLOURS", "FONTS", "INK", "PAPER", "RULE", "SOFT", "painted", "plot"]
