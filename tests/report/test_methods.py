"""Another method beside the rows: its residuals by rows and in sum, in every table, and only where it stands."""

from __future__ import annotations

from dataclasses import replace

import pytest
from in_display_units import observation
from report.report_samples import GEN4, sample_run
from report.test_html import text_of

from lanewise.report.accuracy import accuracy_page
from lanewise.report.html import report_html
from lanewise.report.page import method_lines, study_page
from lanewise.report.screen import Screen
from lanewise.report.study_rows import StudyTable
from lanewise.report.text.run import render_run
from lanewise.results.observation import Source
from lanewise.results.run import Run
from lanewise.results.statistics import by_method

LINE = "20 rows: predicted rms 3.3 %, worst +12.5 %; steady state rms 20.0 %, worst +20.0 %"


def with_steady(**more: float) -> Run:
    """The Gen4 rows with a steady state 20 % above what was published."""
    run = sample_run()
    rows = tuple(
        replace(row, comparisons={"steady state": 1.2 * row.published, **more})
        if row.table == "Gen4, L40S" and row.published
        else row
        for row in run.studies[0].rows
    )
    return replace(run, studies=(replace(run.studies[0], rows=rows), run.studies[1]))


def console(run: Run, width: int = 200) -> str:
    return render_run(run, rows=True, screen=Screen(width))


def test_both_methods_are_summed_over_the_same_rows() -> None:
    (found,) = by_method(with_steady().studies[0].rows)
    assert (found.own.compared, found.residuals.compared) == (20, 20)
    assert found.residuals.rms_pct == pytest.approx(20.0)
    assert found.own.worst_pct == pytest.approx(12.5)


def test_an_input_row_or_one_without_a_published_value_counts_for_no_method() -> None:
    row = observation("s", "f", "m", 1.0, "QPS", Source.PREDICTED, published=1.0, comparisons={"a": 2.0})
    assert by_method([replace(row, role="input"), replace(row, published=None)]) == []
    assert method_lines([row]) == ["1 row: predicted rms 0.0 %, worst 0.0 %; a rms 100.0 %, worst +100.0 %"]


def test_the_own_residual_comes_first_then_value_and_residual_of_the_other() -> None:
    text = text_of(report_html(with_steady()))
    value = GEN4["CDI v1.0 path 4"][0]
    assert LINE in text
    assert f"+12.5 {1.2 * value:.2f} (+20.0)" in text
    assert "steady state GB/s (residual %)" in text


def test_the_terminal_shows_it_in_one_column_and_gives_it_up_before_the_residual() -> None:
    text = console(with_steady())
    assert LINE in text
    assert "24.60 (+20.0)" in text
    narrow = console(with_steady(), 60)
    assert "not shown in 60 columns: settings, interval GB/s, steady" in narrow
    assert "+12.5" in narrow
    assert "24.60 (+20.0)" not in narrow


def titles(rows: StudyTable) -> list[str]:
    return [column.title for column in rows.table.columns]


def test_tables_that_no_other_method_answered_stay_as_they_are() -> None:
    first, *others = study_page(with_steady().studies[0]).tables
    assert "steady state" in titles(first)
    assert all("steady state" not in titles(table) for table in others)
    assert accuracy_page(sample_run()) == accuracy_page(replace(with_steady(), studies=sample_run().studies))
    assert "steady" not in accuracy_page(sample_run())


def test_the_accuracy_page_lists_it_by_row_and_by_method() -> None:
    page = accuracy_page(with_steady())
    assert "The same rows by another method:" in page
    assert "| predicted | 20 | 20 | 3.3 | +12.5 |" in page
    assert "| steady state | 20 | 20 | 20.0 | +20.0 |" in page
    first, others = page.split("### ")[1:3]
    assert "| residual % | steady state GB/s (residual %) | limit |" in first
    assert "| +12.5 | 24.60 (+20.0) | " in first
    assert "steady state" not in others
    assert len({line.count("|") for line in first.split("## ")[0].splitlines() if line.startswith("|")}) == 1


def test_each_of_several_methods_has_a_column_of_the_accuracy_page() -> None:
    page = accuracy_page(with_steady(roofline=30e9))
    assert "| steady state GB/s (residual %) | roofline GB/s (residual %) |" in page
    assert "| 24.60 (+20.0) | 30.00 (+46.3) |" in page
