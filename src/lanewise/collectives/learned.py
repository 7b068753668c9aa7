"""Figures that were learned from measured collectives (data/collectives/learned.yaml), by class and by machine.

The figure of a class is the median of its machines; those named in `without` do not count, so that a machine can be
predicted from the others alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from lanewise import package_data
from lanewise.yaml_loader import load


@dataclass(frozen=True, slots=True)
class LearnedFigure:
    """A number with the machines that it is the median of, from the least to the most of them, or of no machine."""

    value: float
    low: float
    high: float
    rests_on: str
    measured: bool = True


def learned(key: str, classes: Collection[str], without: Collection[str] = ()) -> LearnedFigure:
    """The figure `key` of the first of `classes` that a machine was measured for, else the file's `otherwise`."""
    entry = _data()[key]
    for name in classes:
        values = [value for machine, value in entry["classes"].get(name, {}).items() if machine not in without]
        if values:
            machines = [machine for machine in entry["classes"][name] if machine not in without]
            rests_on = f"{entry['title']}, {name}: median of {', '.join(machines)}"
            return LearnedFigure(statistics.median(values), min(values), max(values), rests_on)
    value = float(entry["otherwise"])
    return LearnedFigure(value, value, value, f"{entry['title']}: {entry['otherwise_source']}", measured=False)


def classes_of(key: str) -> Mapping[str, Mapping[str, float]]:
    """Every class of a figure with its value by machine."""
    values: Mapping[str, Mapping[str, float]] = _data()[key]["classes"]
    return values


@cache
def _data() -> Mapping[str, Any]:
    values: Mapping[str, Any] = load(*package_data.text("collectives", "learned", "file of figures")).root.value
    return values
