"""Samples become observations, and what an interval, a stop rule and a size fit say of them can be checked by hand."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_display_units import sample, shown

from lanewise import units
from lanewise.options.sampling import SamplingRule
from lanewise.probes.sampling import enough
from lanewise.results.estimate import fit_line, median_interval
from lanewise.results.observation import Source
from lanewise.results.sample import Sample, summarise

VALUES = st.lists(st.floats(1.0, 1e6), min_size=1, max_size=40)


def taken(value: float | None, flow: str = "host0->gpu0", note: str = "") -> Sample:
    return sample("copy", flow, "goodput", value, "GB/s", {"bytes": 4096}, {"engine": "CE"}, "host to device", note)


@given(VALUES)
def test_an_observation_is_the_median_between_the_extremes_and_keeps_every_sample(values: list[float]):
    (row,) = summarise([taken(value) for value in values])
    assert row.display(row.value) == pytest.approx(statistics.median(values))
    assert (row.display(row.low), row.display(row.high)) == (
        pytest.approx(min(values)),
        pytest.approx(max(values)),
    )
    assert list(map(row.display, row.samples)) == pytest.approx(values)
    assert row.source is Source.MEASURED


def test_cells_keep_their_order_and_one_without_a_value_keeps_its_reason():
    rows = summarise([taken(1.0, "b"), taken(None, "a", "no such peer"), taken(3.0, "b")])
    assert [(row.flow, shown(row), row.note) for row in rows] == [("b", 2.0, ""), ("a", None, "no such peer")]


def test_the_interval_of_the_median_holds_it_as_often_as_it_says():
    chance = random.Random(7)
    for n in (6, 11, 25):
        held = 0
        for _ in range(2_000):
            low, high = median_interval([chance.expovariate(1.0) for _ in range(n)])
            held += low <= math.log(2) <= high
        assert held / 2_000 > 0.94, n


@given(VALUES)
def test_the_interval_lies_around_the_median_and_inside_the_samples(values: list[float]):
    low, high = median_interval(values)
    assert min(values) <= low <= statistics.median(values) <= high <= max(values)


def test_a_cell_stops_when_its_interval_is_narrow_and_never_later_than_most():
    rule = SamplingRule(least=5, most=12, width=0.01)
    assert not enough([10.0] * 4, rule)
    assert enough([10.0] * 5, rule)
    scattered = [10.0, 11.0, 9.0, 10.5, 9.5, 10.2, 9.8, 11.2, 8.8, 10.1, 9.9]
    assert not enough(scattered, rule)
    assert enough([*scattered, 10.3], rule)


@given(latency=st.floats(1e-7, 1e-3), bandwidth=st.floats(1e8, 1e12))
def test_a_fit_finds_the_latency_and_bandwidth_that_made_the_times(latency: float, bandwidth: float):
    sizes = [2.0**k for k in range(12, 31)]
    found = fit_line(sizes, [latency + size / bandwidth for size in sizes])
    assert found is not None
    assert found.bandwidth == pytest.approx(bandwidth, rel=1e-6)
    assert found.latency == pytest.approx(latency, rel=1e-3, abs=1e-9)
    assert found.worst < 1e-6


def test_a_fit_needs_two_sizes_and_a_rising_line():
    assert fit_line([4096.0, 4096.0], [1e-6, 2e-6]) is None
    assert fit_line([4096.0, 8192.0], [2e-6, 1e-6]) is None


def test_sizes_read_as_people_write_them() -> None:
    assert [units.size(n) for n in (16, 4096, 100_000, 2**29, 3 * 2**30)] == [
        "16 B", "4 KiB", "100,000 B", "512 MiB", "3 GiB",
    ]  # fmt: skip
