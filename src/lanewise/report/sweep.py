"""The chart of a sweep of load tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanewise.report.figure import COLOURS, INK, PAPER, SMALL, SOFT, dress, frame, legend, painted, quantity

_SIZE = (7.4, 3.3)  # inches
_LEFT, _RIGHT, _ABOVE, _BELOW = 0.62, 0.2, 0.62, 0.55  # inches around a panel
_LABELS = {"GPUs": "GPUs", "batch": "largest batch, queries", "streams": "batches in flight", "path": "path (devices)"}
_PATH, _DOUBLING = "path", ("batch", "streams")
_EXTRAPOLATED = "extrapolated"
_POINT: dict[str, Any] = {"marker": "o", "markersize": 5.5}
_HOLLOW: dict[str, Any] = {"markerfacecolor": PAPER, "markeredgewidth": 1.3}
_DASHED: dict[str, Any] = {"linewidth": 1.4, "linestyle": (0, (4, 2))}
_CROSS: dict[str, Any] = {
    "color": INK, "marker": "x", "markersize": 7.0, "markeredgewidth": 1.3, "linestyle": "none", "zorder": 4,
}  # fmt: skip


def as_chart(data: Mapping[str, Any], salt: str = "sweep") -> str:
    """QPS and GB/s against what was swept, as an <svg> element; extrapolated points are hollow, their lines dashed.

    What was predicted of a rate is a cross.
    """

    def paint(figure: Any) -> None:
        half = _SIZE[0] / 2
        for place, (metric, unit, scale) in enumerate((("qps", "queries/s", 1.0), ("goodput", "GB/s", 1e-9))):
            left, right = _LEFT + place * half, _RIGHT + (1 - place) * half
            axes = figure.add_axes(frame(_SIZE, left, right, _ABOVE, _BELOW), facecolor="none")
            _line(axes, data, metric, scale, COLOURS[place])
            predicted = [(row["x"], row["predicted"]) for row in data["rows"] if row["predicted"] is not None]
            if predicted and metric == "qps":
                axes.plot(*zip(*predicted, strict=True), **_CROSS)
            if data["link"] and metric == "goodput":
                rate = data["link"] * scale
                axes.axhline(rate, color=SOFT, linewidth=1.0, linestyle=(0, (1, 1.5)), zorder=1)
                axes.annotate("link", xy=(0, rate), xycoords=("axes fraction", "data"), xytext=(3, 2),
                              textcoords="offset points", color=SOFT, fontsize=SMALL)  # fmt: skip
            _ticks(axes, data)
            dress(axes, _LABELS.get(data["sweep"], data["sweep"]))
            quantity(axes, unit)
        legend(figure, _keys(data))

    return painted(_SIZE, f"QPS and GB/s against {data['sweep']}", salt, paint)


def _joined(data: Mapping[str, Any]) -> dict[str, Any]:
    """How measured points are joined: between two paths there is nothing that a line could mean."""
    return {"linewidth": 1.7, "linestyle": "none" if data["sweep"] == _PATH else "solid"}


def _line(axes: Any, data: Mapping[str, Any], metric: str, scale: float, colour: str) -> None:
    rows = sorted((row for row in data["rows"] if row[metric] is not None), key=lambda row: row["x"])
    measured = [(row["x"], row[metric] * scale) for row in rows if row["source"] != _EXTRAPOLATED]
    drawn = [(row["x"], row[metric] * scale) for row in rows if row["source"] == _EXTRAPOLATED]
    if measured:
        axes.plot(*zip(*measured, strict=True), color=colour, zorder=3, **_joined(data), **_POINT)
    if drawn:
        axes.plot(*zip(*measured[-1:], *drawn, strict=True), color=colour, zorder=2, **_DASHED)
        axes.plot(*zip(*drawn, strict=True), color=colour, zorder=3, linestyle="none", **_POINT, **_HOLLOW)


def _ticks(axes: Any, data: Mapping[str, Any]) -> None:
    axis, rows = data["sweep"], data["rows"]
    places = [row["x"] for row in rows]
    if axis in _DOUBLING:
        axes.set_xscale("log", base=2)
        axes.set_xlim(min(places) / 1.25, max(places) * 1.25)
    else:
        room = 0.08 * (max(places) - min(places)) or 0.5
        axes.set_xlim(min(places) - room, max(places) + room)
    axes.set_xticks(places, [_short(row["point"]) if axis == _PATH else f"{row['x']:,}" for row in rows])
    axes.set_xticks([], minor=True)
    axes.set_ylim(0.0, (axes.get_ylim()[1] if axes.lines else 1.0) * 1.04)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def _short(devices: str) -> str:
    first, *others = devices.split(",")
    return f"{first} +{len(others)}" if len(others) > 1 else devices


def _keys(data: Mapping[str, Any]) -> list[Any]:
    from matplotlib.lines import Line2D

    keys = [Line2D([], [], color=SOFT, label="measured", **_joined(data), **_POINT)]
    if any(row["predicted"] is not None for row in data["rows"]):
        keys.append(Line2D([], [], label="predicted before", **_CROSS))
    if any(row["source"] == _EXTRAPOLATED for row in data["rows"]):
        keys.append(Line2D([], [], color=SOFT, label=_EXTRAPOLATED, **_DASHED, **_POINT, **_HOLLOW))
    return keys
