"""Files of lanewise.run/1: every kept one is read, its values in SI, and rendered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lanewise import units
from lanewise.errors import FormatError
from lanewise.readers.lanewise_json import read_samples
from lanewise.report.html import report_html
from lanewise.results.codec import BEFORE, SCHEMA, run_from_json, run_to_json
from lanewise.results.observation import Observation
from lanewise.results.run import Run

RUNS = Path(__file__).parents[2] / "benchmarks" / "runs"
KEPT = [path for path in sorted(RUNS.rglob("*.json")) if f'"schema": "{BEFORE}"' in path.read_text()[:400]]
OLD: dict[str, Any] = {
    "schema": BEFORE, "studies": [], "created": "now", "version": "0",
    "rows": [{
        "scenario": "s", "flow": "a->b", "metric": "goodput", "value": 24.9, "unit": "GB/s", "source": "predicted",
        "low": 24.0, "high": 25.0, "published": 25.5, "samples": [24.0, 25.0], "beside": {"steady state": 30.0},
        "measured": {"value": 24.5, "which": "run.json: copy", "low": 24.4, "high": None, "samples": 3},
    }],
    "services": [{
        "name": "n", "workload": "w", "scenario": "server", "system": "s", "source": "predicted", "qps": 1.0,
        "answered": 1.0, "queries": 9, "late": 0, "bound": 0.015, "percentile": 0.99, "latency": 0.01, "valid": True,
        "reason": "", "limit": "", "basis": "physics", "busy": [{"name": "gpu0", "mean": 0.5}],
        "tried": [{"qps": 100.0, "latency": 0.02, "valid": False, "queries": 9, "seed": 1, "reason": "late"}],
    }],
}  # fmt: skip


def read(data: dict[str, Any]) -> Run:
    return run_from_json(json.dumps(data), "old.json")


def test_there_are_kept_runs() -> None:
    assert len(KEPT) > 10


@pytest.mark.parametrize("path", KEPT, ids=lambda path: str(path.relative_to(RUNS)))
def test_every_kept_run_is_read_in_si_and_rendered(path: Path) -> None:
    old, run = json.loads(path.read_text()), run_from_json(path.read_text(), str(path))
    rows = [*old.get("rows", []), *(row for study in old["studies"] for row in study["rows"])]
    values = [*run.rows, *(row for study in run.studies for row in study.rows)]
    assert len(rows) == len(values)
    for row, value in zip(rows, values, strict=True):
        assert row["unit"] == value.display_unit
        assert value.value == (None if row["value"] is None else pytest.approx(units.to_si(row["value"], row["unit"])))
        assert value.display(value.value) == (None if row["value"] is None else pytest.approx(row["value"], rel=1e-11))
    assert "<h1>" in report_html(run)
    assert run_from_json(run_to_json(run), "again") == run


def test_what_was_said_in_the_unit_of_the_table_is_si_now() -> None:
    run = read(OLD)
    row = run.rows[0]
    assert (row.value, row.low, row.high, row.published) == (24.9e9, 24e9, 25e9, 25.5e9)
    assert (row.samples, row.comparisons, row.display_unit, row.unit) == (
        (24e9, 25e9), {"steady state": 30e9}, "GB/s", "B/s",
    )  # fmt: skip
    assert isinstance(row.measured, Observation)
    assert (row.measured.value, row.measured.low, row.measured.high) == (24.5e9, 24.4e9, None)
    assert (row.measured.note, row.measured.flow) == ("run.json: copy", "a->b")
    service = run.services[0]
    assert (service.search_runs[0].rate, service.search_runs[0].latency) == (100.0, 0.02)
    assert service.utilization[0].mean == 0.5
    assert json.loads(run_to_json(run))["schema"] == SCHEMA


@pytest.mark.parametrize("value", ["fast", True, [1.0], None])
def test_a_wrong_value_of_an_old_file_is_left_for_the_decoder_to_name(value: object) -> None:
    data = {**OLD, "rows": [{**OLD["rows"][0], "low": value}]}
    if value is None:
        assert read(data).rows[0].low is None
    else:
        with pytest.raises(FormatError, match=r"rows\[0\]\.low should be a number"):
            read(data)


def test_old_lines_of_samples_are_read_in_si() -> None:
    line = {"scenario": "s", "flow": "a->b", "metric": "latency", "value": 2.5, "unit": "us"}
    (row,) = read_samples([json.dumps(line)], "samples.jsonl").observations
    assert (row.value, row.unit, row.display_unit) == (pytest.approx(2.5e-6), "s", "us")
