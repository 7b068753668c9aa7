"""What rounds of pairwise network tests say of each node: its own rate, apart from its partners'."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lanewise.fleet.node import RECEIVE, SEND, network_row
from lanewise.results.observation import Observation

# Of the median of all nodes. Less is looked into: it says whom to test again, not who is at fault.
SUSPECT = 0.9
_END = {SEND: 0, RECEIVE: 1}


@dataclass(frozen=True, slots=True)
class PairTest:
    """The rate (B/s) from one node to another in a round; None: the test failed, and `note` says why."""

    source: str
    target: str
    rate: float | None
    round: int
    note: str = ""


def suspects(tests: Sequence[PairTest]) -> list[str]:
    """The nodes whose best test in a direction is below SUSPECT of the median node's: the slowest first."""
    shares: dict[str, float] = {}
    for scenario in (SEND, RECEIVE):
        best = {name: max(rates) for name, rates in _rates(tests, scenario).items()}
        middle = statistics.median(best.values()) if best else 0.0
        for name, rate in best.items():
            if rate < SUSPECT * middle:
                shares[name] = min(rate / middle, shares.get(name, 1.0))
    return sorted(shares, key=lambda name: shares[name])


def network_rows(tests: Sequence[PairTest]) -> dict[str, list[Observation]]:
    """By node, a row each of what it sends and receives: the median over its tests with partners that are no suspects.

    A test is as fast as the slower of both ends, so the tests with a slow partner say nothing of a node.
    """
    slow = frozenset(suspects(tests))
    rows: dict[str, list[Observation]] = defaultdict(list)
    for scenario in (SEND, RECEIVE):
        every, trusted = _rates(tests, scenario), _rates(tests, scenario, without_partners=slow)
        for name, rates in every.items():
            # Two suspects may have met nobody else; then the best says the most.
            chosen = trusted.get(name, ())
            value = statistics.median(chosen) if chosen else max(rates)
            rows[name].append(network_row(scenario, tuple(chosen or rates), value, len(chosen or rates)))
    return dict(rows)


def slow_pairs(tests: Sequence[PairTest]) -> list[str]:
    """Pairs that are slow though both ends are fine with others: the path between them, as text; the slowest first."""
    slow = frozenset(suspects(tests))
    best = {scenario: {name: max(rates) for name, rates in _rates(tests, scenario).items()} for scenario in _END}
    lines = []
    for test in tests:
        if test.rate is None or {test.source, test.target} & slow:
            continue
        reach = min(best[SEND][test.source], best[RECEIVE][test.target])
        if test.rate < SUSPECT * reach:
            text = f"{test.source} to {test.target}: {test.rate / 1e9:.3g} GB/s, with others both reach "
            lines.append((test.rate / reach, f"{text}{reach / 1e9:.3g} GB/s: the path between them is slow, or shared"))
    return [text for _, text in sorted(lines)]


def shared_paths(tests: Sequence[PairTest], bisection: int) -> list[str]:
    """Suspects that are slow in the first round of the `bisection` (its number), with all others, and fine in a later
    one, with half of them: they share something."""
    first = {name: test.rate for test in tests if test.round == bisection for name in (test.source,)}
    names = []
    for name, rate in first.items():
        later = [test.rate for test in tests if test.round > bisection and test.source == name and test.rate]
        if rate and later and rate < SUSPECT * max(later):
            names.append(name)
    return names


def _rates(
    tests: Iterable[PairTest], scenario: str, without_partners: frozenset[str] = frozenset()
) -> dict[str, list[float]]:
    """The rates of each node's tests in a direction."""
    rates: dict[str, list[float]] = defaultdict(list)
    for test in tests:
        ends = (test.source, test.target)
        own, partner = ends[_END[scenario]], ends[1 - _END[scenario]]
        if test.rate is not None and partner not in without_partners:
            rates[own].append(test.rate)
    return rates
