"""MLPerf's verdict, against exact binomial sums and the counts that LoadGen's conditions follow from."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.errors import InputError
from lanewise.serving.verdict import invalid_reason, minimum_queries, most_late, percentile_index


def exact_minimum(late: int, percentile: Fraction) -> int:
    """The fewest queries, from whole numbers: chance of `late` or fewer late ones below 1 %, searched one by one."""
    other = 1 - percentile
    queries = late
    while True:
        chance = sum(comb(queries, x) * percentile ** (queries - x) * other**x for x in range(late + 1))
        if chance < Fraction(1, 100):
            return queries
        queries += 1


@pytest.mark.parametrize(("late", "queries"), [(0, 459), (1, 662), (2, 838), (3, 1001)])
def test_the_fewest_queries_at_the_99th_percentile(late: int, queries: int) -> None:
    assert minimum_queries(late) == queries


@pytest.mark.parametrize("late", [0, 1, 2, 5])
def test_the_fewest_queries_are_those_of_an_exact_binomial_sum(late: int) -> None:
    assert minimum_queries(late, 0.9) == exact_minimum(late, Fraction(9, 10))


def test_single_stream_needs_64_queries_with_one_late() -> None:
    assert minimum_queries(1, 0.9) == 64


@given(late=st.integers(0, 10_000_000), percentile=st.sampled_from([0.9, 0.99, 0.999]))
def test_one_query_fewer_does_not_pass_and_more_late_ones_need_more(late: int, percentile: float) -> None:
    fewest = minimum_queries(late, percentile)
    assert "too few" not in invalid_reason(fewest, late, percentile)
    assert invalid_reason(fewest - 1, late, percentile)
    assert minimum_queries(late + 1, percentile) > fewest
    # 2.33 standard deviations of the count of late ones, the normal approximation, within a per cent of the margin
    margin = fewest * (1.0 - percentile) - late
    assert late < 1000 or margin == pytest.approx(2.3263 * (late * percentile) ** 0.5, rel=0.05)


@given(queries=st.integers(0, 1_000_000))
def test_the_most_late_queries_pass_and_one_more_does_not(queries: int) -> None:
    most = most_late(queries)
    assert most == -1 or minimum_queries(most) <= queries < minimum_queries(most + 1)
    # Early stopping is the stricter rule: what passes it keeps the percentile within its bound.
    assert most <= max(queries - percentile_index(queries) - 1, 0) if queries else most == -1


def test_the_percentile_decides_at_one_late_query() -> None:
    # p99 of 10,000 is the 9,901st, so that 99 late ones leave it within the bound and 100 do not.
    assert "too few queries to claim p99" in invalid_reason(10_000, 99)
    assert "p99 is above its bound" in invalid_reason(10_000, 100)


def test_a_verdict_names_what_failed() -> None:
    assert invalid_reason(10_000, 50) == ""
    assert invalid_reason(458, 0) == "too few queries to claim p99: 458 with 0 late, which takes 459"
    assert most_late(458) == -1
    assert invalid_reason(0, 0).startswith("too few queries")
    assert not invalid_reason(10_000, most_late(10_000))
    assert invalid_reason(10_000, most_late(10_000) + 1)


@pytest.mark.parametrize("late", [-1, 11])
def test_impossible_counts_are_refused(late: int) -> None:
    with pytest.raises(InputError):
        invalid_reason(10, late)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 99.0, float("nan")])
def test_shares_are_between_0_and_1(share: float) -> None:
    with pytest.raises(InputError, match="percentile"):
        minimum_queries(1, share)
