"""A check-up for programs: plain data for JSON (docs/reference/check-json.md), and Prometheus' text format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from lanewise.checking.checkup import Checkup
from lanewise.checking.findings import Finding
from lanewise.checking.unjudged import LookFirst, aside
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.report.json import json_document
from lanewise.report.prometheus import family
from lanewise.results.observation import Observation

_METRICS = {"B/s": "goodput_bytes_per_second", "s": "latency_seconds"}
_HELP = {
    "lanewise_path_goodput_bytes_per_second": "Measured rate of a path.",
    "lanewise_path_expected_goodput_bytes_per_second": "Rate that the path should have.",
    "lanewise_path_latency_seconds": "Measured latency of a path.",
    "lanewise_path_expected_latency_seconds": "Latency that the path should have.",
    "lanewise_path_verdict": "1 for the verdict of the path (ok, slow, fast, failed, unknown), else 0.",
    "lanewise_check_faults": "Findings of the last check that make its exit code 1.",
    "lanewise_check_exit_code": "0 fine, 1 a slow path or a fault, 3 rows unknown, failed or too fast, or none.",
    "lanewise_check_timestamp_seconds": "When the check ended, seconds since 1970.",
}


@json_document("check")
def check_json(checkup: Checkup, name: str = "") -> dict[str, Any]:
    """The check-up as plain data in SI units; `name` is what the user calls the machine."""
    numbers = {id(result): number for number, result in enumerate(checkup.results)}
    return {
        "machine": name or None, "exit_code": checkup.exit_code, "described": checkup.described,
        "counts": {verdict.value: checkup.count(verdict) for verdict in Verdict},
        "rows": [_row(result) for result in checkup.results],
        "findings": [_finding(finding, numbers) for finding in checkup.findings],
        "aside": [_aside(row) for row in checkup.left_aside],
        "look_first": [_look_first(paths) for paths in checkup.look_first],
        "notes": checkup.notes,
    }  # fmt: skip


def _row(result: PathResult) -> dict[str, Any]:
    row, expected, tolerance = result.row, result.expected, result.tolerance
    return {
        "verdict": result.verdict, "flow": row.flow, "scenario": row.scenario, "metric": row.metric,
        "path": row.path or None, "settings": row.settings, "how": row.how, "unit": row.unit, "measured": row.value,
        "expected": expected.value, "low": result.fine_low, "high": result.fine_high, "share": result.ratio,
        "spread": result.relative_range, "basis": tolerance.basis if tolerance else None,
        "tolerance": tolerance.relative if tolerance else None, "limit": expected.limit or None,
        "rests_on": expected.rests_on, "note": result.note or expected.note or None,
    }  # fmt: skip


def _aside(row: Observation) -> dict[str, Any]:
    reason = aside(row)
    return {
        "flow": row.flow, "scenario": row.scenario, "metric": row.metric, "unit": row.unit,
        "why": reason.why, "next": reason.step,
    }  # fmt: skip


def _look_first(paths: LookFirst) -> dict[str, Any]:
    flows = list(dict.fromkeys(row.flow for row in paths.rows))
    causes = [{"cause": cause.key[0], "what": cause.what, "next": cause.step} for cause in paths.causes]
    return {"kind": paths.kind, "flows": flows, "causes": causes}


def _finding(finding: Finding, numbers: dict[int, int]) -> dict[str, Any]:
    causes = [
        {
            "cause": cause.key[0], "about": cause.key[1:], "what": cause.what, "seen": cause.evidence or None,
            "predicted": cause.predicted, "explains": cause.explains, "next": cause.step,
        }
        for cause in finding.causes
    ]  # fmt: skip
    rows = [numbers[id(result)] for result in finding.results]
    return {"kind": finding.kind, "title": finding.title, "rows": rows, "causes": causes, "next": finding.step}


def prometheus(checkup: Checkup, when: float, name: str = "") -> str:
    """The check-up in Prometheus' text format for node_exporter's textfile collector; `when` in s since 1970.

    Rows that share all labels are numbered by a label `repeat`, as a series must be unique.
    """
    series: dict[str, list[tuple[dict[str, str], float]]] = {metric: [] for metric in _HELP}
    for result, labels in zip(checkup.results, _labels(checkup.results, name), strict=True):
        metric = _METRICS.get(result.row.unit)
        if metric and result.row.value is not None:
            series[f"lanewise_path_{metric}"].append((labels, result.row.value))
        if metric and result.expected.value is not None:
            series[f"lanewise_path_expected_{metric}"].append((labels, result.expected.value))
        series["lanewise_path_verdict"] += [
            ({**labels, "verdict": verdict.value}, float(verdict is result.verdict)) for verdict in Verdict
        ]
    own = {"machine": name} if name else {}
    series["lanewise_check_faults"].append((own, checkup.exit_1_findings))
    series["lanewise_check_exit_code"].append((own, checkup.exit_code))
    series["lanewise_check_timestamp_seconds"].append((own, when))
    return "".join(family(metric, _HELP[metric], values) for metric, values in series.items() if values)


def _labels(results: Sequence[PathResult], name: str) -> Iterable[dict[str, str]]:
    repeats: Counter[str] = Counter()
    for row in (result.row for result in results):
        labels = {"machine": name, "flow": row.flow, "scenario": row.scenario, "metric": row.metric}
        labels |= {key: row.how.get(key, "") for key in ("engine", "p2p", "mode")}
        labels |= {key: str(value) for key, value in row.settings.items()}
        labels = {key: value for key, value in labels.items() if value}
        names = json.dumps(labels, sort_keys=True)
        repeats[names] += 1
        yield {**labels, "repeat": str(repeats[names])} if repeats[names] > 1 else labels
