"""The JSON of `lanewise accuracy`: scores by group, and every row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanewise.evidence import nccl
from lanewise.evidence.after_measurement import AfterMeasurement
from lanewise.evidence.prediction import SINGLE, PredictedRow
from lanewise.evidence.score import AccuracyScore, score_of
from lanewise.evidence.services import PredictedService
from lanewise.report.json import json_document
from lanewise.report.service_accuracy import services_json


@json_document("accuracy")
def accuracy(
    score: AccuracyScore, services: Sequence[PredictedService] = (), after: Sequence[AfterMeasurement] = ()
) -> dict[str, Any]:
    """Scores by kind of path, set of flows, basis and machine, then the rows in SI units."""
    return {
        "machines": len(score.machines), "fitted": score.fitted, "total": score.total, "by_path": score.by_path(),
        "by_flow_set": score.by_flow_set(), "by_basis": score.by_basis(), "by_use": score.by_use(),
        "by_machine": score.by_machine(), "latencies": score.latencies(),
        "by_collective": score.by_collective(), "collectives_by_use": score.collectives_by_use(),
        "by_blocks_and_loads": score.by_blocks_and_loads(), "targets": _targets(score),
        "algorithms": dict(zip(("right", "stated"), score.algorithms(), strict=True)),
        "rows": [_row(row) for row in score.rows],
        **({"services": services_json(services)} if services else {}),
        **({"after_measurement": [_after(each) for each in after]} if after else {}),
    }  # fmt: skip


def _after(score: AfterMeasurement) -> dict[str, Any]:
    """The rows left after that many measurements of each machine, before and after."""
    groups = {
        f"{name}_{state}": score_of([row for row in rows if (row.flow_set == SINGLE) is single])
        for name, single in (("one_flow", True), ("sets", False))
        for state, rows in (("before", score.before), ("after", score.after))
    }
    return {"measurements": score.measurements, **groups}


def _targets(score: AccuracyScore) -> list[dict[str, Any]]:
    """Each target with what is reached of it, by whether figures may come from the rows."""
    return [
        {
            "kind": target.kind, "use": use, "rows": group.rows,
            "median": group.median, "median_to_reach": target.median, "error_within": target.within,
            "within": None if target.within is None else within,
            "share_to_reach": None if target.within is None else target.share,
        }
        for target, uses in score.by_target().items()
        for use, (group, within) in uses.items()
    ]  # fmt: skip


def _row(row: PredictedRow) -> dict[str, Any]:
    predicted, source = row.observation, row.row
    return {
        "machine": row.machine, "path": source.path, "flows": source.text, "flow_set": row.flow_set,
        "kind": predicted.path, "metric": predicted.metric, "unit": source.unit, "measured": source.value,
        "measured_low": source.low, "measured_high": source.high, "predicted": predicted.value, "low": predicted.low,
        "high": predicted.high, "error": row.error, "covered": row.covered,
        "rival": predicted.comparisons.get(nccl.NAME), "rival_error": row.rival_error, "basis": predicted.basis,
        "limit": predicted.limit, "rests_on": predicted.rests_on, "quality": source.quality or None,
        "schedule": source.schedule or None, "algorithm": row.algorithm or None, "note": predicted.note or None,
    }  # fmt: skip
