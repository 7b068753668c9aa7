"""Rates in the common window, against closed forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.probes.gpu.schedule import CommonWindow, balanced, common_window

rates = st.floats(1.0, 1e5)


def ends(pace: float, copies: int, start: float = 0.0, before: int = 0) -> list[float]:
    return [start + (i + 1) / pace for i in range(before, copies)]


def window_of(end_times: list[list[float]]) -> CommonWindow:
    return common_window(end_times, [1] * len(end_times), range(len(end_times)))


def test_a_timestamp_of_several_copies_counts_them_all() -> None:
    window = common_window([ends(10.0, 4), ends(5.0, 4)], [8, 2], [0, 1])
    assert window.copies_per_second == pytest.approx([80, 10])


@given(st.lists(st.tuples(rates, st.integers(1, 50)), min_size=1, max_size=6))
def test_steady_flows_have_their_own_pace_whoever_ends_first(flows: list[tuple[float, int]]) -> None:
    window = window_of([ends(pace, copies) for pace, copies in flows])
    assert window.copies_per_second == pytest.approx([pace for pace, _ in flows])
    assert window.makespan == pytest.approx(max(copies / pace for pace, copies in flows))


@given(rates, st.integers(1, 40), st.floats(1.05, 8.0), st.integers(1, 40))
def test_what_a_flow_does_after_the_others_have_gone_does_not_count(
    pace: float, copies: int, faster: float, later: int
) -> None:
    # Both run at `pace` until the first ends in the middle of a copy of the other, which then speeds up.
    end = (copies + 0.5) / pace
    first = [end * (i + 1) / 8 for i in range(8)]
    second = [*ends(pace, copies), *[end + (0.5 + i) / (pace * faster) for i in range(later)]]
    window = window_of([first, second])
    assert window.copies_per_second == pytest.approx([8 / end, pace])
    assert window.every_flow_copied


def test_a_copy_that_outlasts_the_window_is_told() -> None:
    window = window_of([[1.0, 2.0], [5.0, 10.0]])
    assert not (window.every_flow_copied)
    assert not any(window.in_turns)
    assert window.copies_per_second[1] == pytest.approx(1 / 5)


@given(rates, st.lists(st.integers(2, 20), min_size=2, max_size=5))
def test_flows_that_take_turns_add_up_to_what_was_moved(pace: float, copies: list[int]) -> None:
    # One engine for all: it serves each flow's whole queue before the next one's.
    before = [sum(copies[:i]) for i in range(len(copies))]
    window = window_of([ends(pace, count, at / pace) for at, count in zip(before, copies, strict=True)])
    assert all(window.in_turns)
    assert sum(window.copies_per_second) == pytest.approx(pace)
    assert window.copies_per_second == pytest.approx([pace * count / sum(copies) for count in copies])


@given(rates, rates, st.integers(2, 20), st.integers(2, 20), st.integers(2, 20))
def test_a_flow_on_an_engine_of_its_own_keeps_its_pace_beside_flows_that_take_turns(
    pace: float, other: float, first: int, second: int, own: int
) -> None:
    """Seen on four H200: copies of one GPU to two others held a copy between two others to their own count."""
    window = common_window(
        [ends(pace, first), ends(pace, second, first / pace), ends(other, own)], [1] * 3, ["gpu0", "gpu0", "gpu3"]
    )
    if window.in_turns[0]:
        assert window.in_turns == (True, True, False)
        shared = pace / (first + second)
        assert window.copies_per_second == pytest.approx([first * shared, second * shared, other])
    else:  # the third was still at its first copy, or went on after both: a plain window
        assert own / other > first / pace


@given(st.lists(rates, min_size=1, max_size=8), st.floats(1e-3, 1.0))
def test_balanced_flows_end_within_one_copy_of_each_other(paces: list[float], seconds: float) -> None:
    counts = balanced(paces, seconds)
    times = [count / pace for count, pace in zip(counts, paces, strict=True)]
    aim = max(round(seconds * min(paces)), 4) / min(paces)
    assert all(abs(time - aim) <= 0.5 / pace * (1 + 1e-6) for time, pace in zip(times, paces, strict=True))
    assert min(counts) >= 4


@given(st.lists(rates, min_size=1, max_size=8), st.floats(1e-3, 1.0), st.integers(1, 256))
def test_no_flow_gets_more_copies_than_the_queue_holds(paces: list[float], seconds: float, most: int) -> None:
    assert all(1 <= count <= most for count in balanced(paces, seconds, most=most))
