"""Residuals are counted over every row that can be compared, by group, and none is left out."""

from __future__ import annotations

import pytest
from in_display_units import observation

from lanewise.results import statistics
from lanewise.results.observation import Basis, Observation, Source
from lanewise.results.run import Conclusion, Run, StudyRun


def row(value: float | None, published: float | None, **more: object) -> Observation:
    return observation("s", "f", "m", value, "GB/s", more.pop("source", Source.PREDICTED), published=published, **more)  # type: ignore[arg-type]


def test_rms_worst_and_bias_of_plus_three_and_minus_four_percent() -> None:
    # rms = sqrt((3^2 + 4^2) / 2) = 3.5355, worst = -4, mean = -0.5
    found = statistics.residuals([row(103, 100), row(96, 100)])
    assert found.rms_pct == pytest.approx(3.5355, rel=1e-4)
    assert found.worst_pct == pytest.approx(-4)
    assert found.mean_pct == pytest.approx(-0.5)
    assert (found.rows, found.compared, found.close, found.far) == (2, 2, 2, 0)


def test_unknown_rows_are_counted_and_not_compared() -> None:
    found = statistics.residuals([row(None, 100), row(100, None), row(120, 100), row(1, 0)])
    assert (found.rows, found.compared, found.far) == (4, 1, 1)


def test_published_rows_are_not_predictions() -> None:
    assert statistics.residuals([row(1, 1, source=Source.PUBLISHED)]).rows == 0


def test_nothing_to_compare_has_no_rms() -> None:
    assert statistics.residuals([]).rms_pct is None


def test_groups_stand_from_the_strongest_claim_to_the_weakest() -> None:
    rows = [row(1, 1, basis=Basis.FITTED), row(1, 1, source=Source.MEASURED), row(1, 1, basis=Basis.PHYSICS)]
    assert list(statistics.by_basis(rows)) == ["physics", "fitted", "measured"]


def test_rows_without_a_limit_are_a_group_of_their_own() -> None:
    assert list(statistics.by_limit([row(1, 1, limit="upi"), row(1, 1)])) == ["upi", "not stated"]


def test_verdicts_count_true_false_and_open() -> None:
    study = StudyRun("a", "A", "", "", (), tuple(Conclusion("x", holds) for holds in (True, True, False, None)))
    assert statistics.verdicts([study]) == (2, 1, 1)
    assert statistics.overall(Run((study,), "", "")).compared == 0


def test_residuals_against_measured_values_leave_out_only_rows_that_repeat_others() -> None:
    seen = observation("s", "f", "m", 50.0, "GB/s", Source.MEASURED, note="run.json: made up")
    rows = [
        row(51.0, 40.0, measured=seen),
        row(49.0, 40.0, measured=seen, role="input"),
        row(99.0, 40.0, measured=seen, role="repeat"),
        row(10.0, 40.0),
    ]
    found = statistics.against_measured(rows)
    assert (found.rows, found.compared, found.rms_pct) == (3, 2, pytest.approx(2.0))
