"""What rounds of pairwise network tests say of each node: its own rate, apart from its partners'."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lanewise.fleet.node import RECEIVE, SEND, network_row
from lanewise.fleet.rounds import Round
from lanewise.fleet.siblings import allowed_deviations
from lanewise.results.estimate import robust_deviation
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


@dataclass(frozen=True, slots=True)
class SlowPair:
    """Two nodes between which the `rate` (B/s) is lower than what both reach with `others`."""

    source: str
    target: str
    rate: float
    others: float

    def __str__(self) -> str:
        rates = f"{self.rate / 1e9:.3g} GB/s, with others both reach {self.others / 1e9:.3g} GB/s"
        return f"{self.source} to {self.target}: {rates}; the path between them is slow, or shared"


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


def slow_pairs(tests: Sequence[PairTest]) -> list[SlowPair]:
    """Pairs that are slow though both ends are fine with others, so that the path between them is; the slowest first.

    An outlier as among siblings: by more than the allowed robust deviations of all pairs, and by the share of SUSPECT.
    The better of a pair's tests counts.
    """
    slow = frozenset(suspects(tests))
    rates: dict[tuple[str, str], float] = {}
    for test in tests:
        ends = (test.source, test.target)
        if test.rate is not None and not slow.intersection(ends):
            rates[ends] = max(test.rate, rates.get(ends, 0.0))
    pairs = list(_with_others(rates))
    if not pairs:
        return []
    losses = [1 - pair.rate / pair.others for pair in pairs]
    bound = max(1 - SUSPECT, allowed_deviations(len(pairs)) * robust_deviation(losses))
    return sorted((pair for pair in pairs if 1 - pair.rate / pair.others > bound), key=lambda p: p.rate / p.others)


def pairs_again(tests: Sequence[PairTest]) -> Round:
    """Slow pairs that were measured once and can be measured again at the same time: no two share a node."""
    counts = Counter((test.source, test.target) for test in tests)
    chosen: dict[str, str] = {}
    for pair in slow_pairs(tests):
        if counts[pair.source, pair.target] == 1 and not {pair.source, pair.target} & {*chosen, *chosen.values()}:
            chosen[pair.source] = pair.target
    return tuple(chosen.items())


def _with_others(rates: Mapping[tuple[str, str], float]) -> Iterator[SlowPair]:
    """Each pair with the lower of what its source sends to others, and its target receives from others (medians)."""
    sent: dict[str, dict[str, float]] = defaultdict(dict)
    received: dict[str, dict[str, float]] = defaultdict(dict)
    for (source, target), rate in rates.items():
        sent[source][target] = received[target][source] = rate
    for (source, target), rate in rates.items():
        to_others = [value for name, value in sent[source].items() if name != target]
        from_others = [value for name, value in received[target].items() if name != source]
        if to_others and from_others:
            yield SlowPair(source, target, rate, min(statistics.median(to_others), statistics.median(from_others)))


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
