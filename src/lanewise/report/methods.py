"""The same rows by another method: its values and residuals, and how far off it is compared with the rows' own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lanewise.results import statistics
from lanewise.results.observation import Observation
from lanewise.results.statistics import Residuals


@dataclass(frozen=True, slots=True)
class MethodResiduals:
    """Residuals of a further method, and `own`, those of the rows' own values, called `own_name`, on the same rows."""

    name: str
    own_name: str
    residuals: Residuals
    own: Residuals


def names(rows: Iterable[Observation]) -> list[str]:
    """The further methods of rows, in the order they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row.comparisons))


def methods(rows: Sequence[Observation]) -> list[MethodResiduals]:
    """Each further method on the rows that it has a value for; methods that nothing was published for are left out."""
    return [method for name in names(rows) if (method := _method(name, rows)).residuals.compared]


def _method(name: str, rows: Sequence[Observation]) -> MethodResiduals:
    own = [row for row in rows if name in row.comparisons and row.value is not None]
    residuals = statistics.residuals(replace(row, value=row.comparisons[name]) for row in own)
    sources = {row.source.value for row in own}
    return MethodResiduals(name, sources.pop() if len(sources) == 1 else "own value", residuals,
                           statistics.residuals(own))  # fmt: skip
