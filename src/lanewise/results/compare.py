"""Two sets of observations side by side: two runs, two sources of one run, or two systems.

A service under load takes part as rows: its largest valid rate, what it answered, and its latency.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.errors import FormatError
from lanewise.results.observation import Basis, Observation, Source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lanewise.results.loaded import Loaded
    from lanewise.results.run import Run

Key = tuple[str, ...]
_PARTS = ("study", "system", "table", "scenario", "flow", "metric")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two observations of the same thing; values are in `unit`, the left one's, None where unknown."""

    left: Observation
    right: Observation
    unit: str
    left_value: float | None
    right_value: float | None
    note: str = ""

    @property
    def difference_pct(self) -> float | None:
        """100 * (right - left) / left; None where either is unknown or left is zero."""
        if self.right_value is None or not self.left_value:
            return None
        return 100.0 * (self.right_value - self.left_value) / self.left_value


@dataclass(frozen=True, slots=True)
class Comparison:
    """What matches, in the order of the left side, and what stands on one side only."""

    left_name: str
    right_name: str
    pairs: tuple[Pair, ...]
    only_left: tuple[Observation, ...]
    only_right: tuple[Observation, ...]


def compare(
    left: Iterable[Observation],
    right: Iterable[Observation],
    names: tuple[str, str] = ("left", "right"),
    ignore: frozenset[str] = frozenset(),
) -> Comparison:
    """Match rows by study, system, table, scenario, flow, metric and settings, less those named in `ignore`.

    Rows that share a key are matched in order, so repeated rows stay distinct.
    """
    waiting: dict[Key, list[Observation]] = defaultdict(list)
    right = tuple(right)
    for row in right:
        waiting[_key(row, ignore)].append(row)
    for rows in waiting.values():
        rows.reverse()
    pairs, alone = [], []
    for row in left:
        found = waiting[_key(row, ignore)]
        if found:
            pairs.append(_pair(row, found.pop()))
        else:
            alone.append(row)
    over = {id(row) for rows in waiting.values() for row in rows}
    return Comparison(names[0], names[1], tuple(pairs), tuple(alone), tuple(r for r in right if id(r) in over))


def compare_runs(left: Run, right: Run, names: tuple[str, str] = ("left", "right")) -> Comparison:
    """Two runs laid side by side; only rows of one source are matched with each other."""
    sources = [source for source in Source if source is not Source.PUBLISHED]
    parts = [compare(rows_of(left, source), rows_of(right, source), names) for source in sources]
    return _joined(names, parts)


def compare_sources(run: Run, left: Source = Source.PUBLISHED, right: Source = Source.PREDICTED) -> Comparison:
    """Two sources of one run laid side by side."""
    return compare(rows_of(run, left), rows_of(run, right), (left.value, right.value))


def compare_systems(run: Run, left: str, right: str, source: Source = Source.PREDICTED) -> Comparison:
    """The same scenarios on two systems of one run, laid side by side."""
    rows = rows_of(run, source)
    one, other = ([row for row in rows if row.system == name] for name in (left, right))
    return compare(one, other, (left, right), frozenset({"system"}))


def rows_of(run: Run, source: Source) -> tuple[Observation, ...]:
    """The rows of one source and those of its services; published values beside a prediction become rows too."""
    rows = [row for study in run.studies for row in study.rows]
    rows += [row for study in run.studies for one in study.services for row in service_rows(one, study.name)]
    rows += [row for one in run.services for row in service_rows(one)]
    found = [row for row in rows if row.source is source]
    if source is Source.PUBLISHED:
        seen = {_key(row, frozenset()) for row in found}
        for row in rows:
            key = _key(row, frozenset())
            if row.published is not None and key not in seen:
                seen.add(key)
                found.append(_published(row))
    return tuple(found)


def service_rows(loaded: Loaded, study: str = "") -> tuple[Observation, ...]:
    """What two runs compare of a service: largest valid rate if it was searched, rate answered, latency."""
    latency = f"p{round(100 * loaded.percentile, 6):g} latency"
    found: list[tuple[str, float, str, float | None, float | None]] = [
        ("answered rate", loaded.answered, "QPS", None, None),
        (latency, 1e3 * loaded.latency, "ms", None, None),
    ]
    if loaded.peak is not None:
        low, high = loaded.peak
        found.insert(0, ("largest valid rate", (low + high) / 2, "QPS", low, high))
    basis = next((one for one in Basis if one.value == loaded.basis), None)
    return tuple(
        Observation(
            loaded.name, loaded.workload, metric, value, unit, loaded.source, study=study, system=loaded.system,
            table="services", settings=loaded.settings, basis=basis, limit=loaded.limit, rests_on=loaded.rests_on,
            low=low, high=high,
        )
        for metric, value, unit, low, high in found
    )  # fmt: skip


def _published(row: Observation) -> Observation:
    return replace(
        row, value=row.published, source=Source.PUBLISHED, published=None, basis=None, limit="", rests_on=(),
        low=None, high=None, use={}, samples=(), note="", beside={},
    )  # fmt: skip


def _key(row: Observation, ignore: frozenset[str]) -> Key:
    names = (str(getattr(row, part)) for part in _PARTS if part not in ignore)
    settings = () if "settings" in ignore else tuple(f"{k}={v}" for k, v in sorted(row.settings.items()))
    return (*names, *settings)


def _pair(left: Observation, right: Observation) -> Pair:
    value, note = right.value, ""
    if value is not None and right.unit != left.unit:
        try:
            same = units.dimension(left.unit) == units.dimension(right.unit)
        except FormatError:
            same = False
        value = units.from_si(units.to_si(value, right.unit), left.unit) if same else None
        note = "" if same else f"not comparable: {left.unit} and {right.unit}"
    return Pair(left, right, left.unit, left.value, value, note)


def _joined(names: tuple[str, str], parts: list[Comparison]) -> Comparison:
    return Comparison(
        names[0],
        names[1],
        tuple(pair for part in parts for pair in part.pairs),
        tuple(row for part in parts for row in part.only_left),
        tuple(row for part in parts for row in part.only_right),
    )


__all__ = [
    "Comparison", "Pair", "compare", "compare_runs", "compare_sources", "compare_systems", "rows_of", "service_rows",
]  # fmt: skip
