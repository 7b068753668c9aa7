"""The same rows by another method: its values and residuals, and how far it lies off beside the rows' own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lanewise.results import statistics
from lanewise.results.observation import Observation
from lanewise.results.statistics import Residuals


@dataclass(frozen=True, slots=True)
class Method:
    """Residuals of the rows' own values, called `own_name`, and of one other method on the same rows."""

    name: str
    own_name: str
    other: Residuals
    own: Residuals


def names(rows: Iterable[Observation]) -> list[str]:
    """The other methods that stand beside rows, in the order they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row.comparisons))


def methods(rows: Sequence[Observation]) -> list[Method]:
    """Each other method on the rows that it has a value for; methods that nothing was published for are left out."""
    result = []
    for name in names(rows):
        own = [row for row in rows if name in row.comparisons and row.value is not None]
        other = statistics.residuals(replace(row, value=row.comparisons[name]) for row in own)
        if other.compared:
            sources = {row.source.value for row in own}
            own_name = sources.pop() if len(sources) == 1 else "own value"
            result.append(Method(name, own_name, other, statistics.residuals(own)))
    return result
