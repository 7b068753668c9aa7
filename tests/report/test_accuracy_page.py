"""The accuracy page and the errors by basis that are shown below predictions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lanewise
from lanewise.cli.verbs import run
from lanewise.report.accuracy import accuracy_page
from lanewise.report.evidence_page import basis_errors

COLUMNS = ["machine", "path", "flows", "kind", "metric", "measured", "predicted", "low", "high"]


def kept(time: str, *rows: list[object]) -> dict[str, object]:
    return {"time": f"2026-11-23 {time}", "change": f"change of {time}", "columns": COLUMNS, "rows": rows}


ONE = ["m", "out", "gpu0->host0", "device to host", "goodput, total", 10e9, 9.2e9, 8e9, 11e9]
BOTH = ["m", "both", "gpu0<->host0", "host and device, both directions", "goodput, total", 20e9, 30e9, 25e9, 35e9]
LATER = ["m", "later", "gpu1->host0", "device to host", "goodput, total", 10e9, 99e9, None, None]
KEPT = [kept("11:00", [*ONE[:6], 10.5e9, None, None], BOTH, LATER), kept("10:41", ONE, BOTH)]


def test_the_page_has_scores_history_and_every_row() -> None:
    score = lanewise.accuracy(["a10g-io2-load", "rtx4090-rome"])
    page = accuracy_page(None, score, KEPT)
    states = [line for line in page.splitlines() if "change of" in line]
    both = "| 50 % | 50 % | 0.0 % | 0.0 % |"
    assert states == [
        f"| 2026-11-23 10:41 | change of 10:41 | 8.0 % | 8.0 % | 100 % | 100 % {both} 2 |",
        f"| 2026-11-23 11:00 | change of 11:00 | 5.0 % | 5.0 % | 100 % | 0.0 % {both} 3 |",
    ]
    assert "on the 2 rates that all states predict" in page
    assert page.count("\n| rtx4090-rome | ") == 1
    assert "\n| model load, parallel readers | held out | 4 | 3.2 % | 4 of 4 | 100 % within 20 % |" in page
    rows = page.partition("### rtx4090-rome")[2]
    assert rows.count("| gpu0->gpu1 |") == sum(row.row.text == "gpu0->gpu1" for row in score.rows)


def test_errors_by_basis_are_those_of_the_rates() -> None:
    score = lanewise.accuracy(["rtx4090-rome"])
    errors = basis_errors(score)
    assert sum(entry["rows"] for entry in errors.values()) == score.total.predicted
    (machine,) = {row.machine for row in score.rows}
    assert machine == "rtx4090-rome"
    if len(errors) == 1:
        assert next(iter(errors.values()))["median_pct"] == pytest.approx(100 * (score.total.median or 0), abs=0.06)


def test_the_verb_writes_the_page_and_the_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "00.json").write_text(json.dumps(KEPT[0]))
    page, errors = tmp_path / "accuracy.md", tmp_path / "errors.json"
    assert run(["accuracy", "rtx4090-rome", "--history", str(tmp_path / "kept"), "-o", str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("# Accuracy\n")
    assert run(["accuracy", "rtx4090-rome", "-o", str(errors)]) == 0
    assert all(entry["rows"] for entry in json.loads(errors.read_text()).values())
    assert run(["accuracy", "rtx4090-rome", "--history", str(tmp_path)]) == 2
    assert "without -o" in capsys.readouterr().err
