"""Charts of a service under load: latency by percentile, where time goes, what was busy, and the search."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lanewise import units
from lanewise.report import services
from lanewise.report.metrics import clip, text_width
from lanewise.report.plots import COLOURS, INK, PAPER, RULE, SOFT, painted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.report.services import Scale
    from lanewise.results.loaded import Busy, Loaded, Stage

POINTS = 120  # in a line: more cannot be told apart in print
FULL = 0.9  # use from which a strip stands out
_WIDTH = 6.6  # inches
_POINT = 72.0
_GOOD, _BAD = COLOURS[0], COLOURS[1]
_MEDIAN = -math.log10(1 - 0.5)
_NINES = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
_STAGES = {
    "queue": COLOURS[0], "copy wait": COLOURS[6], "copy slot wait": COLOURS[6], "connection wait": COLOURS[6],
    "link wait": COLOURS[1], "copy": COLOURS[5], "network": COLOURS[5], "GPU wait": COLOURS[3], "GPU": COLOURS[2],
    "return": COLOURS[7],
}  # fmt: skip


def percentile_chart(loaded: Loaded, salt: str) -> str:
    """Latency on a log axis against percentile, where each further nine takes the same room; '' without points."""
    clock, bound = services.clock(loaded), services.bound(loaded)
    places = [(_nines(share, loaded.queries), units.from_si(value, clock.unit)) for share, value in loaded.percentiles]
    known = [(x, y) for x, y in places if x is not None and 0 < y < math.inf]
    slow = [(x, y) for x, y in known if x >= _MEDIAN]
    points = thinned(slow if len(slow) > 1 else known)
    if len(points) < 2:
        return ""

    def paint(figure: Any) -> None:
        axes = figure.add_axes(_frame(3.3, left=0.62, right=0.35, top=0.42, bottom=0.55), facecolor="none")
        axes.set_yscale("log")
        axes.plot(*zip(*points, strict=True), color=_GOOD, linewidth=1.8, zorder=3, marker="o",
                  markersize=3.2 if len(points) <= 30 else 0)  # fmt: skip
        _plain_log(axes, [y for _, y in points] + [units.from_si(bound, clock.unit)] * (bound > 0))
        _nine_ticks(axes, [x for x, _ in points], loaded.percentiles[-1][0] >= 1)
        _dress(axes, "percentile of queries", f"latency, {clock.unit}")
        _bound(axes, loaded, points)

    return painted((_WIDTH, 3.3), f"{loaded.name}: latency in {clock.unit} against percentile", salt, paint)


def _nines(share: float, queries: int) -> float | None:
    """Where a share stands: one unit to the right for each nine; the maximum stands at the last query's share."""
    if share >= 1:
        return math.log10(queries) if queries > 1 else None
    return -math.log10(1 - share) if share >= 0 else None


def _nine_ticks(axes: Any, xs: Sequence[float], ends_at_maximum: bool) -> None:
    last = max(xs)
    ticks = [(-math.log10(1 - share), f"{100 * share:.8g} %") for share in _NINES]
    shown = [(x, text) for x, text in ticks if x <= last + 1e-9 and (not ends_at_maximum or last - x > 0.22)]
    if ends_at_maximum:
        shown.append((last, "max"))
    axes.set_xticks([x for x, _ in shown], [text for _, text in shown])
    axes.set_xlim(min(xs) - 0.06, last + 0.06)


def _plain_log(axes: Any, values: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = min(values), max(values)
    axes.set_ylim(low / 1.35, high * 1.5)
    span = high / low
    steps = (1.0,) if span > 2e4 else (1.0, 3.0) if span > 60 else (1.0, 2.0, 5.0)
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=steps))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))


def _bound(axes: Any, loaded: Loaded, points: Sequence[tuple[float, float]]) -> None:
    """The bound as a line, and what the percentile it is for came to."""
    clock = services.clock(loaded)
    x, y = _nines(loaded.percentile, loaded.queries), units.from_si(loaded.latency, clock.unit)
    if services.bound(loaded) > 0:
        bound = units.from_si(loaded.bound, clock.unit)
        axes.axhline(bound, color=INK, linewidth=1.2, linestyle=(0, (5, 2)), zorder=2)
        under = points[0][1] < bound
        text = f"bound {clock.short(loaded.bound)} at {100 * loaded.percentile:.8g} %"
        _say(axes, text, (0.0 if under else 1.0, bound), (4 if under else -2, 3 if under else -3),
             "left" if under else "right", "bottom" if under else "top", axes.get_yaxis_transform())  # fmt: skip
    if x is None or y <= 0 or not points[0][0] <= x <= points[-1][0]:
        return
    axes.plot([x], [y], marker="o" if loaded.valid else "X", markersize=7, zorder=5, linestyle="none",
              markerfacecolor=_GOOD if loaded.valid else _BAD, markeredgecolor=PAPER)  # fmt: skip
    text = f"{services.percentile(loaded.percentile)} {clock.short(loaded.latency)}"
    _say(axes, text, (x, y), (5, -7), "left", "top", axes.transData)


def _say(
    axes: Any, text: str, at: tuple[float, float], off: tuple[float, float], ha: str, va: str, transform: Any
) -> None:
    axes.annotate(text, xy=at, xycoords=transform, xytext=off, textcoords="offset points", ha=ha, va=va, fontsize=8.4,
                  color=INK, annotation_clip=False, zorder=6)  # fmt: skip


def stage_colours(stages: Sequence[Stage]) -> list[str]:
    """One colour a stage: the usual stages keep theirs from chart to chart, others get what is free."""
    free = [colour for colour in COLOURS if colour not in {_STAGES.get(stage.name) for stage in stages}]
    taken = iter((free or list(COLOURS)) * len(stages))
    return [_STAGES.get(stage.name) or next(taken) for stage in stages]


def stage_chart(loaded: Loaded, salt: str) -> str:
    """Two stacked bars, the mean query and the slowest ones; '' without stages. Its legend is the table beside it."""
    clock, longest = services.clock(loaded), services.longest(loaded.stages)
    if longest <= 0:
        return ""
    bound = services.bound(loaded) if services.bound(loaded) <= 2.5 * longest else 0.0
    right = units.from_si(max(longest * 1.01, bound * 1.02), clock.unit)
    left, height = 1.12, 1.75

    def paint(figure: Any) -> None:
        axes = figure.add_axes(_frame(height, left=left, right=0.45, top=0.32, bottom=0.5), facecolor="none")
        axes.set_xlim(0, right)
        axes.set_ylim(1.5, -0.5)
        room = (_WIDTH - left - 0.45) * _POINT / right
        for row, part in enumerate(("mean", "slowest")):
            lengths = [units.from_si(getattr(stage, part), clock.unit) for stage in loaded.stages]
            _stack(axes, row, lengths, stage_colours(loaded.stages), room, units.from_si(bound, clock.unit))
        sums = [clock.short(math.fsum(getattr(stage, part) for stage in loaded.stages)) for part in ("mean", "slowest")]
        axes.set_yticks([0, 1], [f"mean\n{sums[0]}", f"{services.slowest(loaded)}\n{sums[1]}"])
        axes.tick_params(axis="y", length=0)
        if bound:
            at = units.from_si(bound, clock.unit)
            axes.axvline(at, color=INK, linewidth=1.2, linestyle=(0, (5, 2)), zorder=5)
            _say(axes, f"bound {clock.short(bound)}", (at, 1.0), (0, 3), "center", "bottom", axes.get_xaxis_transform())
        _dress(axes, f"time of a query, {clock.unit}", "", grid="x")

    return painted((_WIDTH, height), f"{loaded.name}: where a query's time goes, {clock.unit}", salt, paint)


def _stack(axes: Any, row: int, lengths: Sequence[float], colours: Sequence[str], room: float, bound: float) -> None:
    start = 0.0
    for length, colour in zip(lengths, colours, strict=True):
        axes.barh(row, length, left=start, height=0.66, facecolor=colour, edgecolor=PAPER, linewidth=0.8, zorder=3)
        text = units.number(length, 2)
        # A label stands in its segment or nowhere: the table beside the chart has all of them.
        wide = text_width(text, 8.2) + 5
        if wide <= length * room and (not bound or abs(start + length / 2 - bound) * room > wide / 2):
            axes.text(start + length / 2, row, text, ha="center", va="center", fontsize=8.2, color=_on(colour))
        start += length


def _on(colour: str) -> str:
    """Black or white, whichever reads better on a colour (WCAG's relative luminance)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"


def use_chart(loaded: Loaded, salt: str) -> str:
    """Use over time of the ten busiest, one strip each from 0 to 100 %, or their means where no series is known."""
    busy = services.shown_busy(loaded)
    if not busy:
        return ""
    over_time = loaded.series_step > 0 and any(one.series for one in busy)
    names = [clip(one.name, 12.0, 205) for one in busy]
    left = 0.25 + max(text_width(name, 12.0) for name in names) / 96
    height = 0.82 + 0.27 * len(busy)

    def paint(figure: Any) -> None:
        axes = figure.add_axes(_frame(height, left=left, right=0.62, top=0.28, bottom=0.5), facecolor="none")
        span = loaded.series_step * max(len(one.series) for one in busy) if over_time else 1.0
        clock = services.scale(span)
        for row, one in enumerate(busy):
            _strip(axes, row, one, loaded.series_step, clock if over_time else None, span)
        axes.set_ylim(len(busy) - 0.02, -0.12)
        axes.set_yticks([row + 0.8 for row in range(len(busy))], names, va="bottom")
        axes.set_xlim(0, units.from_si(span, clock.unit) if over_time else 100)
        axes.annotate("mean", xy=(1, 1), xycoords="axes fraction", xytext=(4, 4), textcoords="offset points",
                      fontsize=8.2, color=SOFT, annotation_clip=False)  # fmt: skip
        _dress(axes, f"time, {clock.unit}" if over_time else "mean use, %", "", grid="" if over_time else "x")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)

    what = "use over time" if over_time else "mean use"
    return painted((_WIDTH, height), f"{loaded.name}: {what} of the busiest, 0 to 100 %", salt, paint)


def _strip(axes: Any, row: int, one: Busy, step: float, clock: Scale | None, span: float) -> None:
    """One resource: an area on a floor of its own, its ceiling 100 %; without a series a bar of its mean."""
    colour = COLOURS[0] if one.mean < FULL else COLOURS[1]
    floor = row + 0.8
    if clock is None:
        axes.barh(row + 0.45, 100 * one.mean, height=0.62, facecolor=colour, zorder=3)
    else:
        end = units.from_si(span, clock.unit)
        axes.plot([0, end], [floor - 0.76] * 2, color=RULE, linewidth=0.7, zorder=1)
        axes.plot([0, end], [floor] * 2, color=SOFT, linewidth=0.6, zorder=4)
        width = units.from_si(step, clock.unit)
        values = averaged(one.series) or [(0.0, one.mean)]
        values = [(0.0, values[0][1]), *values, (len(one.series) or end / width, values[-1][1])]
        xs, ys = [at * width for at, _ in values], [floor - 0.76 * min(1.0, max(0.0, use)) for _, use in values]
        axes.fill_between(xs, ys, floor, facecolor=colour, alpha=0.3, linewidth=0, zorder=2)
        axes.plot(xs, ys, color=colour, linewidth=1.1, zorder=3, linestyle="solid" if one.series else (0, (4, 2)))
    axes.annotate(f"{100 * one.mean:.0f} %", xy=(1, floor), xycoords=axes.get_yaxis_transform(), xytext=(4, 1),
                  textcoords="offset points", va="bottom", fontsize=8.6, color=INK, annotation_clip=False)  # fmt: skip


def search_chart(loaded: Loaded, salt: str) -> str:
    """The rate of each run of the search with its verdict, and the interval it ended in; '' without runs."""
    if not loaded.tried:
        return ""
    runs = [(number, one.qps / 1e3, one.valid) for number, one in enumerate(loaded.tried, 1)]

    def paint(figure: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = figure.add_axes(_frame(3.3, left=0.62, right=0.35, top=0.42, bottom=0.55), facecolor="none")
        axes.plot([x for x, _, _ in runs], [y for _, y, _ in runs], color=SOFT, linewidth=0.8, zorder=2)
        for valid, colour, marker in ((True, _GOOD, "o"), (False, _BAD, "X")):
            chosen = [(x, y) for x, y, good in runs if good is valid]
            if chosen:
                axes.plot(*zip(*chosen, strict=True), linestyle="none", marker=marker, markersize=7, zorder=4,
                          markerfacecolor=colour, markeredgecolor=PAPER)  # fmt: skip
        axes.set_xlim(0.5, len(runs) + 0.5)
        axes.set_ylim(0, 1.14 * max([y for _, y, _ in runs] + [(loaded.steady or 0) / 1e3]))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=14))
        _dress(axes, "run of the search", "rate, thousand QPS")
        _levels(axes, loaded)
        _verdict_legend(figure, {valid for _, _, valid in runs})

    return painted((_WIDTH, 3.3), f"{loaded.name}: rate of each run of the search, thousand QPS", salt, paint)


def _levels(axes: Any, loaded: Loaded) -> None:
    """The final interval as a band, the steady state as a line, each with its figures."""
    top = axes.get_ylim()[1]
    steady_below = loaded.peak is not None and loaded.steady is not None and loaded.steady < loaded.peak[1]
    if loaded.peak is not None and loaded.peak[0] > 0:
        low, high = (value / 1e3 for value in loaded.peak)
        axes.axhspan(low, max(high, low + 0.008 * top), facecolor=COLOURS[2], alpha=0.45, zorder=1, linewidth=0)
        off, va = ((-2, 9), "bottom") if steady_below else ((-2, -11), "top")
        _say(axes, f"ends in {services.interval(*loaded.peak)}", (1.0, low), off, "right", va,
             axes.get_yaxis_transform())  # fmt: skip
    if loaded.steady:
        off, va = ((-2, -7), "top") if steady_below else ((-2, 6), "bottom")
        axes.axhline(loaded.steady / 1e3, color=SOFT, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
        _say(axes, f"without a bound {services.rate(loaded.steady)}", (1.0, loaded.steady / 1e3), off, "right", va,
             axes.get_yaxis_transform())  # fmt: skip


def _verdict_legend(figure: Any, seen: set[bool]) -> None:
    from matplotlib.lines import Line2D

    looks: dict[bool, dict[str, Any]] = {
        True: {"marker": "o", "markerfacecolor": _GOOD, "label": "VALID"},
        False: {"marker": "X", "markerfacecolor": _BAD, "label": "INVALID"},
    }
    keys = [Line2D([], [], linestyle="none", markersize=7, markeredgecolor=PAPER, **looks[one]) for one in (True, False)
            if one in seen]  # fmt: skip
    figure.legend(handles=keys, loc="upper right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, fontsize=8.2,
                  handletextpad=0.2, columnspacing=1.2, borderaxespad=0.2)  # fmt: skip


def averaged(series: Sequence[float], most: int = POINTS) -> list[tuple[float, float]]:
    """At most `most` points (place in intervals, mean use of the intervals around it)."""
    size = max(1, math.ceil(len(series) / most))
    parts = [(start, series[start : start + size]) for start in range(0, len(series), size)]
    return [(start + len(part) / 2, math.fsum(part) / len(part)) for start, part in parts]


def thinned(points: Sequence[tuple[float, float]], most: int = 2 * POINTS // 3) -> list[tuple[float, float]]:
    """At most `most` of the points, evenly chosen, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    step = (len(points) - 1) / (most - 1)
    return [points[round(index * step)] for index in range(most)]


def _frame(
    height: float, left: float, right: float, top: float, bottom: float
) -> tuple[float, float, float, float]:
    """Margins in inches as the fractions of a figure that axes take."""
    return (left / _WIDTH, bottom / height, (_WIDTH - left - right) / _WIDTH, (height - top - bottom) / height)


def _dress(axes: Any, x_label: str, y_label: str, grid: str = "y") -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel(x_label, labelpad=4)
    if y_label:
        axes.annotate(y_label, xy=(0, 1), xycoords="axes fraction", xytext=(-30, 8), textcoords="offset points",
                      ha="left", va="bottom", color=INK, annotation_clip=False)  # fmt: skip
    if grid:
        axes.grid(axis=grid, color=RULE, linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, width=0.8)


__all__ = [
    "FULL", "averaged", "percentile_chart", "search_chart", "stage_chart", "stage_colours", "thinned", "use_chart",
]  # fmt: skip
