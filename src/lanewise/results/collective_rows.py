"""Rows of predicted collectives, with the identity of those that `measure collectives` and nccl-tests measure."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise.collectives.model import CollectiveCurve, CollectivePoint
from lanewise.results.observation import Observation, Source


def predicted_collective_rows(curve: CollectiveCurve) -> tuple[Observation, ...]:
    """The bus bandwidth (B/s) and the time (s) of each size, out of place."""
    return tuple(row for point in curve.points for row in _rows(curve, point))


def _rows(curve: CollectiveCurve, point: CollectivePoint) -> Iterator[Observation]:
    hosts = len({curve.system.device(rank).host for rank in curve.ranks})
    following = (*curve.ranks[1:], curve.ranks[0])
    ring = ", ".join(f"{a}->{b}" for a, b in zip(curve.ranks, following, strict=True))
    flow = ring if hosts == 1 else f"{curve.collective} of {len(curve.ranks)} GPUs on {hosts} hosts"
    settings = {"bytes": round(point.size), "hosts": hosts, "ranks": len(curve.ranks)}
    how = {"engine": "NCCL", "library": curve.library, "launch": str(curve.settings.launch)}
    times = point.time, point.time * point.bus_bandwidth / point.high, point.time * point.bus_bandwidth / point.low
    values = (("bus_bandwidth", "GB/s", (point.bus_bandwidth, point.low, point.high)), ("time", "us", times))
    for metric, unit, (value, low, high) in values:
        yield Observation(
            str(curve.collective), flow, metric, value, unit, Source.PREDICTED, system=curve.system.name,
            settings=settings, limit=f"{point.algorithm} {point.protocol}, {point.limit}", rests_on=point.rests_on,
            low=low, high=high, path="collective", how=how,
        )  # fmt: skip
