"""Rows of predicted flows and pairs, with the identity of those that `measure gpu --flows` measures."""

from __future__ import annotations

from lanewise.perf.matrix import RateMatrix
from lanewise.perf.predict import Prediction
from lanewise.perf.resources import weakest
from lanewise.results.observation import Basis, Observation, Source
from lanewise.routes.classify import path_kind


def predicted_flow_rows(prediction: Prediction) -> tuple[Observation, ...]:
    """The rate (B/s) of each flow, and of several the sum; unknown, with a note, where a drive or card has no rate."""
    name = ", ".join(rate.flow.name + " read" * rate.flow.read + " sm" * rate.flow.sm for rate in prediction.rates)
    rows = [
        Observation(
            name, rate.flow.name, "goodput", None if rate.why_unknown else rate.rate, "GB/s", Source.PREDICTED,
            system=prediction.system.name, basis=Basis(rate.basis), limit=rate.limit, rests_on=rate.rests_on,
            low=rate.low, high=rate.high, path=path_kind(prediction.system, rate.routes[0]),
            note=rate.why_unknown or rate.doubt,
        )
        for rate in prediction.rates
    ]  # fmt: skip
    if len(rows) > 1:
        total = None if prediction.why_unknown else prediction.total
        rows.append(Observation(
            name, ", ".join(rate.flow.name for rate in prediction.rates), "total", total, "GB/s", Source.PREDICTED,
            system=prediction.system.name, basis=Basis(weakest([rate.basis for rate in prediction.rates])),
            low=prediction.total_low, high=prediction.total_high, note=prediction.why_unknown,
        ))  # fmt: skip
    return tuple(rows)


def predicted_pair_rows(matrix: RateMatrix, system: str, *, both_ways: bool = False) -> tuple[Observation, ...]:
    """The rate (B/s) or latency (s) of each pair alone, as a test of its own; both ways their sum."""
    rows = []
    for source, values, limits in zip(matrix.names, matrix.cells, matrix.limits, strict=True):
        for target, value, limit in zip(matrix.names, values, limits, strict=True):
            if source == target or (both_ways and source > target):
                continue
            flow = f"{source}->{target}, {target}->{source}" if both_ways else f"{source}->{target}"
            metric = "latency" if matrix.unit == "s" else "total" if both_ways else "goodput"
            unit = "us" if metric == "latency" else "GB/s"
            rows.append(Observation(
                flow, flow, metric, value, unit, Source.PREDICTED, system=system,
                limit="" if value is None else limit, note=limit if value is None else "",
            ))  # fmt: skip
    return tuple(rows)
