"""Rounds of pairwise tests: no two share a NIC, every pair is measured, suspects are told apart."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from lanewise.fleet.rounds import (
    MOST_ALL_PAIRS,
    MOST_SUSPECTS,
    Round,
    all_pairs,
    bisection_rounds,
    most_rounds,
    network_rounds,
    random_rounds,
)


def nodes(count: int, prefix: str = "n") -> list[str]:
    """So many names."""
    return [f"{prefix}{number}" for number in range(count)]


def is_matching(pairs: Round) -> bool:
    """Whether no node is in two pairs, or in one with itself."""
    ends = [node for pair in pairs for node in pair]
    return len(ends) == len(set(ends))


@given(st.integers(0, 65))
def test_all_pairs_are_measured_once_and_no_two_tests_of_a_round_share_a_nic(count: int) -> None:
    rounds = all_pairs(nodes(count))
    assert len(rounds) == (0 if count < 2 else count - 1 if count % 2 == 0 else count)
    assert all(is_matching(pairs) and len(pairs) == count // 2 for pairs in rounds)
    pairs = Counter(frozenset(pair) for pairs in rounds for pair in pairs)
    assert pairs == Counter(map(frozenset, combinations(nodes(count), 2)))


@given(st.integers(MOST_ALL_PAIRS + 1, 200), st.integers(0, 20), st.integers(0, 5))
def test_random_rounds_are_perfect_matchings_and_repeat_no_pair(count: int, rounds: int, seed: int) -> None:
    chosen = network_rounds(nodes(count), rounds, seed)
    assert len(chosen) == rounds
    assert all(is_matching(pairs) and len(pairs) == count // 2 for pairs in chosen)
    pairs = [frozenset(pair) for pairs in chosen for pair in pairs]
    assert len(pairs) == len(set(pairs))
    assert chosen == network_rounds(nodes(count), rounds, seed)


def test_another_seed_pairs_other_nodes() -> None:
    assert random_rounds(nodes(40), 3, 1) != random_rounds(nodes(40), 3, 2)


@given(st.integers(0, 90), st.integers(0, 90))
def test_bisection_measures_any_two_suspects_apart(count: int, others: int) -> None:
    suspects, trusted = nodes(count, "s"), nodes(others, "t")
    rounds = bisection_rounds(suspects, trusted)
    assert all(is_matching(pairs) for pairs in rounds)
    assert all(a in suspects and b in trusted for pairs in rounds for a, b in pairs)
    measured = suspects[: min(others, MOST_SUSPECTS)]
    together = [{a for a, _ in pairs} for pairs in rounds]
    assert [*together[:1]] == ([set(measured)] if measured else [])
    for a, b in combinations(measured, 2):
        assert any(a in group and b not in group for group in together)
        assert any(b in group and a not in group for group in together)


@given(st.integers(0, 300), st.integers(0, 300))
def test_a_survey_never_takes_more_rounds_than_stated(count: int, suspects: int) -> None:
    names = nodes(count)
    rounds = len(network_rounds(names))
    if count > MOST_ALL_PAIRS:
        suspects = min(suspects, count)
        rounds += len(bisection_rounds(names[:suspects], names[suspects:]))
    assert rounds <= most_rounds(count)
