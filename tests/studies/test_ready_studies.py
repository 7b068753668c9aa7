"""The five studies against their sources: the accuracy that the product promises."""

from __future__ import annotations

import math
from functools import cache

import pytest

import lanewise
from lanewise.results.observation import Observation
from lanewise.results.run import StudyRun

FIVE = ["composable-server", "gpu-server-routes", "expansion-chassis", "network-division", "storage-fabric"]


@cache
def study(name: str) -> StudyRun:
    return lanewise.run_studies([name]).studies[0]


def table(name: str, wanted: str) -> list[Observation]:
    return [row for row in study(name).rows if row.table == wanted]


def residuals(rows: list[Observation]) -> list[float]:
    return [row.residual_pct for row in rows if row.residual_pct is not None]


def rms(values: list[float]) -> float:
    return math.sqrt(sum(v * v for v in values) / len(values))


def test_the_five_studies_come_ready_in_the_order_of_the_mission() -> None:
    assert lanewise.ready_studies()[:5] == FIVE


def test_all_32_cells_of_the_composable_server_lie_within_2_percent_rms_and_none_beyond_5() -> None:
    cells = residuals(table("composable-server", "gen4") + table("composable-server", "gen5"))
    assert len(cells) == 32
    assert rms(cells) <= 2
    assert max(map(abs, cells)) <= 5
    assert len(study("composable-server").fitted) <= 5


def test_a_path_that_no_fit_has_seen_is_predicted_within_4_percent_rms() -> None:
    left = {group.group: group for group in study("composable-server").left_out}
    assert {"path 1", "path 2", "path 3", "path 4", "no switch"} <= set(left)
    assert left["all groups"].rms_pct <= 4


def test_a_fourth_gpu_on_path_4_adds_little_until_it_is_moved_to_a_second_server() -> None:
    rates = [row.value or 0.0 for row in table("composable-server", "composition")]
    composed, added, first, second = rates
    assert added < 1.1 * composed
    assert first == pytest.approx(composed)
    assert first + second == pytest.approx(4 / 3 * composed, rel=0.01)


def test_the_fall_on_path_4_is_the_read_windows_doing_and_nothing_below_saturation_falls() -> None:
    cells = {(row.scenario, row.settings["gpus"]): row for row in table("composable-server", "gen4")}
    assert "read window" in cells["path 4", 4].limit
    slow, fast = cells["path 4", 4].value, cells["path 1", 4].value
    assert slow is not None
    assert fast is not None
    assert slow < 0.85 * fast
    for gpus in (1, 2, 3):
        assert cells["path 4", gpus].value == pytest.approx(cells["path 1", gpus].value)
        assert "GPU service rate" in cells["path 4", gpus].limit


def test_rival_mechanisms_explain_the_cells_worse() -> None:
    rivals = {h.name: h for h in study("composable-server").hypotheses}
    own = rms(residuals(table("composable-server", "gen4") + table("composable-server", "gen5")))
    for name in ("no window", "tags of each GPU"):
        error = rivals[name].rms_pct
        assert error is not None
        assert error > 1.5 * own


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("gpu-server-routes", ["p2p"]),
        ("expansion-chassis", ["host to device", "device to host", "both ways, P2P enabled"]),
        ("storage-fabric", ["goodput"]),
    ],
)
def test_bandwidths_lie_within_10_percent_without_any_fit(name: str, tables: list[str]) -> None:
    assert not study(name).fitted
    found = [value for wanted in tables for value in residuals(table(name, wanted))]
    assert found
    assert max(map(abs, found)) <= 10


def test_copies_through_host_memory_both_ways_share_the_port_of_the_chassis() -> None:
    gen3, gen4 = table("expansion-chassis", "both ways, P2P disabled")
    assert abs(gen3.residual_pct or 99) <= 5
    assert abs(gen4.residual_pct or 99) <= 20  # Gen4 hosts pass 10.8, 20.1 and 25.6 GB/s
    assert (gen4.low or 0) < (gen4.published or 0) < (gen4.high or 0)


def test_raw_over_goodput_lies_within_5_percent_but_for_the_row_that_says_why() -> None:
    for row in table("storage-fabric", "raw over goodput"):
        assert abs(row.residual_pct or 0) <= 5 or "see the raw rate" in row.note


def test_each_network_share_lies_within_3_points() -> None:
    rows = table("network-division", "shares")
    assert len(rows) == 6
    for row in rows:
        assert abs((row.value or 0) - (row.published or 0)) <= 3


@pytest.mark.parametrize("name", FIVE)
def test_every_row_says_what_it_is_and_every_prediction_what_limits_it(name: str) -> None:
    for row in study(name).rows:
        assert row.study == name
        assert row.table
        assert row.unit
        assert row.value is not None or row.note
        if row.value is not None and "computed from other rows" not in row.note:
            assert row.limit
            assert row.rests_on
            assert row.basis is not None


@pytest.mark.parametrize("name", FIVE)
def test_conclusions_hold_in_the_prediction_exactly_where_they_hold_in_the_publication(name: str) -> None:
    for conclusion in study(name).conclusions:
        if conclusion.holds is not None and "published values: not stated" not in conclusion.shown:
            assert f"published values: {str(conclusion.holds).lower()}" in conclusion.shown


def test_extrapolated_cells_are_marked_and_kept_out_of_the_fit() -> None:
    marked = [row for row in table("composable-server", "gen5") if row.extrapolated]
    assert {(row.scenario, row.settings["gpus"]) for row in marked} == {("TX2550 M7", 5), ("TX2550 M7", 6)}
    assert study("composable-server").fitted[0].used == 30


def test_the_papers_straight_line_is_computed_from_four_gpus() -> None:
    assert residuals(table("composable-server", "straight line QPS")) == pytest.approx([0] * 4, abs=1e-3)


def test_nothing_is_fitted_that_the_study_does_not_declare() -> None:
    for name in FIVE:
        run = study(name)
        if not run.fitted:
            assert not [row for row in run.rows if row.basis == "fitted"]
