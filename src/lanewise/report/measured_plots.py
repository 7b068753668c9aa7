"""Charts of measured rows: how samples scatter, and rates and times by size with the line fitted to them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lanewise import units
from lanewise.report.figure import COLOURS, MARKERS, PAPER, RULE, SMALL, SOFT, dress, frame, log_axis, painted, quantity
from lanewise.report.measured import label, relative_range
from lanewise.report.shapes import clip
from lanewise.results.observation import Observation

WIDEST = 12  # cells whose samples are drawn
MOST_LINES = 8  # in one chart: as many as there are colours
_LABELS = 4.2  # inches for the names of cells


@dataclass(frozen=True, slots=True)
class SizeLine:
    """One flow at several sizes: (bytes, median, smallest, largest), and latency (s) and bandwidth (B/s) if fitted."""

    name: str
    points: tuple[tuple[int, float, float, float], ...]
    fit: tuple[float, float] | None = None

    @property
    def formula(self) -> str:
        """'host0->gpu0: 4.2 us + bytes / 55.6 GB/s', '' where nothing was fitted."""
        if self.fit is None:
            return ""
        latency, bandwidth = self.fit
        return f"{self.name}: {units.readable(latency, 's', 3)} + bytes / {units.readable(bandwidth, 'B/s', 3)}"


@dataclass(frozen=True, slots=True)
class SizeSweep:
    """The lines of one scenario, metric and unit."""

    metric: str
    unit: str
    lines: tuple[SizeLine, ...]


def widest(rows: Iterable[Observation]) -> list[Observation]:
    """The rows whose samples are furthest apart, widest first; three samples at least."""
    ranges = [(share, row) for row in rows if (share := relative_range(row)) and len(row.samples) > 2]
    return [row for _, row in sorted(ranges, key=lambda pair: -pair[0])[:WIDEST]]


def scatter(rows: Sequence[Observation]) -> str:
    """Every sample of each row in % off its median: in the order taken from top to bottom, over quartiles."""
    height = 0.75 + 0.36 * len(rows)

    def paint(figure: Any) -> None:
        axes = figure.add_axes(frame((11.0, height), left=_LABELS, right=0.2, top=0.1, bottom=0.5), facecolor="none")
        for index, row in enumerate(rows):
            _strip(axes, index, row)
        axes.set_yticks(range(len(rows)), [clip(label(row), 9.0, 72 * _LABELS - 10) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.axvline(0, color=SOFT, linewidth=0.8, zorder=1)
        dress(axes, "% off the median of the row", grid="x")
        axes.tick_params(axis="y", length=0)

    return painted((11.0, height), "Samples of the rows that scatter most", "measured-scatter", paint)


def _strip(axes: Any, index: int, row: Observation) -> None:
    middle = statistics.median(row.samples)
    shares = [100 * (value / middle - 1) for value in row.samples]
    low, _, high = statistics.quantiles(shares, n=4, method="inclusive")
    axes.barh(index, high - low, left=low, height=0.62, facecolor=RULE, edgecolor="none", zorder=2)
    axes.plot([min(shares), max(shares)], [index, index], color=SOFT, linewidth=0.8, zorder=2)
    step = 0.5 / max(1, len(shares) - 1)
    ys = [index - 0.25 + step * order for order in range(len(shares))]
    axes.plot(shares, ys, linestyle="none", marker="o", markersize=3.4, markerfacecolor=COLOURS[0],
              markeredgecolor=PAPER, markeredgewidth=0.4, zorder=3)  # fmt: skip


def sweeps(rows: Sequence[Observation]) -> list[SizeSweep]:
    """What was measured at three sizes at least, with the fits among the rows."""
    groups: dict[tuple[str, str], dict[str, list[Observation]]] = {}
    for row in rows:
        if "bytes" in row.settings and row.value and row.unit in ("B/s", "s"):
            groups.setdefault((row.metric, row.display_unit), {}).setdefault(_name(row), []).append(row)
    fits = _fitted(rows)
    long = {
        key: [
            _line(name, line, fits) for name, line in lines.items() if len({row.settings["bytes"] for row in line}) > 2
        ]
        for key, lines in groups.items()
    }
    return [SizeSweep(metric, unit, tuple(lines)) for (metric, unit), lines in long.items() if lines]


def _name(row: Observation) -> str:
    settings = [f"{key}={value}" for key, value in row.settings.items() if key != "bytes"]
    return " ".join(filter(None, [row.flow, *settings]))


def _fitted(rows: Iterable[Observation]) -> dict[str, tuple[float, float]]:
    """Latency in s and bandwidth in B/s by name of the line."""
    fits: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.metric in ("fit_latency", "fit_bandwidth") and row.value is not None:
            fits.setdefault(_name(row), {})[row.metric] = row.value
    return {name: (fit["fit_latency"], fit["fit_bandwidth"]) for name, fit in fits.items() if len(fit) == 2}


def _line(name: str, rows: Sequence[Observation], fits: Mapping[str, tuple[float, float]]) -> SizeLine:
    points = [
        (row.settings["bytes"], value, row.display(row.low) or value, row.display(row.high) or value)
        for row in rows
        if (value := row.display(row.value)) is not None
    ]
    return SizeLine(name, tuple(sorted(points)), fits.get(name))


def by_size(sweep: SizeSweep, salt: str) -> str:
    """Medians by size, both axes logarithmic, the range of the samples as a bar and the fit as a thin line."""

    def paint(figure: Any) -> None:
        axes = figure.add_axes(frame((6.6, 4.0), left=0.62, right=0.18, top=0.35, bottom=0.55), facecolor="none")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        for index, line in enumerate(sweep.lines[:MOST_LINES]):
            _draw(axes, line, index, sweep.unit)
        _sizes(axes, [point[0] for line in sweep.lines for point in line.points])
        low, high = axes.get_ylim()
        axes.set_position(frame((6.6, 4.0), left=_left(high), right=0.18, top=0.35, bottom=0.55))
        log_axis(axes, (1.0, 2.0, 5.0) if high / low < 2000 else (1.0,), ".10g")
        dress(axes, "bytes")
        quantity(axes, sweep.unit)
        corner = "lower right" if units.dimension(sweep.unit) == "B/s" else "upper left"
        axes.legend(loc=corner, frameon=False, fontsize=SMALL, handlelength=1.4, borderaxespad=0.2)

    return painted((6.6, 4.0), f"{sweep.metric} in {sweep.unit} by size", salt, paint)


def _left(high: float) -> float:
    """The left margin, in inches, that the label of the highest power of ten below `high` needs."""
    return max(0.62, 0.14 + 0.075 * len(f"{10 ** math.floor(math.log10(high)):,.10g}"))


def _draw(axes: Any, line: SizeLine, index: int, unit: str) -> None:
    colour, marker = COLOURS[index], MARKERS[index]
    xs = [point[0] for point in line.points]
    middles = [point[1] for point in line.points]
    ends = [[middle - low for _, middle, low, _ in line.points], [high - middle for _, middle, _, high in line.points]]
    axes.errorbar(xs, middles, yerr=ends, linestyle="none", marker=marker, markersize=4.4, color=colour,
                  elinewidth=1.0, label=line.name, zorder=3)  # fmt: skip
    if line.fit is None:
        axes.plot(xs, middles, color=colour, linewidth=0.9, linestyle=(0, (4, 1.5)), zorder=2)
        return
    latency, bandwidth = line.fit
    steps = [xs[0] * (xs[-1] / xs[0]) ** (i / 60) for i in range(61)]
    times = [latency + step / bandwidth for step in steps]
    rate = units.dimension(unit) == "B/s"
    values = [step / time if rate else time for step, time in zip(steps, times, strict=True)]
    axes.plot(steps, [units.from_si(value, unit) for value in values], color=colour, linewidth=1.1, zorder=2)


def _sizes(axes: Any, sizes: Sequence[int]) -> None:
    from matplotlib.ticker import NullLocator

    low, high = min(sizes).bit_length() - 1, max(sizes).bit_length() - 1
    step = max(1, round((high - low) / 7))
    ticks = [2**power for power in range(low, high + 1, step)]
    axes.set_xticks(ticks, [units.size(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def below(sweep: SizeSweep) -> str:
    """What is said below a chart: the lines fitted, and how many lines are not drawn."""
    formulas = [line.formula for line in sweep.lines if line.formula]
    rest = len(sweep.lines) - MOST_LINES
    return "; ".join(formulas) + (f". {rest} more in the table." if rest > 0 else "")
