"""Charts of a study: published as markers or hatched bars, predicted as lines or solid bars, measured as crosses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lanewise import units
from lanewise.report.figure import COLOURS, INK, MARKERS, PAPER, SOFT, dress, frame, legend, log_axis, painted, quantity
from lanewise.report.surfaces import surface
from lanewise.report.words import place_name
from lanewise.results.run import Chart, Series

_LABEL_STEP = 0.062  # of the height of the axes, between the names of two lines
_DASHES: dict[str, Any] = {"measured": (0, (4, 1.5)), "extrapolated": (0, (1, 1.5))}


@dataclass(frozen=True, slots=True)
class _ColourGroup:
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
    chart = replace(chart, series=tuple(s for s in chart.series if s.source != "published" or _has_value(s)))

    def paint(figure: Any) -> None:
        axes = figure.add_axes(_frame(chart), facecolor="none")
        groups = _groups(chart.series)
        if chart.kind == "bar":
            _bars(axes, chart, groups)
            dress(axes, chart.y_label, grid="x")
            quantity(axes, chart.x_label, "right", (0, 2))
            axes.tick_params(axis="y", length=0)
        else:
            _lines(axes, chart, groups)
            dress(axes, chart.x_label)
            quantity(axes, chart.y_label)
        legend(figure, _keys(chart, groups))

    return painted(_size(chart), f"{chart.title}: {chart.y_label} against {chart.x_label}", salt, paint)


def _has_value(series: Series) -> bool:
    return any(y is not None for _, y in series.points)


def _size(chart: Chart) -> tuple[float, float]:
    if chart.kind != "bar":
        return (6.6, 3.7)
    bars = len(_names(chart)) * max(1, len(chart.series))
    return (6.6, min(9.0, 1.25 + 0.19 * bars + 0.16 * len(_names(chart))))


def _frame(chart: Chart) -> tuple[float, ...]:
    if chart.kind != "bar":
        longest = max((len(group.name) for group in _groups(chart.series)), default=0)
        return frame(_size(chart), left=0.62, right=min(2.0, 0.2 + 0.078 * longest), top=0.4, bottom=0.55)
    longest = max((len(name) for name in _names(chart)), default=0)
    return frame(_size(chart), left=min(3.3, 0.25 + 0.076 * longest), right=0.62, top=0.4, bottom=0.52)


def _groups(series: Sequence[Series]) -> tuple[_ColourGroup, ...]:
    members: dict[str, list[Series]] = {}
    for line in series:
        members.setdefault(line.group or line.name, []).append(line)
    return tuple(
        _ColourGroup(name, COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)], tuple(lines))
        for index, (name, lines) in enumerate(members.items())
    )


def _lines(axes: Any, chart: Chart, groups: Sequence[_ColourGroup]) -> None:
    names = list(dict.fromkeys(x for series in chart.series for x, _ in series.points if isinstance(x, str)))
    index = {name: float(i) for i, name in enumerate(names)}
    ends: list[tuple[float, float, _ColourGroup]] = []
    for group in groups:
        values: list[tuple[float, float]] = []
        for series in group.series:
            points = [
                (index[x] if isinstance(x, str) else float(x), y, _extrapolated(series, i))
                for i, (x, y) in enumerate(series.points)
            ]
            values += [(x, y) for x, y, _ in points if y is not None]
            _line(axes, points, group, series.source)
        if values:
            ends.append((*max(values, key=lambda point: point[0]), group))
    if names:
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.25, len(names) - 0.75)
    if "x" in chart.log:
        _bytes_axis(axes, chart)
    elif not names:
        axes.xaxis.get_major_locator().set_params(integer=True)
    low, high = axes.get_ylim()
    if "y" in chart.log:
        axes.set_yscale("log")
        decades = math.log10(axes.get_ylim()[1] / axes.get_ylim()[0])
        log_axis(axes, (1,) if decades > 3 else (1, 2, 5), "g")
    else:
        # A rate that starts anywhere but at zero exaggerates every difference.
        axes.set_ylim(0.0 if low >= 0 or abs(low) < 0.2 * high else low, high)
    axes.set_xlim(*axes.get_xlim())
    if max(abs(low), high) >= 1e4 and not chart.log:
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    _label_ends(axes, ends)


def _bytes_axis(axes: Any, chart: Chart) -> None:
    """Powers of two along the x axis, at most seven of them named as sizes."""
    places = [float(x) for series in chart.series for x, y in series.points if y is not None and not isinstance(x, str)]
    axes.set_xscale("log", base=2)
    first, last = math.floor(math.log2(min(places))), math.ceil(math.log2(max(places)))
    step = max(1, -(-(last - first) // 6))
    ticks = [2.0**power for power in range(first + -first % step, last + 1, step)]
    axes.set_xticks(ticks, [units.size(tick) for tick in ticks])
    axes.minorticks_off()


def _extrapolated(series: Series, index: int) -> bool:
    return index < len(series.extrapolated) and series.extrapolated[index]


def _line(axes: Any, points: list[tuple[float, float | None, bool]], group: _ColourGroup, source: str) -> None:
    values = [(x, y, hollow) for x, y, hollow in points if y is not None]
    hollows = [(x, y) for x, y, hollow in values if hollow]
    if source == "published":
        style: dict[str, Any] = {"linestyle": "none", "marker": group.marker, "markersize": 5.5, "markeredgewidth": 1.2}
        filled = [(x, y) for x, y, hollow in values if not hollow]
        for chosen, face in ((filled, group.colour), (hollows, PAPER)):
            if chosen:
                axes.plot(*zip(*chosen, strict=True), markerfacecolor=face, markeredgecolor=group.colour, zorder=4,
                          **style)  # fmt: skip
        return
    # A measured point may have no neighbours, and a line alone would not show it.
    cross: Any = {"marker": "x", "markersize": 5.5, "markeredgewidth": 1.5} if source == "measured" else {}
    if len(values) == 1 and source == "predicted":
        cross = {"marker": "_", "markersize": 11, "markeredgewidth": 1.7}
    axes.plot([x for x, _, _ in points], [float("nan") if y is None else y for _, y, _ in points], color=group.colour,
              linewidth=1.7, linestyle=_DASHES.get(source, "solid"), zorder=3, **cross)  # fmt: skip
    if hollows:
        axes.plot(*zip(*hollows, strict=True), linestyle="none", marker=".", markersize=6, markerfacecolor=PAPER,
                  markeredgecolor=group.colour, zorder=3)  # fmt: skip


def _label_ends(axes: Any, ends: list[tuple[float, float, _ColourGroup]]) -> None:
    """Name each group at the right, apart from the others, next to where its line ends."""
    to_share, to_value = axes.transScale + axes.transLimits, (axes.transScale + axes.transLimits).inverted()
    right = axes.get_xlim()[1]
    ends = sorted(ends, key=lambda end: end[1])
    heights: list[float] = []
    for x, y, _ in ends:
        share = to_share.transform((x, y))[1]
        heights.append(max(share, heights[-1] + _LABEL_STEP) if heights else share)
    # Those that stand too high push the ones below them down.
    for place in reversed(range(len(heights))):
        most = heights[place + 1] - _LABEL_STEP if place + 1 < len(heights) else 1.0
        heights[place] = min(heights[place], most)
    for (x, y, group), height in zip(ends, heights, strict=True):
        level = to_value.transform((0.0, height))[1]
        style = {"color": group.colour, "linewidth": 0.7, "clip_on": False, "zorder": 2, "alpha": 0.55}
        axes.plot([x, right], [y, level], linestyle=(0, (1, 2)), **style)
        axes.annotate(group.name, xy=(right, level), xytext=(5, 0), textcoords="offset points", va="center",
                      ha="left", color=INK, fontsize=8.6, annotation_clip=False)  # fmt: skip


def _bars(axes: Any, chart: Chart, groups: Sequence[_ColourGroup]) -> None:
    names = _names(chart)
    series = [(group, line) for group in groups for line in group.series]
    height = 0.82 / max(1, len(series))
    for index, (group, line) in enumerate(series):
        for i, (x, y) in enumerate(line.points):
            if y is not None:
                middle = names.index(place_name(x)) - 0.41 + height * (index + 0.5)
                _bar(axes, middle, y, height, group.colour, line.source, _extrapolated(line, i))
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(max(1, len(names)) - 0.5, -0.5)
    widest = max((y for _, line in series for _, y in line.points if y is not None), default=0.0)
    axes.set_xlim(0, widest * 1.02 if widest > 0 else 1)


def _bar(axes: Any, middle: float, y: float, height: float, colour: str, source: str, hollow: bool) -> None:
    hatch = {"published": "" if hollow else "////", "measured": "...."}.get(source, "")
    outline = hollow or source in ("published", "measured")
    axes.barh(middle, y, height=height * 0.9, zorder=3, facecolor=PAPER if outline else colour, edgecolor=colour,
              linewidth=0.9, hatch=hatch or None, linestyle=(0, (3, 1.5)) if hollow else "solid")  # fmt: skip
    axes.annotate(units.number(y, 4 if abs(y) >= 100 else 3), xy=(y, middle), xytext=(3, 0), va="center", ha="left",
                  textcoords="offset points", fontsize=7.4, color=INK, annotation_clip=False)  # fmt: skip


def _names(chart: Chart) -> list[str]:
    return list(dict.fromkeys(place_name(x) for series in chart.series for x, _ in series.points))


def _keys(chart: Chart, groups: Sequence[_ColourGroup]) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys: list[Any] = []
    for source in dict.fromkeys(series.source for series in chart.series if _has_value(series)):
        if chart.kind == "bar":
            hatch = {"published": "////", "measured": "...."}.get(source)
            keys.append(Patch(facecolor=PAPER if hatch else SOFT, edgecolor=SOFT, label=source, hatch=hatch))
        elif source == "published":
            keys.append(Line2D([], [], color=SOFT, marker="o", linestyle="none", markersize=5, label=source))
        else:
            cross: Any = {"marker": "x", "markersize": 5} if source == "measured" else {}
            dashes = _DASHES.get(source, "solid")
            keys.append(Line2D([], [], color=SOFT, linewidth=1.7, linestyle=dashes, label=source, **cross))
    if any(any(series.extrapolated) for series in chart.series):
        shape: dict[str, Any] = {"markerfacecolor": PAPER, "markeredgecolor": SOFT, "markersize": 5.5}
        keys.append(Line2D([], [], marker="o", linestyle="none", label="extrapolated", **shape))
    if chart.kind == "bar" and len(groups) > 1:
        keys.extend(Patch(facecolor=group.colour, label=group.name) for group in groups)
    return keys
