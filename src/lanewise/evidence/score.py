"""Scores of predictions on measured machines: errors, coverage of the intervals, the order of paths."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

from lanewise.catalog import Catalog
from lanewise.evidence.model import EvidenceMachine, EvidenceRow
from lanewise.evidence.prediction import BOTH_WAYS, SEVERAL, SINGLE, PredictedRow, predict_machine
from lanewise.evidence.targets import TARGETS, AccuracyTarget
from lanewise.perf.uncertainty import Interval, is_tie

# Paths of one machine whose measured rates differ by more, and whose published ranges do not overlap, must be predicted
# in the right order.
APART = 0.10


@dataclass(frozen=True, slots=True)
class GroupScore:
    """How well a group of rows is predicted. Errors are shares of the measured value, None where no row is predicted.

    `rows` could be predicted, `predicted` were. `median` and `p90` are of the error without its sign, `bias` is the
    median with it; `within_5` and `within_10` are shares of the predicted rows whose error is at most 5 and 10 %,
    `covered` that whose interval holds the measured value. `pairs` of rows of one machine, of equally many flows, were
    measured more than 10 % apart, in ranges that do not overlap; `ordered` are predicted in that order, `reversed` the
    other way round, and `tied` so that they cannot be told apart (perf.uncertainty.is_tie).
    `rival_median` and `rival_within_10` are those of NCCL's planning constants, of the rows that they say anything of.
    """

    rows: int
    predicted: int
    median: float | None = None
    p90: float | None = None
    bias: float | None = None
    within_5: float | None = None
    within_10: float | None = None
    covered: float | None = None
    pairs: int = 0
    ordered: int = 0
    reversed: int = 0
    tied: int = 0
    rival_median: float | None = None
    rival_within_10: float | None = None


@dataclass(frozen=True, slots=True)
class AccuracyScore:
    """Every row of the machines as predicted; with `fitted` figures measured on a machine counted on it too."""

    rows: tuple[PredictedRow, ...]
    machines: tuple[EvidenceMachine, ...]
    fitted: bool = False

    @property
    def rates(self) -> tuple[PredictedRow, ...]:
        """The rows that summaries count: rates that could be predicted."""
        return tuple(row for row in self.rows if not (row.row.latency or row.row.skip or row.row.traffic))

    @property
    def collectives(self) -> tuple[PredictedRow, ...]:
        """The collectives that could be predicted, bus bandwidths and times."""
        return tuple(row for row in self.rows if row.row.collective and not row.row.skip)

    @property
    def blocks_and_loads(self) -> tuple[PredictedRow, ...]:
        """Blocks of KV caches and loads of weights that could be predicted."""
        traffic = (row for row in self.rows if row.row.traffic and not row.row.collective)
        return tuple(row for row in traffic if not row.row.skip)

    def by_blocks_and_loads(self) -> dict[str, GroupScore]:
        """Scores of blocks and loads by kind, those that a figure comes from apart."""
        return _by(self.blocks_and_loads, lambda row: f"{row.observation.path}, {self.use_of(row)}")

    def by_target(self) -> dict[AccuracyTarget, dict[str, tuple[GroupScore, int]]]:
        """Of each target, for the rows learned from and for those held out: the score, and how many are within it."""
        scores: dict[AccuracyTarget, dict[str, tuple[GroupScore, int]]] = {}
        for target in TARGETS:
            groups = _groups(filter(target.counts, self.rows), self.use_of)
            scores[target] = {use: (score_of(rows), sum(map(target.reached, rows))) for use, rows in groups.items()}
        return scores

    def use_of(self, row: PredictedRow) -> str:
        """Whether figures may come from a row: of collectives from its machine, of blocks and loads from itself."""
        if row.row.collective is None and row.row.traffic is not None:
            return "learned from" if row.row.learned else "held out"
        return "held out" if row.machine in self._held_out() else "to learn from"

    def _held_out(self) -> frozenset[str]:
        return frozenset(machine.name for machine in self.machines if machine.held_out)

    def by_collective(self) -> dict[str, GroupScore]:
        """Scores of collectives by what joins the ranks and the class of the size."""
        return _by(self.collectives, lambda row: row.observation.path)

    def collectives_by_use(self) -> dict[str, GroupScore]:
        """Scores of collectives on machines to learn from, and on those held out, by class of size."""
        return _by(self.collectives, lambda row: f"{self.use_of(row)}, {row.observation.path.split(', ', 2)[-1]}")

    def algorithms(self) -> tuple[int, int]:
        """Of how many collectives the algorithm is right, and how many state it."""
        stated = [row.algorithm_right for row in self.collectives if row.algorithm_right is not None]
        return sum(stated), len(stated)

    @property
    def total(self) -> GroupScore:
        """That of all rates."""
        return score_of(self.rates)

    def by_path(self) -> dict[str, GroupScore]:
        """Scores by kind of path."""
        return _by(self.rates, lambda row: row.observation.path or "no route")

    def by_flow_set(self) -> dict[str, GroupScore]:
        """Scores of single flows, of both directions of a path and of several flows, and of the last two together."""
        groups = _by(self.rates, lambda row: row.flow_set)
        sets = [row for row in self.rates if row.flow_set != SINGLE]
        named = {name: groups[name] for name in (SINGLE, BOTH_WAYS, SEVERAL) if name in groups}
        return named | ({"all sets of flows": score_of(sets)} if sets else {})

    def by_basis(self) -> dict[str, GroupScore]:
        """Scores by what the prediction rests on."""
        return _by(self.rates, lambda row: str(row.observation.basis or "not predicted"))

    def by_use(self) -> dict[str, GroupScore]:
        """Scores of the machines that the catalogue may learn from, and of those that are held out."""
        return _by(self.rates, self.use_of)

    def by_machine(self) -> dict[str, GroupScore]:
        """Scores by machine."""
        return _by(self.rates, lambda row: row.machine)

    def latencies(self) -> GroupScore:
        """That of small copies, which no other summary counts."""
        return score_of([row for row in self.rows if row.row.latency and not row.row.skip and not row.row.traffic])


def accuracy_score(machines: Sequence[EvidenceMachine], catalog: Catalog, fitted: bool = False) -> AccuracyScore:
    """The machines' rows predicted on the parts of `catalog`; InputError where a description or a flow is wrong.

    Unless `fitted`, figures that were measured on a machine are left out for that machine.
    """
    rows = tuple(
        row
        for machine in machines
        for row in predict_machine(machine, catalog if fitted else machine.left_out_of(catalog), fitted)
    )
    return AccuracyScore(rows, tuple(machines), fitted)


def score_of(rows: Sequence[PredictedRow]) -> GroupScore:
    """The score of these rows."""
    errors = [abs(row.error) for row in rows if row.error is not None]
    if not errors:
        return GroupScore(len(rows), 0)
    signed = [row.error for row in rows if row.error is not None]
    covered = [row.covered for row in rows if row.covered is not None]
    rivals = [abs(row.rival_error) for row in rows if row.rival_error is not None]
    pairs = list(_pairs(rows))
    return GroupScore(
        rows=len(rows), predicted=len(errors), median=quantile(errors, 0.5), p90=quantile(errors, 0.9),
        bias=quantile(signed, 0.5), within_5=_share(error <= 0.05 for error in errors),
        within_10=_share(error <= 0.10 for error in errors), covered=_share(covered),
        pairs=len(pairs), ordered=sum(order > 0 for order in pairs), reversed=sum(order < 0 for order in pairs),
        tied=sum(order == 0 for order in pairs),
        rival_median=quantile(rivals, 0.5) if rivals else None,
        rival_within_10=_share(error <= 0.10 for error in rivals) if rivals else None,
    )  # fmt: skip


def quantile(values: Iterable[float], share: float) -> float:
    """The value below which `share` of all lie, between two of them by a straight line."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _pairs(rows: Sequence[PredictedRow]) -> Iterable[int]:
    """Of each two rows of a machine that count alike and lie apart: 1 if predicted in order, 0 for a tie, else -1."""

    def alike(row: PredictedRow) -> tuple[str, str, int]:
        return row.machine, row.observation.metric, len(row.row.flows)

    for _, group in groupby(sorted(rows, key=alike), key=alike):
        for pair in combinations(group, 2):
            slow, fast = sorted(pair, key=lambda row: row.row.value)
            one, other = _interval(fast), _interval(slow)
            if _measured_apart(slow.row, fast.row) and one is not None and other is not None:
                yield 0 if is_tie(one, other) else 1 if one[1] > other[1] else -1


def _measured_apart(slow: EvidenceRow, fast: EvidenceRow) -> bool:
    """Whether one row is faster than the other by more than APART, also at the ends of the ranges that face each other.

    Where equal paths of a source range from one rate to beyond the other, nobody measured which one is faster.
    """
    upper, lower = slow.high or slow.value, fast.low or fast.value
    return fast.value > (1 + APART) * slow.value and lower > upper


def _interval(row: PredictedRow) -> Interval | None:
    value, low, high = row.observation.value, row.observation.low, row.observation.high
    if value is None:
        return None
    return low if low is not None else value, value, high if high is not None else value


def _by(rows: Sequence[PredictedRow], key: Callable[[PredictedRow], str]) -> dict[str, GroupScore]:
    return {name: score_of(group) for name, group in _groups(rows, key).items()}


def _groups(
    rows: Iterable[PredictedRow], key: Callable[[PredictedRow], str]
) -> dict[str, list[PredictedRow]]:  # fmt: skip
    groups: dict[str, list[PredictedRow]] = {}
    for row in sorted(rows, key=key):
        groups.setdefault(key(row), []).append(row)
    return groups


def _share(flags: Iterable[bool]) -> float:
    values = list(flags)
    return sum(values) / len(values)
