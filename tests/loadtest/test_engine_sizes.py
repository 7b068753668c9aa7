"""The batch sizes that engines prepare, and what a batch is padded to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.loadtest.engines.base import fitting, steps


@pytest.mark.parametrize(
    ("largest", "sizes"),
    [
        (1, [1]),
        (6, [1, 2, 4, 6]),
        (8, [1, 2, 4, 8]),
        (20, [1, 2, 4, 8, 9, 12, 15, 18, 20]),
        (64, [1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64]),
        (128, [1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128]),
        (256, [1, 2, 4, 8, 16, 32, 64, 96, 128, 160, 192, 224, 256]),
    ],
)
def test_sizes_are_powers_of_two_and_then_eighths_of_the_largest(largest: int, sizes: list[int]):
    assert steps(largest) == sizes


@given(st.integers(1, 5000), st.data())
def test_a_batch_is_padded_by_less_than_an_eighth_of_the_largest_and_less_than_itself(
    largest: int, data: st.DataObject
):
    n = data.draw(st.integers(1, largest))
    size = fitting(steps(largest), n)
    assert n <= size <= largest
    assert size < 2 * n
    assert size == n or n <= 8 or size - n < -(-largest // 8)


def test_without_prepared_sizes_a_batch_runs_as_it_is():
    assert fitting([], 33) == 33
