"""Whether a row of a machine changed over its runs, and when: one change point by least squares.

Of the logarithms of the values, the split into two means that leaves the least sum of squares is the change point (the
first step of binary segmentation; Page 1954, Scott and Knott 1974). It counts if no more than SIGNIFICANCE of random
orders of the same values split as well (permutation test), and if the means differ by SMALLEST or more: medians of one
path repeat within 1 to 2 %.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.results.match import CONTEXT, Identity, identity
from lanewise.results.observation import Observation, Source
from lanewise.results.run import Run

SIGNIFICANCE, SMALLEST = 0.05, 0.03
PERMUTATIONS = 999
# Of fewer values no split is rarer than SIGNIFICANCE. A single value may be a disturbance.
LEAST_RUNS, _LEAST_SEGMENT = 8, 2


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The first run after a change (`index`), the geometric means (SI) of the values `before` and `after` it.

    `p_value` is the share (0..1) of random orders of the same values that split as well.
    """

    index: int
    before: float
    after: float
    p_value: float

    @property
    def difference_pct(self) -> float:
        """100 * (after - before) / before."""
        return 100 * (self.after - self.before) / self.before


@dataclass(frozen=True, slots=True)
class RowDrift:
    """One row over the runs that have it: `row` is the latest, `times` when each was measured, `values` in SI.

    `change` is None where nothing changed, or where there are fewer than LEAST_RUNS values.
    """

    row: Observation
    times: tuple[str, ...]
    values: tuple[float, ...]
    change: ChangePoint | None


def row_drifts(runs: Sequence[Run]) -> list[RowDrift]:
    """Each measured row of these runs, oldest first: those that changed first, the largest change first."""
    rows: dict[Identity, list[tuple[str, Observation]]] = defaultdict(list)
    for run in runs:
        for row in run.rows:
            if row.source is Source.MEASURED and row.value is not None and row.value > 0:
                rows[identity(row, CONTEXT)].append((run.created, row))
    drifts = []
    for entries in rows.values():
        values = tuple(row.value or 0.0 for _, row in entries)
        drifts.append(RowDrift(entries[-1][1], tuple(time for time, _ in entries), values, change_point(values)))
    return sorted(drifts, key=lambda drift: -abs(drift.change.difference_pct) if drift.change else 0.0)


def change_point(values: Sequence[float], seed: int = 0) -> ChangePoint | None:
    """The change point of positive values, None where there is none that counts; `seed` chooses the permutations."""
    import numpy as np

    n = len(values)
    if n < LEAST_RUNS:
        return None
    logs = np.log(np.asarray(values, dtype=float))
    chance = np.random.default_rng(seed)
    orders = np.vstack([logs, *(chance.permutation(logs) for _ in range(PERMUTATIONS))])
    # By how much a split after k values lowers the sum of squares: k (n - k) / n (difference of the means)^2.
    counts = np.arange(_LEAST_SEGMENT, n - _LEAST_SEGMENT + 1)
    sums = np.cumsum(orders, axis=1)
    left = sums[:, counts - 1]
    gains = (left / counts - (sums[:, -1:] - left) / (n - counts)) ** 2 * counts * (n - counts) / n
    best = gains.max(axis=1)
    # A random order that is the same one counts as well, whatever the rounding.
    p_value = float((best >= best[0] * (1 - 1e-9)).mean())
    index = int(counts[int(gains[0].argmax())])
    before, after = (math.exp(statistics.fmean(map(math.log, part))) for part in (values[:index], values[index:]))
    change = ChangePoint(index, before, after, p_value)
    return change if p_value <= SIGNIFICANCE and abs(math.log(after / before)) >= math.log1p(SMALLEST) else None
