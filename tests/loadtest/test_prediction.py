"""The peak predicted from what batches take, against closed forms; and the part file that keeps the times."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.catalog import read_parts
from lanewise.errors import InputError
from lanewise.loadtest.prediction import PART, SERVICE, DeviceModel, PredictedPeak, part_file, predict_peak
from lanewise.serving.queues import md1_peak
from lanewise.serving.times import time_key

ALONE = DeviceModel(bound=0.015)


@pytest.mark.parametrize("service", [0.0005, 0.001, 0.004])
def test_one_device_that_serves_query_by_query_is_the_closed_form(service: float):
    found = predict_peak({1: service}, ALONE)
    assert found.rate == pytest.approx(md1_peak(service, ALONE.bound), rel=0.015)
    assert found.ceiling == pytest.approx(1 / service)


@cache
def unscaled(largest: int) -> PredictedPeak:
    return predict_peak({1: 0.001, largest: 0.003}, replace(ALONE, timeout=0.001))


@settings(max_examples=5, deadline=None)
@given(scale=st.floats(0.2, 5.0), largest=st.sampled_from([4, 8]))
def test_times_and_bound_twice_as_long_halve_the_peak(scale: float, largest: int):
    times, one = {1: 0.001, largest: 0.003}, unscaled(largest)
    other = predict_peak(
        {size: scale * took for size, took in times.items()},
        replace(ALONE, bound=scale * ALONE.bound, timeout=scale * 0.001),
    )
    assert other.rate * scale == pytest.approx(one.rate, rel=0.02)


def test_more_devices_and_batches_in_flight_carry_more_and_steps_less():
    times = {1: 0.001, 2: 0.0012, 8: 0.003}
    one = predict_peak(times, ALONE).rate
    two = predict_peak(times, replace(ALONE, servers=2)).rate
    assert 2.0 * one < two < 2.2 * one  # a query goes where fewer wait
    assert predict_peak(times, replace(ALONE, steps=True)).rate <= one * 1.005
    assert predict_peak(times, replace(ALONE, servers=2)).ceiling == pytest.approx(2 * 8 / 0.003)


def test_no_time_and_no_rate_within_the_bound_are_refused():
    for wrong in ({}, {0: 1.0}, {1: 0.0}, {1: float("inf")}):
        with pytest.raises(InputError) as caught:
            predict_peak(wrong, ALONE)
        assert caught.value.hint
    with pytest.raises(InputError, match="no rate is predicted"):
        predict_peak({1: 0.02}, ALONE)


def test_the_part_file_of_measured_times_is_read_back():
    times = {1: 0.00032, 8: 0.00258}
    part = read_parts(part_file(times, 'measured "here" \\ now'), "times.yaml").get(PART)
    for size, took in times.items():
        figure = part.figures[time_key(SERVICE, size)]
        assert (figure.value, str(figure.basis)) == (pytest.approx(took), "calibrated")
