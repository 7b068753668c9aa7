"""The study llm-paths: rows of measured machines, predicted, with conclusions that hold in both."""

from __future__ import annotations

from functools import cache

import pytest

import lanewise
from lanewise.errors import LanewiseError
from lanewise.report.accuracy import accuracy_page
from lanewise.report.plots import plot
from lanewise.results.run import Run
from lanewise.studies.form import StudyForm
from lanewise.studies.reading import read_study


@cache
def run() -> Run:
    return lanewise.run_studies(["llm-paths"])


def test_every_row_is_predicted_and_more_than_half_lie_within_5_percent() -> None:
    (study,) = run().studies
    assert len(study.rows) > 400
    assert all(row.value and row.limit and row.rests_on and row.basis for row in study.rows)
    errors = [abs(row.residual_pct or 0) for row in study.rows if row.role == "prediction"]
    assert sum(error <= 5 for error in errors) > len(errors) / 2
    learned = {row.system for row in study.rows if row.role == "input"}
    assert "h200-pair-kv" in learned
    assert "h200-vm-kv" not in learned


def test_its_conclusions_hold_in_the_prediction_and_in_the_publication() -> None:
    for conclusion in run().studies[0].conclusions:
        assert conclusion.holds, conclusion.says
        assert "published values: false" not in conclusion.shown, conclusion.says


def test_the_rows_of_a_machine_are_predicted_as_accuracy_predicts_them() -> None:
    scored = {row.row.path: row.observation for row in lanewise.accuracy(["h200-p5en-two-nccl"]).rows}
    rows = [row for row in run().studies[0].rows if row.system == "h200-p5en-two-nccl"]
    assert {row.settings["bytes"]: row.value for row in rows} == {
        2**34: scored["all_reduce, 16 GiB"].value, 2**32: scored["all_reduce, 4 GiB"].value,
    }  # fmt: skip


def test_accuracy_counts_the_rows_once() -> None:
    score = lanewise.accuracy(["a10g-gp3-load"])
    (study,) = run().studies
    few = [row for row in study.rows if row.system == "a10g-gp3-load"]
    part = Run((type(study)(study.name, study.title, "", "", tuple(few)),), "", "0.2.0")
    assert study.title not in accuracy_page(part, score)
    assert study.title in accuracy_page(part)


SMALL = """lanewise: 1
study: small
tables:
  - {name: t, metric: busbw, unit: GB/s, where: {ranks: 2}, machines: {two H200: h200-vm-2gpus, A40: a40-pairs-nccl}}
charts:
  - {title: c, kind: line, table: t, x: bytes, by: label, log: xy}
"""


def small(old: str = "", new: str = "") -> StudyForm:
    return read_study(SMALL.replace(old, new, 1), "small.yaml")


def test_a_table_of_machines_takes_rows_by_metric_setting_and_label() -> None:
    assert [(row.label, row.settings["bytes"]) for row in small().rows if row.label != "two H200"] == [
        ("two H200, P2P off", 2**30), ("A40", 2**30), ("A40", 2**33),
    ]  # fmt: skip
    assert {row.label for row in small("where: {ranks: 2}", "match: P2P").rows} == {"two H200, P2P off"}
    times = small(SMALL.split("\n")[3], "  - {name: t, metric: time, unit: us, machines: {8 H100: h100-p5-nccl}}").rows
    assert max(row.settings["bytes"] for row in times) < 2**20


@pytest.mark.parametrize(
    ("old", "new", "line", "cause"),
    [
        ("a40-pairs-nccl", "a41-pairs-nccl", 4, "unknown measured machine 'a41-pairs-nccl'"),
        ("metric: busbw", "metric: goodput", 4, "no row of these machines has a goodput"),
        ("metric: busbw", "metric: qps", 4, "unknown metric"),
        ("where: {ranks: 2}", "rows: []", 4, "unknown key 'rows'"),
        ("kind: line, table: t, x: bytes", "kind: bar, table: t, x: bytes", 6, "has no 'log'"),
        ("log: xy", "log: z", 6, "unknown log 'z'"),
    ],
)
def test_a_mistake_is_reported_with_its_line(old: str, new: str, line: int, cause: str) -> None:
    with pytest.raises(LanewiseError, match=cause) as error:
        small(old, new)
    assert error.value.location is not None
    assert error.value.location.line == line


def test_logarithmic_axes_are_named_in_sizes() -> None:
    charts = {chart.title: chart for chart in run().studies[0].charts}
    drawn = plot(charts["Many blocks between two H200 by NIXL"])
    assert [f">{text}<" in drawn for text in ("4 KiB", "64 KiB", "1 MiB", "100", "0.5")] == [True] * 5
