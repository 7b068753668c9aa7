"""Two sets of rows side by side: matched by what they are about, in one unit, and nothing lost."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_display_units import observation

from lanewise.report.text.compare import render_comparison
from lanewise.results.compare import (
    RowPair,
    compare,
    compare_runs,
    compare_sources,
    compare_systems,
    names_that_differ,
    rows_of,
    service_rows,
)
from lanewise.results.observation import Observation, Source
from lanewise.results.run import Run, StudyRun
from lanewise.results.service_result import ServiceResult


def row(scenario: str = "s", value: float | None = 10.0, **more: Any) -> Observation:
    fields = {"flow": "f", "metric": "m", "unit": "GB/s", "source": Source.PREDICTED, **more}
    return observation(scenario=scenario, value=value, **fields)


def run(*rows: Observation) -> Run:
    return Run((StudyRun("a", "A", "", "", rows),), "", "")


def test_a_difference_counts_from_the_left() -> None:
    assert compare([row(value=10.0)], [row(value=12.0)]).pairs[0].difference_pct == pytest.approx(20.0)


def test_units_of_one_kind_are_converted_to_the_left_one() -> None:
    pair = compare([row(value=1.0, unit="us")], [row(value=1500.0, unit="ns")]).pairs[0]
    assert (pair.left.unit, pair.left.value, pair.right_value) == ("s", pytest.approx(1e-6), pytest.approx(1.5e-6))


@pytest.mark.parametrize(("value", "inside"), [(9.0, True), (12.0, False), (None, None)])
def test_a_measured_value_lies_inside_the_predicted_interval_or_not(value: float | None, inside: bool | None) -> None:
    predicted, measured = row(low=8.0, high=11.0), row(value=value, source=Source.MEASURED)
    assert compare([predicted], [measured]).pairs[0].in_predicted_interval is inside
    assert compare([measured], [predicted]).pairs[0].in_predicted_interval is inside
    text = render_comparison(compare([predicted], [measured]))
    assert ("outside interval" in text, " in interval" in text) == (inside is False, inside is True)
    assert compare([row()], [measured]).pairs[0].in_predicted_interval is None


def test_devices_that_differ_in_their_names_alone_are_named() -> None:
    comparison = compare([row(flow="ssd0->gpu0"), row(flow="ssd1->gpu0")], [row(flow="nu18->gpu0")])
    assert names_that_differ(comparison) == {"nu18": "ssd0"}
    assert names_that_differ(compare([row(flow="ssd0->gpu0")], [row(flow="nu18->gpu0", metric="x")])) == {}
    swapped = compare([row(flow="gpu0->gpu1"), row(flow="gpu1->gpu2")], [row(flow="gpu0->gpu2")])
    assert names_that_differ(swapped) == {}


def test_units_of_two_kinds_are_not_compared() -> None:
    pair = compare([row(unit="us")], [row(unit="GB/s")]).pairs[0]
    assert pair.difference_pct is None
    assert "not comparable" in pair.note


def test_settings_tell_rows_apart() -> None:
    result = compare([row(settings={"gpus": 1})], [row(settings={"gpus": 2})])
    assert (len(result.pairs), len(result.only_left), len(result.only_right)) == (0, 1, 1)


def test_published_figures_beside_predictions_become_the_left_side() -> None:
    result = compare_sources(run(row(value=11.0, published=10.0), row("t", 5.0)))
    assert [pair.difference_pct for pair in result.pairs] == [pytest.approx(10.0)]
    assert [one.scenario for one in result.only_right] == ["t"]


def test_runs_match_source_with_source() -> None:
    measured = row(source=Source.MEASURED)
    result = compare_runs(run(row(), measured), run(row(value=20.0)))
    assert [pair.difference_pct for pair in result.pairs] == [pytest.approx(100.0)]
    assert result.only_left == (measured,)


def test_two_systems_of_one_run_stand_side_by_side() -> None:
    result = compare_systems(run(row(system="x"), row(system="y", value=5.0)), "x", "y")
    assert result.pairs[0].difference_pct == pytest.approx(-50.0)


def service(qps: float = 100.0, **more: Any) -> ServiceResult:
    fields: dict[str, Any] = {"name": "a", "source": Source.PREDICTED, "peak": (qps, qps + 2), **more}
    name, source = fields.pop("name"), fields.pop("source")
    return ServiceResult(
        name, "w", "Server", "x", source, qps, qps - 1, 10, 0, 0.015, 0.99, 0.012, True, "", "gpu0", "physics", **fields
    )  # fmt: skip


def test_services_of_two_runs_are_compared_by_rate_and_latency() -> None:
    left, right = (Run((), "", "", services=(service(qps),)) for qps in (100.0, 150.0))
    found = {pair.left.metric: pair for pair in compare_runs(left, right).pairs}
    assert list(found) == ["largest valid rate", "answered rate", "p99 latency"]
    assert found["largest valid rate"].difference_pct == pytest.approx(100 * 50 / 101)
    assert (found["p99 latency"].left.value, found["p99 latency"].left.display_unit) == (pytest.approx(12e-3), "ms")


def test_services_with_other_settings_names_or_without_a_peak_stand_alone() -> None:
    left = Run((), "", "", services=(service(), service(settings={"path": 4}), service(name="b")))
    right = Run((), "", "", services=(service(peak=None), service(settings={"path": 3})))
    result = compare_runs(left, right)
    assert len(result.pairs) == 2
    assert len(result.only_left) == 7
    assert len(result.only_right) == 3


def test_a_simulated_and_a_measured_service_stand_side_by_side() -> None:
    study = StudyRun("a", "A", "", "", (), services=(service(), service(source=Source.MEASURED, qps=90.0)))
    result = compare_sources(Run((study,), "", ""), Source.PREDICTED, Source.MEASURED)
    assert result.pairs[1].difference_pct == pytest.approx(-100 * 10 / 99)
    assert {row.study for row in service_rows(service(), "a")} == {"a"}


rows = st.lists(st.builds(row, st.sampled_from("abc"), st.none() | st.floats(1, 9)), max_size=8)


@given(rows, rows)
def test_every_row_is_in_exactly_one_place(left: list[Observation], right: list[Observation]) -> None:
    left, right = [replace(one) for one in left], [replace(one) for one in right]
    result = compare(left, right)
    assert len(result.pairs) + len(result.only_left) == len(left)
    assert len(result.pairs) + len(result.only_right) == len(right)


def cell(*samples: float, **more: Any) -> Observation:
    """A measured row of these samples."""
    fields: dict[str, Any] = {"source": Source.MEASURED, "flow": "host0->gpu0", "metric": "goodput", **more}
    return row(value=statistics.median(samples), low=min(samples), high=max(samples), samples=samples, **fields)


def measured(*rows: Observation, **machine: str) -> Run:
    return Run((), "", "", machine_facts=machine, rows=rows)


def only(left: Observation, right: Observation) -> RowPair:
    (pair,) = compare_runs(measured(left), measured(right)).pairs
    return pair


FAST, SLOW = (10.0, 10.1, 10.2, 10.1, 10.0), (9.0, 9.1, 9.2, 9.1, 9.0)


def test_measured_rows_outside_any_study_take_part() -> None:
    assert rows_of(measured(cell(*FAST)), Source.MEASURED) == (cell(*FAST),)
    assert only(cell(*FAST), cell(*SLOW)).difference_pct == pytest.approx(100 * (9.1 / 10.1 - 1))


def test_what_was_measured_beside_a_prediction_becomes_a_row() -> None:
    beside = row(measured=row(value=8.0, low=7.0, high=9.0, source=Source.MEASURED, note="run.json: made up"))
    (found,) = rows_of(run(beside), Source.MEASURED)
    assert (found.value, found.low, found.high, found.measured) == (8e9, 7e9, 9e9, None)
    assert compare_sources(run(beside), Source.PREDICTED, Source.MEASURED).pairs[0].difference_pct == pytest.approx(-20)


def test_a_difference_is_real_only_where_the_intervals_do_not_overlap() -> None:
    assert only(cell(*FAST), cell(*SLOW)).verdict == "slower"
    assert only(cell(*SLOW), cell(*FAST)).verdict == "faster"
    assert only(cell(9.0, 10.0, 11.0), cell(10.9, 12.0, 13.0)).verdict == "same"


def test_one_outlier_among_many_samples_does_not_hide_a_difference() -> None:
    steady = [10.0 + 0.01 * i for i in range(12)]
    assert only(cell(*steady), cell(*[value - 1 for value in steady], 10.5)).verdict == "slower"


def test_less_time_is_faster() -> None:
    left = cell(2.0, 2.1, 2.2, metric="latency", unit="us")
    pair = only(left, cell(1000.0, 1100.0, 1200.0, metric="latency", unit="ns"))
    assert (pair.verdict, pair.speed) == ("faster", pytest.approx(2.1 / 1.1))


def test_single_values_and_predictions_get_no_verdict() -> None:
    assert only(cell(10.0), cell(5.0)).verdict == ""
    assert compare([row()], [row(value=5.0)]).pairs[0].verdict == ""
    assert only(row(source=Source.MEASURED, low=1.0, high=2.0), row(source=Source.MEASURED, low=3.0, high=4.0)).verdict


def test_a_pair_says_what_was_not_the_same_and_nothing_else() -> None:
    how = {"engine": "copy engine", "link under load": "Gen5 x16", "tool": "one"}
    other = {**how, "link under load": "Gen4 x16"}
    pair = only(cell(*FAST, how=how, path="peer NV18"), cell(*SLOW, how=other, path="peer, staged"))
    assert pair.differs == {"path": ("peer NV18", "peer, staged"), "link under load": ("Gen5 x16", "Gen4 x16")}


def test_rows_of_one_path_are_matched_before_those_whose_path_has_changed() -> None:
    left = measured(cell(*FAST, path="peer NV18"), cell(*SLOW, path="peer, staged"))
    right = measured(cell(*SLOW, path="peer, staged"), cell(*FAST, path="peer PIX"))
    found = compare_runs(left, right)
    assert [(pair.left.path, pair.right.path) for pair in found.pairs] == [
        ("peer NV18", "peer PIX"), ("peer, staged", "peer, staged"),
    ]  # fmt: skip


def test_the_whole_machine_is_the_geometric_mean_of_its_speeds() -> None:
    left = measured(cell(10.0, 10.0), cell(4.0, 4.0, flow="a->b", metric="latency", unit="us"), driver="1", kernel="6")
    right = measured(cell(20.0, 20.0), cell(8.0, 8.0, flow="a->b", metric="latency", unit="us"), driver="2", kernel="6")
    found = compare_runs(left, right)
    assert found.speed == pytest.approx(1.0)
    assert found.verdicts == {"same": 0, "faster": 1, "slower": 1}
    assert found.conditions == (("driver", "1", "2"),)


samples = st.lists(st.floats(1, 100), min_size=2, max_size=9)


@given(samples, samples)
def test_two_verdicts_the_other_way_round_are_opposites(one: list[float], other: list[float]) -> None:
    opposite = {"same": "same", "faster": "slower", "slower": "faster"}
    assert only(cell(*other), cell(*one)).verdict == opposite[only(cell(*one), cell(*other)).verdict]
