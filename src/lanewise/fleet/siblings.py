"""Nodes that deliver less than their siblings: robust outliers of each row among the nodes of a class.

A value is an outlier if it is worse than the median by more than k robust standard deviations (1.4826 times the median
distance from the median, of all values or of those that are worse than it, whichever is more: rates have a long lower
tail, but no more than twice, or a group of slow nodes would hide itself), and by more than a floor. k is the normal
quantile that 5 % of whole surveys of healthy nodes pass (Bonferroni), at least LEAST_DEVIATIONS. The floor is the
larger of a loss that is worth a look, and of the typical half width of the rows' own 95 % intervals; few nodes tell
their deviation badly, so theirs is wider.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lanewise.checking.earlier_runs import LEAST_MACHINES
from lanewise.checking.tolerances import TOLERANCES
from lanewise.checking.verdict import lower_is_better
from lanewise.fleet.node import NodeReport, row_key
from lanewise.results.compare import interval
from lanewise.results.estimate import robust_deviation
from lanewise.results.match import Identity
from lanewise.results.observation import Observation

LEAST_DEVIATIONS = 3.5  # Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993
FALSE_ALARMS = 0.05  # surveys of healthy nodes that accuse any
# Medians of GPU copies repeat within 1 to 2 % (H200). Memory, networks and drives of equal hosts differ by several
# percent, and nobody swaps a cable for less than this.
_FLOOR_OF_GPUS, _FLOOR = TOLERANCES["earlier run"].relative, 0.10
_FEW, _LONGEST_TAIL = 10, 2.0
# More outliers than this share are no outliers: the class has two kinds of node.
MOST_OUTLIERS = 0.25


@dataclass(frozen=True, slots=True)
class SlowRow:
    """A row that is worse than it should be: `expected` (SI) is the median of `count` siblings, or of earlier runs.

    `allowed` is the relative loss beyond which a sibling is an outlier.
    """

    row: Observation
    expected: float
    count: int
    allowed: float = 0.0

    @property
    def share(self) -> float:
        """How much of the expected speed it has, 0..1."""
        value = self.row.value or 0.0
        if lower_is_better(self.row.unit):
            return self.expected / value if value else 0.0
        return value / self.expected if self.expected else 0.0

    @property
    def least_share(self) -> float:
        """The share below which it is an outlier; 0 where none is."""
        return 1 / (1 + self.allowed) if lower_is_better(self.row.unit) else max(0.0, 1 - self.allowed)


@dataclass(frozen=True, slots=True)
class ClassComparison:
    """The slow rows of each node, each node's rows as shares of the median (`shares`), how many rows were compared, and
    rows of which a class has two kinds of node."""

    slow: Mapping[str, Sequence[SlowRow]]
    shares: Mapping[str, Sequence[SlowRow]]
    compared: Mapping[str, int]
    divided: Sequence[str] = ()


def compare_siblings(members: Sequence[NodeReport]) -> ClassComparison:
    """Each row of each node compared with the same row of its class; none where LEAST_MACHINES do not have it."""
    rows: dict[Identity, dict[str, Observation]] = defaultdict(dict)
    for report in members:
        for row in report.rows:
            if row.value is not None and row.value > 0:
                rows[row_key(row)][report.name] = row
    rows = {key: values for key, values in rows.items() if len(values) >= LEAST_MACHINES}
    deviations = allowed_deviations(sum(map(len, rows.values())))
    slow: dict[str, list[SlowRow]] = defaultdict(list)
    shares: dict[str, list[SlowRow]] = defaultdict(list)
    compared: dict[str, int] = defaultdict(int)
    divided = []
    for values in rows.values():
        middle = statistics.median(row.value or 0.0 for row in values.values())
        bound = _allowance(list(values.values()), middle, deviations)
        outliers = {name: row for name, row in values.items() if _loss(row, middle) > bound}
        for name, row in values.items():
            compared[name] += 1
            shares[name].append(SlowRow(row, middle, len(values) - 1, bound))
        if len(outliers) > max(1, MOST_OUTLIERS * len(values)):
            first = next(iter(values.values()))
            divided.append(f"{len(outliers)} of {len(values)} nodes are slower in {first.scenario} {first.flow}")
            continue
        for name, row in outliers.items():
            slow[name].append(SlowRow(row, middle, len(values) - 1, bound))
    return ClassComparison(slow, shares, compared, divided)


def least_loss(row: Observation) -> float:
    """The relative loss of a row below which it is not looked at."""
    return _FLOOR_OF_GPUS if "gpu" in row.flow else _FLOOR


def half_width(row: Observation) -> float | None:
    """Half of the row's interval, relative to its value; None where it has none."""
    ends = interval(row)
    return (ends[1] - ends[0]) / 2 / row.value if row.value and ends is not None else None


def _loss(row: Observation, middle: float) -> float:
    """How much worse than the median, relative to it: of times, how much longer."""
    value = row.value or 0.0
    return (value - middle) / middle if lower_is_better(row.unit) else (middle - value) / middle


def allowed_deviations(comparisons: int) -> float:
    """Robust deviations that a healthy value may be off, with so many values in all."""
    if not comparisons:
        return LEAST_DEVIATIONS
    return max(LEAST_DEVIATIONS, statistics.NormalDist().inv_cdf(1 - FALSE_ALARMS / comparisons))


def _allowance(rows: Sequence[Observation], middle: float, deviations: float) -> float:
    """The relative loss beyond which a row is an outlier."""
    floor = least_loss(rows[0]) if len(rows) >= _FEW else _FLOOR
    losses = [_loss(row, middle) for row in rows]
    # The median loss is 0, so the distances of the worse half, both ways, have it in their middle too.
    worse = [sign * loss for loss in losses if loss >= 0 for sign in (1, -1)]
    deviation = robust_deviation(losses)
    if len(rows) >= _FEW:
        deviation = max(deviation, min(robust_deviation(worse), _LONGEST_TAIL * deviation))
    return max(floor, _typical_half_width(rows), deviations * deviation)


def _typical_half_width(rows: Iterable[Observation]) -> float:
    """The median of the rows' relative half widths of their intervals; 0 where none has one."""
    widths = [width for row in rows if (width := half_width(row)) is not None]
    return statistics.median(widths) if widths else 0.0
