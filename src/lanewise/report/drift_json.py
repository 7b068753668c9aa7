"""The drift of a history's rows as plain data for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lanewise.report.json import json_document
from lanewise.results.drift import RowDrift


@json_document("drift")
def drift_json(machines: Mapping[str, Sequence[RowDrift]]) -> dict[str, Any]:
    """The rows of each machine in SI units, those that changed first; `change` is null where nothing changed."""
    return {"machines": [{"machine": name, "rows": list(map(_row, drifts))} for name, drifts in machines.items()]}


def _row(drift: RowDrift) -> dict[str, Any]:
    row, change = drift.row, drift.change
    return {
        "phase": row.table or None, "scenario": row.scenario, "flow": row.flow, "metric": row.metric,
        "settings": row.settings, "unit": row.unit,
        "times": drift.times, "values": drift.values,
        "change": change and {"first_after": drift.times[change.index], "before": change.before, "after": change.after,
                              "difference_pct": change.difference_pct, "p_value": change.p_value},
    }  # fmt: skip
