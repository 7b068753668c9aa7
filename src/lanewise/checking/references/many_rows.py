"""Of many like rows the few that others are compared with, so that the work does not grow with their square."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from lanewise.results.observation import Observation

# Of rows that differ in their values alone: dd may have run 20,000 times.
_MOST_ALIKE = 16


def fastest(rows: Sequence[Observation]) -> list[Observation]:
    """The rows that others are compared with: of many that differ in their values alone the fastest."""
    return [row for group in _of_one_name(rows) for row in group[:_MOST_ALIKE]]


def evenly_sampled(rows: Sequence[Observation]) -> list[Observation]:
    """The rows that a median is taken of: of many that differ in their values alone some, evenly over the values."""
    return [row for group in _of_one_name(rows) for row in group[:: math.ceil(len(group) / _MOST_ALIKE)]]


def evenly(rows: list[Observation], most: int) -> list[Observation]:
    """At most so many rows, evenly over their values: their median is that of all."""
    if len(rows) <= most:
        return rows
    return sorted(rows, key=lambda row: row.value or 0.0)[:: math.ceil(len(rows) / most)]


def _of_one_name(rows: Sequence[Observation]) -> Iterator[list[Observation]]:
    """The rows in groups that differ in their values alone, each group in the order of its values."""
    groups: dict[tuple[object, ...], list[Observation]] = defaultdict(list)
    for row in rows:
        key = row.scenario, row.flow, row.metric, row.path, row.note, *sorted(row.settings.items()), *row.how.items()
        groups[key].append(row)
    for group in groups.values():
        yield sorted(group, key=lambda each: each.value or 0.0, reverse=True) if len(group) > _MOST_ALIKE else group
