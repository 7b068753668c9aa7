"""The accuracy page and the errors by basis that are shown below predictions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lanewise
from lanewise.cli.verbs import run
from lanewise.report.accuracy import accuracy_page
from lanewise.report.evidence_page import basis_errors

FIGURES = {"median": 0.07, "p90": 0.5, "within_10": 0.6, "covered": 0.14}
KEPT = {
    "time": "2026-11-23 10:41", "change": "before", "by_flow_set": {"one flow": FIGURES, "all sets of flows": FIGURES},
    "total": {"rows": 169, "ordered": 110, "pairs": 142},
}  # fmt: skip


def test_the_page_has_scores_history_and_every_row() -> None:
    score = lanewise.accuracy(["rtx4090-rome"])
    page = accuracy_page(None, score, [KEPT])
    assert "| 2026-11-23 10:41 | before | 169 | 7.0 % | 50 % | 60 % | 14 % |" in page
    assert page.count("\n| rtx4090-rome | ") == 1
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
    (tmp_path / "kept" / "00.json").write_text(json.dumps(KEPT))
    page, errors = tmp_path / "accuracy.md", tmp_path / "errors.json"
    assert run(["accuracy", "rtx4090-rome", "--history", str(tmp_path / "kept"), "-o", str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("# Accuracy\n")
    assert run(["accuracy", "rtx4090-rome", "-o", str(errors)]) == 0
    assert all(entry["rows"] for entry in json.loads(errors.read_text()).values())
    assert run(["accuracy", "rtx4090-rome", "--history", str(tmp_path)]) == 2
    assert "without -o" in capsys.readouterr().err
