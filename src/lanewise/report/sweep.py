"""The chart of a sweep of load tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanewise.report.figure import COLOURS, INK, PAPER, RULE, SOFT, painted

_WIDTH, _HEIGHT = 7.4, 3.3  # inches
_LABELS = {"GPUs": "GPUs", "batch": "largest batch, queries", "streams": "batches in flight", "path": "path (devices)"}
_PATH, _DOUBLING = "path", ("batch", "streams")
_DASHED = (0, (4, 2))
_EXTRAPOLATED = "extrapolated"
_CROSS: dict[str, Any] = {
    "color": INK, "marker": "x", "markersize": 7.0, "markeredgewidth": 1.3, "linestyle": "none", "zorder": 4,
}  # fmt: skip


def as_chart(data: Mapping[str, Any], salt: str = "sweep") -> str:
    """QPS and GB/s against what was swept, as an <svg> element; extrapolated points are hollow, their lines dashed.

    What was predicted of a rate is a cross.
    """
    room = (0.62, 0.2, 0.55, 0.62)  # inches left and right of a panel, below and above it

    def paint(figure: Any) -> None:
        left, right, low, high = room
        width = (_WIDTH - 2 * (left + right)) / 2
        for place, (metric, unit, scale) in enumerate((("qps", "queries/s", 1.0), ("goodput", "GB/s", 1e-9))):
            at = left + place * (width + left + right)
            frame = (at / _WIDTH, low / _HEIGHT, width / _WIDTH, (_HEIGHT - low - high) / _HEIGHT)
            axes = figure.add_axes(frame, facecolor="none")
            _line(axes, data, (metric, scale), COLOURS[place])
            if metric == "qps":
                _predicted(axes, data)
            if data["link"] and metric == "goodput":
                _link(axes, data["link"] * scale)
            _dress(axes, data, unit)
        _legend(figure, data)

    return painted((_WIDTH, _HEIGHT), f"QPS and GB/s against {data['sweep']}", salt, paint)


def _line(axes: Any, data: Mapping[str, Any], metric: tuple[str, float], colour: str) -> None:
    name, scale = metric
    rows = sorted((row for row in data["rows"] if row[name] is not None), key=lambda row: row["x"])
    measured = [(row["x"], row[name] * scale) for row in rows if row["source"] != _EXTRAPOLATED]
    drawn = [(row["x"], row[name] * scale) for row in rows if row["source"] == _EXTRAPOLATED]
    style: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 5.5, "zorder": 3}
    if measured:  # between two paths there is nothing that a line could mean
        line = "none" if data["sweep"] == _PATH else "solid"
        axes.plot(*zip(*measured, strict=True), linewidth=1.7, linestyle=line, **style)
    if drawn:
        dashed = [*measured[-1:], *drawn]
        axes.plot(*zip(*dashed, strict=True), linewidth=1.4, linestyle=_DASHED, color=colour, zorder=2)
        hollow = {"linestyle": "none", "markerfacecolor": PAPER, "markeredgewidth": 1.3}
        axes.plot(*zip(*drawn, strict=True), **style, **hollow)


def _predicted(axes: Any, data: Mapping[str, Any]) -> None:
    points = [(row["x"], row["predicted"]) for row in data["rows"] if row["predicted"] is not None]
    if points:
        axes.plot(*zip(*points, strict=True), **_CROSS)


def _link(axes: Any, rate: float) -> None:
    axes.axhline(rate, color=SOFT, linewidth=1.0, linestyle=(0, (1, 1.5)), zorder=1)
    axes.annotate("link", xy=(0, rate), xycoords=("axes fraction", "data"), xytext=(3, 2), textcoords="offset points",
                  color=SOFT, fontsize=8.2)  # fmt: skip


def _dress(axes: Any, data: Mapping[str, Any], unit: str) -> None:
    axis, rows = str(data["sweep"]), data["rows"]
    places = [row["x"] for row in rows]
    names = [_short(row["point"]) if axis == _PATH else f"{row['x']:,}" for row in rows]
    if axis in _DOUBLING:
        axes.set_xscale("log", base=2)
        axes.set_xlim(min(places) / 1.25, max(places) * 1.25)
    else:
        room = 0.08 * (max(places) - min(places)) or 0.5
        axes.set_xlim(min(places) - room, max(places) + room)
    axes.set_xticks(places, names)
    axes.set_xticks([], minor=True)
    axes.set_xlabel(_LABELS.get(axis, axis), labelpad=4)
    axes.set_ylim(0.0, (axes.get_ylim()[1] if axes.lines else 1.0) * 1.04)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=3, width=0.8)
    axes.annotate(unit, xy=(0, 1), xycoords="axes fraction", xytext=(0, 8), textcoords="offset points", ha="center",
                  va="bottom", color=INK, annotation_clip=False)  # fmt: skip
    axes.grid(axis="y", color=RULE, linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)


def _short(devices: str) -> str:
    first, *others = devices.split(",")
    return f"{first} +{len(others)}" if len(others) > 1 else devices


def _legend(figure: Any, data: Mapping[str, Any]) -> None:
    from matplotlib.lines import Line2D

    shape: dict[str, Any] = {"color": SOFT, "marker": "o", "markersize": 5.5}
    line: Any = "none" if data["sweep"] == _PATH else "solid"
    keys = [Line2D([], [], linewidth=1.7, linestyle=line, label="measured", **shape)]
    if any(row["predicted"] is not None for row in data["rows"]):
        keys.append(Line2D([], [], label="predicted before", **_CROSS))
    if any(row["source"] == _EXTRAPOLATED for row in data["rows"]):
        hollow: dict[str, Any] = {"linestyle": _DASHED, "linewidth": 1.4, "markerfacecolor": PAPER}
        keys.append(Line2D([], [], label=_EXTRAPOLATED, **hollow, **shape))
    figure.legend(handles=keys, loc="upper right", bbox_to_anchor=(1.0, 1.0), ncols=len(keys), frameon=False,
                  fontsize=8.2, columnspacing=1.4, handletextpad=0.5, borderaxespad=0.2)  # fmt: skip
