"""Charts of a service under load: latency by percentile, where time goes, what was busy, and the search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lanewise import units
from lanewise.report import services
from lanewise.report.figure import (
    COLOURS,
    INK,
    PAPER,
    RULE,
    SOFT,
    dress,
    frame,
    legend,
    log_axis,
    note,
    on,
    painted,
    quantity,
)
from lanewise.report.services import TimeScale, UtilizationGroup
from lanewise.report.shapes import clip, text_width
from lanewise.results.service_result import ServiceResult, Stage

POINTS = 120  # in a line: more cannot be distinguished in print
_WIDTH = 6.6  # inches
_POINT = 72.0
_GOOD, _BAD = COLOURS[0], COLOURS[1]
_LAST, _FAR, _MOST_NAMED = 5, 6.0, 14  # runs that a search must show apart, and when it is drawn around them alone
_MEDIAN = -math.log10(1 - 0.5)
_NINES = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
_STAGES = {
    "queue": COLOURS[0], "copy wait": COLOURS[6], "copy slot wait": COLOURS[6], "connection wait": COLOURS[6],
    "link wait": COLOURS[1], "copy": COLOURS[5], "network": COLOURS[5], "GPU wait": COLOURS[3], "GPU": COLOURS[2],
    "return": COLOURS[7],
}  # fmt: skip


def charts(result: ServiceResult, name: str) -> dict[str, str]:
    """All charts of a service as <svg> elements by kind, their ids led by `name`; '' where there is nothing to draw."""
    return {
        "latency": percentile_chart(result, f"{name}-latency"),
        "stages": stage_chart(result, f"{name}-stages"),
        "use": use_chart(result, f"{name}-use"),
        "search": search_chart(result, f"{name}-search"),
    }


def percentile_chart(result: ServiceResult, salt: str) -> str:
    """Latency on a log axis against percentile, where each further nine takes the same room; '' without points."""
    clock, bound = services.clock(result), services.bound(result)
    values = [(_nines(share, result.queries), units.from_si(value, clock.unit)) for share, value in result.percentiles]
    finite = [(x, y) for x, y in values if x is not None and 0 < y < math.inf]
    slow = [(x, y) for x, y in finite if x >= _MEDIAN]
    points = thinned(slow if len(slow) > 1 else finite)
    if len(points) < 2:
        return ""

    def paint(figure: Any) -> None:
        axes = figure.add_axes(frame((_WIDTH, 3.3), left=0.62, right=0.35, top=0.42, bottom=0.55), facecolor="none")
        axes.set_yscale("log")
        axes.plot(*zip(*points, strict=True), color=_GOOD, linewidth=1.8, zorder=3, marker="o",
                  markersize=3.2 if len(points) <= 30 else 0)  # fmt: skip
        _log_limits(axes, [y for _, y in points] + [units.from_si(bound, clock.unit)] * (bound > 0))
        _nine_ticks(axes, [x for x, _ in points], result.percentiles[-1][0] >= 1)
        dress(axes, "percentile of queries")
        quantity(axes, f"latency, {clock.unit}", "left", (-30, 8))
        _bound(axes, result, points)

    return painted((_WIDTH, 3.3), f"{result.name}: latency in {clock.unit} against percentile", salt, paint)


def _nines(share: float, queries: int) -> float | None:
    """The x of a share: one unit to the right for each nine; the maximum is at the last query's share."""
    if share >= 1:
        return math.log10(queries) if queries > 1 else None
    return -math.log10(1 - share) if share >= 0 else None


def _nine_ticks(axes: Any, xs: Sequence[float], ends_at_maximum: bool) -> None:
    last = max(xs)
    ticks = [(-math.log10(1 - share), f"{100 * share:.8g} %") for share in _NINES]
    labels = [(x, text) for x, text in ticks if x <= last + 1e-9 and (not ends_at_maximum or last - x > 0.22)]
    if ends_at_maximum:
        labels.append((last, "max"))
    axes.set_xticks([x for x, _ in labels], [text for _, text in labels])
    axes.set_xlim(min(xs) - 0.06, last + 0.06)


def _log_limits(axes: Any, values: Sequence[float]) -> None:
    low, high = min(values), max(values)
    axes.set_ylim(low / 1.35, high * 1.5)
    span = high / low
    log_axis(axes, (1.0,) if span > 2e4 else (1.0, 3.0) if span > 60 else (1.0, 2.0, 5.0), ".4g")


def _bound(axes: Any, result: ServiceResult, points: Sequence[tuple[float, float]]) -> None:
    """The bound as a line, and what the percentile it is for came to."""
    clock = services.clock(result)
    x, y = _nines(result.percentile, result.queries), units.from_si(result.latency, clock.unit)
    if services.bound(result) > 0:
        bound = units.from_si(result.bound, clock.unit)
        axes.axhline(bound, color=INK, linewidth=1.2, linestyle=(0, (5, 2)), zorder=2)
        under = points[0][1] < bound
        text = f"bound {clock.short(result.bound)} at {100 * result.percentile:.8g} %"
        note(axes, text, (0.0 if under else 1.0, bound), (4 if under else -2, 3 if under else -3),
             "left" if under else "right", "bottom" if under else "top", axes.get_yaxis_transform())  # fmt: skip
    if x is None or y <= 0 or not points[0][0] <= x <= points[-1][0]:
        return
    axes.plot([x], [y], marker="o" if result.valid else "X", markersize=7, zorder=5, linestyle="none",
              markerfacecolor=_GOOD if result.valid else _BAD, markeredgecolor=PAPER)  # fmt: skip
    text = f"{services.percentile(result.percentile)} {clock.short(result.latency)}"
    note(axes, text, (x, y), (5, -7), "left", "top", axes.transData)


def stage_colours(stages: Sequence[Stage]) -> list[str]:
    """One colour a stage: the usual stages keep theirs from chart to chart, others get what is free."""
    free = [colour for colour in COLOURS if colour not in {_STAGES.get(stage.name) for stage in stages}]
    unused = iter((free or list(COLOURS)) * len(stages))
    return [_STAGES.get(stage.name) or next(unused) for stage in stages]


def stage_chart(result: ServiceResult, salt: str) -> str:
    """Two stacked bars, the mean query and the slowest ones; '' without stages. Its legend is the table next to it."""
    clock = services.clock(result)
    sums = [math.fsum(getattr(stage, part) for stage in result.stages) for part in ("mean", "slowest")]
    longest = max(sums)
    if longest <= 0:
        return ""
    bound = services.bound(result) if services.bound(result) <= 2.5 * longest else 0.0
    right = units.from_si(max(longest * 1.01, bound * 1.02), clock.unit)
    left, height = 1.12, 1.75

    def paint(figure: Any) -> None:
        axes = figure.add_axes(frame((_WIDTH, height), left=left, right=0.45, top=0.32, bottom=0.5), facecolor="none")
        axes.set_xlim(0, right)
        axes.set_ylim(1.5, -0.5)
        room = (_WIDTH - left - 0.45) * _POINT / right
        for row, part in enumerate(("mean", "slowest")):
            lengths = [units.from_si(getattr(stage, part), clock.unit) for stage in result.stages]
            _stack(axes, row, lengths, stage_colours(result.stages), room, units.from_si(bound, clock.unit))
        names = zip(("mean", services.slowest(result)), sums, strict=True)
        axes.set_yticks([0, 1], [f"{name}\n{clock.short(total)}" for name, total in names])
        axes.tick_params(axis="y", length=0)
        if bound:
            at = units.from_si(bound, clock.unit)
            axes.axvline(at, color=INK, linewidth=1.2, linestyle=(0, (5, 2)), zorder=5)
            note(axes, f"bound {clock.short(bound)}", (at, 1.0), (0, 3), "center", "bottom", axes.get_xaxis_transform())
        dress(axes, f"time of a query, {clock.unit}", grid="x")

    return painted((_WIDTH, height), f"{result.name}: where a query's time goes, {clock.unit}", salt, paint)


def _stack(axes: Any, row: int, lengths: Sequence[float], colours: Sequence[str], room: float, bound: float) -> None:
    start = 0.0
    for length, colour in zip(lengths, colours, strict=True):
        axes.barh(row, length, left=start, height=0.66, facecolor=colour, edgecolor=PAPER, linewidth=0.8, zorder=3)
        text = units.number(length, 2)
        # A label is inside its segment or left out: the table next to the chart has all of them.
        wide = text_width(text, 8.2) + 5
        if wide <= length * room and (not bound or abs(start + length / 2 - bound) * room > wide / 2):
            axes.text(start + length / 2, row, text, ha="center", va="center", fontsize=8.2, color=on(colour))
        start += length


def use_chart(result: ServiceResult, salt: str) -> str:
    """Use over time of the ten busiest, one strip each from 0 to 100 %, or their means where no series is known."""
    busy = services.shown_busy(result)
    if not busy:
        return ""
    over_time = result.series_step > 0 and any(strip.series for strip in busy)
    names = [clip(f"{strip.name} ({strip.spread})" if strip.spread else strip.name, 12.0, 230) for strip in busy]
    left = 0.25 + max(text_width(name, 12.0) for name in names) / 96
    height = 0.82 + 0.27 * len(busy)

    def paint(figure: Any) -> None:
        axes = figure.add_axes(frame((_WIDTH, height), left=left, right=0.62, top=0.28, bottom=0.5), facecolor="none")
        span = result.series_step * max(len(strip.series) for strip in busy) if over_time else 1.0
        clock = services.scale(span)
        for row, strip in enumerate(busy):
            _strip(axes, row, strip, result.series_step, clock if over_time else None, span)
        axes.set_ylim(len(busy) - 0.02, -0.12)
        axes.set_yticks([row + 0.8 for row in range(len(busy))], names, va="bottom")
        axes.set_xlim(0, units.from_si(span, clock.unit) if over_time else 100)
        axes.annotate("mean", xy=(1, 1), xycoords="axes fraction", xytext=(4, 4), textcoords="offset points",
                      fontsize=8.2, color=SOFT, annotation_clip=False)  # fmt: skip
        dress(axes, f"time, {clock.unit}" if over_time else "mean use, %", grid="" if over_time else "x")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)

    what = "use over time" if over_time else "mean use"
    return painted((_WIDTH, height), f"{result.name}: {what} of the busiest, 0 to 100 %", salt, paint)


def _strip(axes: Any, row: int, strip: UtilizationGroup, step: float, clock: TimeScale | None, span: float) -> None:
    """One resource: an area on a floor of its own, its ceiling 100 %; without a series a bar of its mean."""
    colour = COLOURS[0] if strip.mean < services.FULL else COLOURS[1]
    floor = row + 0.8
    if clock is None:
        axes.barh(row + 0.45, 100 * strip.mean, height=0.62, facecolor=colour, zorder=3)
    else:
        end = units.from_si(span, clock.unit)
        axes.plot([0, end], [floor - 0.76] * 2, color=RULE, linewidth=0.7, zorder=1)
        axes.plot([0, end], [floor] * 2, color=SOFT, linewidth=0.6, zorder=4)
        width = units.from_si(step, clock.unit)
        values = averaged(strip.series) or [(0.0, strip.mean)]
        values = [(0.0, values[0][1]), *values, (len(strip.series) or end / width, values[-1][1])]
        xs, ys = [at * width for at, _ in values], [floor - 0.76 * min(1.0, max(0.0, use)) for _, use in values]
        axes.fill_between(xs, ys, floor, facecolor=colour, alpha=0.3, linewidth=0, zorder=2)
        axes.plot(xs, ys, color=colour, linewidth=1.1, zorder=3, linestyle="solid" if strip.series else (0, (4, 2)))
    axes.annotate(f"{100 * strip.mean:.0f} %", xy=(1, floor), xycoords=axes.get_yaxis_transform(), xytext=(4, 1),
                  textcoords="offset points", va="bottom", fontsize=8.6, color=INK, annotation_clip=False)  # fmt: skip


def search_chart(result: ServiceResult, salt: str) -> str:
    """The rate of each run of the search with its verdict, and the interval it ended in; '' without runs."""
    if not result.search_runs:
        return ""
    runs = [(number, run.rate / 1e3, run.valid) for number, run in enumerate(result.search_runs, 1)]
    low, high = (rate / 1e3 for rate in window(result))

    def paint(figure: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = figure.add_axes(frame((_WIDTH, 3.5), left=0.62, right=0.35, top=0.72, bottom=0.55), facecolor="none")
        axes.plot([x for x, _, _ in runs], [y for _, y, _ in runs], color=SOFT, linewidth=0.8, zorder=2)
        axes.set_xlim(0.5, len(runs) + 0.5)
        axes.set_ylim(low, high)
        for x, y, valid in runs:
            _run(axes, x, y, valid, low, high, len(runs) <= _MOST_NAMED)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=14))
        axes.ticklabel_format(axis="y", useOffset=False, style="plain")
        axes.set_yticks([tick for tick in axes.get_yticks() if low == 0 or low + 0.08 * (high - low) < tick <= high])
        axes.set_ylim(low, high)
        dress(axes, "run of the search")
        quantity(axes, "rate, thousand QPS" + ", axis cut: not from 0" * (low > 0), "left", (-30, 8))
        if low > 0:
            _break(axes)
        keys = _verdicts({valid for _, _, valid in runs}, any(not low <= y <= high for _, y, _ in runs))
        legend(figure, _levels(axes, result), (0.0, 1.0), "upper left")
        legend(figure, keys, (1 - 0.35 / _WIDTH, 1 - 0.27 / 3.5))

    return painted((_WIDTH, 3.5), f"{result.name}: rate of each run of the search, thousand QPS", salt, paint)


def window(result: ServiceResult) -> tuple[float, float]:
    """The rates (QPS) between which the search is drawn: of all runs, or around the last ones if those would vanish.

    It starts at 0 where cutting the axis would gain little.
    """
    ends = list(result.peak) if result.peak is not None and result.peak[0] > 0 else []
    rates = [run.rate for run in result.search_runs] + ends
    low, high = min(rates), max(rates)
    last = rates[: -len(ends) or None][-_LAST:] + ends
    around = max(max(last) - min(last), 1e-3 * max(last))
    if high - low > _FAR * around:
        low, high = max(low, min(last) - around), min(high, max(last) + around)
    span = max(high - low, 0.01 * high)
    if result.steady and high < result.steady <= high + 0.6 * span:
        high = result.steady
    low, high = low - 0.12 * span, high + 0.12 * span
    return (0.0 if low < 0.3 * high else low), high


def _run(axes: Any, x: int, y: float, valid: bool, low: float, high: float, named: bool) -> None:
    """One run as its verdict's mark; beyond the window at its edge, as an arrow with its rate."""
    colour, shape = (_GOOD, "o") if valid else (_BAD, "X")
    look: dict[str, Any] = {"linestyle": "none", "markerfacecolor": colour, "markeredgecolor": PAPER, "clip_on": False}
    if low <= y <= high:
        axes.plot([x], [y], marker=shape, markersize=7, zorder=4, **look)
        return
    over = y > high
    edge = high if over else low
    axes.plot([x], [edge], marker="^" if over else "v", markersize=7, zorder=4, **look)
    if named:
        note(axes, f"{y:,.4g}", (x, edge), (0, -7 if over else 6), "center", "top" if over else "bottom",
             axes.transData)  # fmt: skip


def _break(axes: Any) -> None:
    """Two strokes across the foot of the y axis."""
    for up in (5.0, 9.0):
        axes.plot([-0.011, 0.011], [up / 160 - 0.012, up / 160 + 0.012], transform=axes.transAxes, color=INK,
                  linewidth=1.0, clip_on=False, zorder=6)  # fmt: skip


def _levels(axes: Any, result: ServiceResult) -> list[Any]:
    """The final interval as a band, the steady state as a line; their keys say their figures, clear of the runs."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    bottom, top = axes.get_ylim()
    keys: list[Any] = []
    if result.peak is not None and result.peak[0] > 0:
        low, high = (value / 1e3 for value in result.peak)
        axes.axhspan(low, max(high, low + 0.012 * (top - bottom)), facecolor=COLOURS[2], alpha=0.45, zorder=1,
                     linewidth=0)  # fmt: skip
        keys.append(Patch(facecolor=COLOURS[2], alpha=0.45, label=f"ends in {services.interval(*result.peak)}"))
    if result.steady:
        steady = result.steady / 1e3
        style: dict[str, Any] = {"color": SOFT, "linewidth": 1.2, "linestyle": (0, (1, 2))}
        where = " (above the chart)" if steady > top else " (below the chart)" if steady < bottom else ""
        if not where:
            axes.axhline(steady, zorder=1, **style)
        keys.append(Line2D([], [], label=f"without a bound {services.rate(result.steady)}{where}", **style))
    return keys


def _verdicts(verdicts: set[bool], beyond: bool) -> list[Any]:
    from matplotlib.lines import Line2D

    looks: dict[bool, dict[str, Any]] = {
        True: {"marker": "o", "markerfacecolor": _GOOD, "label": "VALID"},
        False: {"marker": "X", "markerfacecolor": _BAD, "label": "INVALID"},
    }
    keys = [looks[valid] for valid in (True, False) if valid in verdicts]
    if beyond:
        keys.append({"marker": "^", "markerfacecolor": SOFT, "label": "beyond the chart"})
    return [Line2D([], [], linestyle="none", markersize=7, markeredgecolor=PAPER, **key) for key in keys]


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
