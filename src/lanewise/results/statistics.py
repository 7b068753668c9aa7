"""How far predictions and measurements are from published values: residuals, over all rows and by group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lanewise.results.observation import Basis, Observation, Source
from lanewise.results.run import Run, StudyRun

CLOSE_PCT, FAR_PCT = 5.0, 10.0


@dataclass(frozen=True, slots=True)
class Residuals:
    """Residuals in %: `rows` were looked at, `compared` are predictions with both values; the rest is None if none has.

    Rows whose published value went in, or that repeat others, are counted in `rows` alone.

    `worst_pct` keeps its sign, `mean_pct` is the bias, `close` and `far` count |residual| <= 5 % and > 10 %.
    """

    rows: int
    compared: int
    rms_pct: float | None = None
    worst_pct: float | None = None
    mean_pct: float | None = None
    close: int = 0
    far: int = 0
    worst: Observation | None = None


def rms(values: Iterable[float]) -> float | None:
    """Root of the mean square, None if there are no values."""
    numbers = list(values)
    return math.hypot(*numbers) / math.sqrt(len(numbers)) if numbers else None


def residuals(rows: Iterable[Observation]) -> Residuals:
    """The residuals of all rows that are not themselves the published value."""
    own = [row for row in rows if row.source is not Source.PUBLISHED]
    pairs = [(row.residual_pct, row) for row in own if row.role == "prediction"]
    compared = [(value, row) for value, row in pairs if value is not None and math.isfinite(value)]
    if not compared:
        return Residuals(len(own), 0)
    values = [value for value, _ in compared]
    worst, row = max(compared, key=lambda pair: abs(pair[0]))
    return Residuals(
        rows=len(own),
        compared=len(compared),
        rms_pct=rms(values),
        worst_pct=worst,
        mean_pct=math.fsum(values) / len(values),
        close=sum(abs(value) <= CLOSE_PCT for value in values),
        far=sum(abs(value) > FAR_PCT for value in values),
        worst=row,
    )


def against_measured(rows: Iterable[Observation]) -> Residuals:
    """The residuals of rows with a measured value, relative to that instead of the published one.

    Rows whose published value went in count here, as the measured one did not; rows that repeat others do not.
    """
    return residuals(
        replace(row, published=row.measured.value, role="repeat" if row.role == "repeat" else "prediction")
        for row in rows
        if row.measured is not None
    )


@dataclass(frozen=True, slots=True)
class MethodResiduals:
    """Residuals of a further method, and `own`, those of the rows' own values, called `own_name`, on the same rows."""

    name: str
    own_name: str
    residuals: Residuals
    own: Residuals


def further_methods(rows: Iterable[Observation]) -> list[str]:
    """The names of the further methods of rows, in the order they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row.comparisons))


def by_method(rows: Sequence[Observation]) -> list[MethodResiduals]:
    """Each further method on the rows that it has a value for; methods that nothing was published for are left out."""
    methods = []
    for name in further_methods(rows):
        own = [row for row in rows if name in row.comparisons and row.value is not None]
        further = residuals(replace(row, value=row.comparisons[name]) for row in own)
        sources = {row.source.value for row in own}
        if further.compared:
            own_name = sources.pop() if len(sources) == 1 else "own value"
            methods.append(MethodResiduals(name, own_name, further, residuals(own)))
    return methods


def by(rows: Iterable[Observation], key: Callable[[Observation], str]) -> dict[str, Residuals]:
    """Residuals by group, groups in the order they first appear."""
    groups: dict[str, list[Observation]] = {}
    for row in rows:
        if row.source is not Source.PUBLISHED:
            groups.setdefault(key(row), []).append(row)
    return {name: residuals(group) for name, group in groups.items()}


def by_basis(rows: Iterable[Observation]) -> dict[str, Residuals]:
    """Residuals by basis, strongest first, or by source where a row has none."""
    groups = by(rows, lambda row: row.basis.value if row.basis else row.source.value)
    order = tuple(Basis)
    return {name: groups[name] for name in [*(n for n in order if n in groups), *(n for n in groups if n not in order)]}


def by_path(rows: Iterable[Observation]) -> dict[str, Residuals]:
    """Residuals by kind of path, of rows that have one."""
    return by([row for row in rows if row.path], lambda row: row.path)


def by_limit(rows: Iterable[Observation]) -> dict[str, Residuals]:
    """Residuals by what holds the value down; 'not stated' where a row names no limit."""
    return by(rows, lambda row: row.limit or "not stated")


def overall(run: Run) -> Residuals:
    """Residuals of all rows of a run."""
    return residuals(row for study in run.studies for row in study.rows)


def verdicts(studies: Iterable[StudyRun]) -> tuple[int, int, int]:
    """How many conclusions hold, do not hold, and could not be evaluated."""
    results = [conclusion.holds for study in studies for conclusion in study.conclusions]
    return results.count(True), results.count(False), results.count(None)
