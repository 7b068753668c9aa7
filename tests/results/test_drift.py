"""Change points in the history of a row."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.fleet.node import ALONE, TOGETHER, in_phase
from lanewise.report.drift_json import drift_json
from lanewise.report.text.drift import render_drift
from lanewise.results.drift import LEAST_RUNS, change_point, row_drifts
from lanewise.results.observation import Observation, Source
from lanewise.results.run import Run


def series(before: int, after: int, ratio: float, seed: int = 0, sigma: float = 0.01) -> list[float]:
    """Values around 50e9, then around `ratio` times that."""
    chance = random.Random(seed)
    return [50e9 * (ratio if i >= before else 1.0) * chance.gauss(1, sigma) for i in range(before + after)]


@given(st.integers(4, 20), st.integers(4, 20), st.sampled_from([0.5, 0.8, 0.9, 1.15]), st.integers(0, 50))
def test_a_step_is_dated(before: int, after: int, ratio: float, seed: int) -> None:
    change = change_point(series(before, after, ratio, seed))
    assert change is not None
    assert change.index == before
    assert change.difference_pct == pytest.approx(100 * (ratio - 1), abs=3)


@given(st.integers(0, 60), st.integers(0, 1000))
def test_what_repeats_within_a_percent_never_changed(count: int, seed: int) -> None:
    assert change_point(series(count, 0, 1.0, seed)) is None


def test_noise_that_is_wide_is_no_change_in_most_orders() -> None:
    wrong = sum(change_point(series(20, 0, 1.0, seed, sigma=0.2)) is not None for seed in range(100))
    assert wrong <= 10


def test_one_bad_run_is_no_change() -> None:
    values = series(15, 0, 1.0)
    values[7] = 20e9
    assert change_point(values) is None


def test_few_runs_say_nothing() -> None:
    assert change_point(series(4, LEAST_RUNS - 5, 0.5)) is None
    assert change_point(series(4, LEAST_RUNS - 4, 0.5)) is not None


def test_rows_are_joined_over_runs_and_the_changed_ones_come_first() -> None:
    def run(day: int, slow: float) -> Run:
        rows = tuple(
            Observation("copy", flow, "goodput", value, "GB/s", Source.MEASURED)
            for flow, value in (("host0->gpu0", 50e9), ("host0->gpu1", slow))
        )
        return Run((), f"2026-11-{day:02}T00:00:00+00:00", "0", rows=rows)

    drifts = row_drifts([run(day, 50e9 if day < 8 else 25e9) for day in range(1, 15)])
    assert [drift.row.flow for drift in drifts] == ["host0->gpu1", "host0->gpu0"]
    assert drifts[0].change is not None
    assert drifts[0].times[drifts[0].change.index] == "2026-11-08T00:00:00+00:00"
    assert drifts[1].change is None


def test_a_path_alone_and_while_all_work_are_two_rows_and_a_check_is_the_one_alone() -> None:
    """A fleet check measures the same copy in both phases: one series of both would be no series of anything."""
    copy = Observation("memory copy", "host0->host0", "goodput", 90e9, "GB/s", Source.MEASURED, path="host memory")

    def run(day: int) -> Run:
        alone = copy if day == 1 else in_phase(copy, ALONE)  # the first is of `lanewise check -o`
        rows = (alone, in_phase(replace(copy, value=50e9 if day < 8 else 30e9), TOGETHER))
        return Run((), f"2026-11-{day:02}T00:00:00+00:00", "0", rows=rows)

    drifts = row_drifts([run(day) for day in range(1, 15)])
    assert [(len(set(drift.values)), bool(drift.change)) for drift in drifts] == [(2, True), (1, False)]
    assert [row["phase"] for row in drift_json({"n": drifts})["machines"][0]["rows"]] == [TOGETHER, ALONE]
    assert "memory copy (together)  host0->host0  goodput  50 GB/s  30 GB/s" in render_drift({"n": drifts})
