"""Intervals of predictions: from the ranges of the capacities, wider the less is known."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import Figure, builtin
from lanewise.perf.predict import Prediction
from lanewise.perf.uncertainty import RANGES, figure_range
from lanewise.topology.read import read_system

ONE_GPU = "{lanewise: 1, system: one, devices: {cpu0: {cpu: genoa}, gpu0: {gpu: l40s}}, links: [%s]}"
LINK = "{from: cpu0, to: gpu0, pcie: gen4 x16}"


def predicted(figure: Figure, flows: str = "host0->gpu0") -> Prediction:
    """One GPU with that figure for host-to-device copies."""
    part = builtin().get("l40s").with_figure("engine.h2d.gen4", figure)
    return lanewise.predict(read_system(ONE_GPU % LINK, "one.yaml", {}, builtin().with_part(part)), flows)


def test_the_interval_is_that_of_the_capacity_that_limits() -> None:
    low, high = RANGES["calibrated"]
    rate = predicted(Figure(20e9, "B/s", "s", basis="calibrated")).rates[0]
    assert (rate.low, rate.rate, rate.high) == pytest.approx((20e9 * low, 20e9, 20e9 * high))


def test_a_stated_range_counts_where_it_is_wider() -> None:
    rate = predicted(Figure(20e9, "B/s", "s", basis="calibrated", low=10e9, high=20e9)).rates[0]
    assert (rate.low, rate.high) == pytest.approx((10e9, 20e9 * RANGES["calibrated"][1]))


def test_a_figure_of_another_part_of_the_same_chip_has_the_wider_range() -> None:
    own = Figure(20e9, "B/s", "s", basis="calibrated")
    low, high = figure_range(own)
    carried_low, carried_high = figure_range(Figure(20e9, "B/s", "s", basis="calibrated", carried_from="rtx-6000-ada"))
    assert carried_low < low
    assert high < carried_high


def test_the_total_of_flows_has_the_interval_of_their_sum() -> None:
    found = predicted(Figure(20e9, "B/s", "s", basis="calibrated"), "host0->gpu0 x2, host0->gpu0")
    assert found.total_low == pytest.approx(20e9 * RANGES["calibrated"][0])
    assert found.total_high == pytest.approx(sum(rate.high for rate in found.rates))


def test_the_interval_of_a_staged_copy_holds_that_of_its_stages_and_of_their_overlap() -> None:
    system = lanewise.load_system("rack-16gpu")
    rate = lanewise.predict(system, "gpu0->gpu4", p2p=False).rates[0]
    lone = [lanewise.predict(system, flow).rates[0] for flow in ("gpu0->host0", "host0->gpu4")]
    in_turn = 1 / sum(1 / flow.rate for flow in lone)
    assert rate.low < in_turn < rate.rate < rate.high
