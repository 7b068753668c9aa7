"""A check-up for programs: plain data for JSON (docs/reference/check-json.md), and Prometheus' text format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from lanewise.checking.causes import Cause
from lanewise.checking.checkup import Checkup, Finding
from lanewise.checking.verdict import PathResult, Verdict

SCHEMA = "lanewise.check/1"
_METRICS = {"B/s": "goodput_bytes_per_second", "s": "latency_seconds"}
_HELP = {
    "lanewise_path_goodput_bytes_per_second": "Measured rate of a path.",
    "lanewise_path_expected_goodput_bytes_per_second": "Rate that the path should have.",
    "lanewise_path_latency_seconds": "Measured latency of a path.",
    "lanewise_path_expected_latency_seconds": "Latency that the path should have.",
    "lanewise_path_verdict": "1 for the verdict of the path (ok, slow, fast, failed, unknown), else 0.",
    "lanewise_check_faults": "Findings of the last check that make its exit code 1.",
    "lanewise_check_exit_code": "0 fine, 1 something is wrong, 3 something could not be judged.",
    "lanewise_check_timestamp_seconds": "When the check ended, seconds since 1970.",
}


def data(checkup: Checkup, name: str = "") -> dict[str, Any]:
    """The check-up as plain data in SI units; `name` is what the user calls the machine."""
    numbers = {id(result): number for number, result in enumerate(checkup.rows)}
    return {
        "schema": SCHEMA,
        "machine": name or None,
        "exit_code": checkup.exit_code,
        "counts": {verdict.value: checkup.count(verdict) for verdict in Verdict},
        "rows": [_row(result) for result in checkup.rows],
        "findings": [_finding(result, numbers) for result in checkup.findings],
        "aside": [{"flow": row.flow, "scenario": row.scenario, "metric": row.metric} for row in checkup.aside],
        "notes": list(checkup.notes),
    }


def _row(judged: PathResult) -> dict[str, Any]:
    row, expected = judged.row, judged.expected
    return {
        "verdict": judged.verdict.value,
        "flow": row.flow,
        "scenario": row.scenario,
        "metric": row.metric,
        "path": row.path or None,
        "settings": dict(row.settings),
        "how": dict(row.how),
        "unit": judged.unit,
        "measured": judged.value,
        "expected": expected.value,
        "low": judged.low,
        "high": judged.high,
        "share": judged.share,
        "spread": judged.range_share,
        "basis": expected.basis or None,
        "tolerance": judged.tolerance.share if judged.tolerance else None,
        "limit": expected.limit or None,
        "rests_on": list(expected.rests_on),
        "note": judged.note or expected.note or None,
    }


def _finding(finding: Finding, numbers: dict[int, int]) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "title": finding.title,
        "rows": [numbers[id(result)] for result in finding.rows],
        "causes": [_cause(result) for result in finding.causes],
        "next": finding.step,
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "cause": cause.suspect.key[0],
        "about": list(cause.suspect.key[1:]),
        "what": cause.suspect.what,
        "seen": cause.suspect.evidence or None,
        "predicted": cause.predicted,
        "explains": cause.explains,
        "next": cause.suspect.step,
    }


def prometheus(checkup: Checkup, when: float, name: str = "") -> str:
    """The check-up in Prometheus' text format for node_exporter's textfile collector; `when` in s since 1970.

    Rows that share all labels are numbered by a label `repeat`, as a series must be unique.
    """
    series: dict[str, list[tuple[dict[str, str], float]]] = {metric: [] for metric in _HELP}
    for judged, labels in zip(checkup.rows, _labels(checkup.rows, name), strict=True):
        metric = _METRICS.get(judged.unit)
        if metric and judged.value is not None:
            series[f"lanewise_path_{metric}"].append((labels, judged.value))
        if metric and judged.expected.value is not None:
            series[f"lanewise_path_expected_{metric}"].append((labels, judged.expected.value))
        series["lanewise_path_verdict"] += [
            ({**labels, "verdict": verdict.value}, float(verdict is judged.verdict)) for verdict in Verdict
        ]
    own = {"machine": name} if name else {}
    wrong = sum(finding.kind in ("fault", Verdict.SLOW) for finding in checkup.findings)
    series["lanewise_check_faults"].append((own, wrong))
    series["lanewise_check_exit_code"].append((own, checkup.exit_code))
    series["lanewise_check_timestamp_seconds"].append((own, when))
    return "".join(_family(metric, values) for metric, values in series.items() if values)


def _labels(rows: Sequence[PathResult], name: str) -> Iterable[dict[str, str]]:
    taken: dict[str, int] = {}
    for judged in rows:
        row = judged.row
        labels = {"machine": name, "flow": row.flow, "scenario": row.scenario, "metric": row.metric}
        labels |= {key: row.how.get(key, "") for key in ("engine", "p2p", "mode")}
        labels |= {key: str(value) for key, value in row.settings.items()}
        kept_labels = {key: value for key, value in labels.items() if value}
        names = json.dumps(kept_labels, sort_keys=True)
        taken[names] = taken.get(names, 0) + 1
        yield {**kept_labels, "repeat": str(taken[names])} if taken[names] > 1 else kept_labels


def _family(metric: str, values: list[tuple[dict[str, str], float]]) -> str:
    lines = [f"# HELP {metric} {_HELP[metric]}", f"# TYPE {metric} gauge"]
    for labels, value in values:
        label_text = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{metric}{{{label_text}}} {value!r}" if label_text else f"{metric} {value!r}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
