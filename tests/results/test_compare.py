"""Two sets of rows side by side: matched by what they are about, in one unit, and nothing lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.results.compare import compare, compare_runs, compare_sources, compare_systems, service_rows
from lanewise.results.loaded import Loaded
from lanewise.results.observation import Observation, Source
from lanewise.results.run import Run, StudyRun


def row(scenario: str = "s", value: float | None = 10.0, **more: object) -> Observation:
    fields = {"flow": "f", "metric": "m", "unit": "GB/s", "source": Source.PREDICTED, **more}
    return Observation(scenario=scenario, value=value, **fields)  # type: ignore[arg-type]


def run(*rows: Observation) -> Run:
    return Run((StudyRun("a", "A", "", "", rows),), "", "")


def test_a_difference_counts_from_the_left() -> None:
    assert compare([row(value=10.0)], [row(value=12.0)]).pairs[0].difference_pct == pytest.approx(20.0)


def test_units_of_one_kind_are_converted_to_the_left_one() -> None:
    pair = compare([row(value=1.0, unit="us")], [row(value=1500.0, unit="ns")]).pairs[0]
    assert (pair.unit, pair.right_value) == ("us", pytest.approx(1.5))


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


def service(qps: float = 100.0, **more: object) -> Loaded:
    fields: dict[str, object] = {"name": "a", "source": Source.PREDICTED, "peak": (qps, qps + 2), **more}
    name, source = fields.pop("name"), fields.pop("source")
    return Loaded(  # type: ignore[misc]
        name, "w", "Server", "x", source, qps, qps - 1, 10, 0, 0.015, 0.99, 0.012, True, "", "gpu0", "physics", **fields
    )  # fmt: skip


def test_services_of_two_runs_are_compared_by_rate_and_latency() -> None:
    left, right = (Run((), "", "", services=(service(qps),)) for qps in (100.0, 150.0))
    found = {pair.left.metric: pair for pair in compare_runs(left, right).pairs}
    assert list(found) == ["largest valid rate", "answered rate", "p99 latency"]
    assert found["largest valid rate"].difference_pct == pytest.approx(100 * 50 / 101)
    assert (found["p99 latency"].left_value, found["p99 latency"].unit) == (pytest.approx(12.0), "ms")


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
