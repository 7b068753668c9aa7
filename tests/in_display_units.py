"""Rows written and read in the units that people state them in, so that tests say 55.4 GB/s and not 55400000000.0."""

from __future__ import annotations

from typing import Any

from lanewise import units
from lanewise.results.observation import Observation, Source
from lanewise.results.run_1 import row_2
from lanewise.results.sample import Sample


def observation(
    scenario: str, flow: str, metric: str, value: float | None, unit: str, source: Source, **more: Any
) -> Observation:
    """An observation whose values are given in `unit`."""
    names = ("low", "high", "published", "samples", "comparisons")
    given = {"unit": unit, "value": value, "beside": more.get("comparisons", {})}
    given |= {name: list(more[name]) if name == "samples" else more[name] for name in names[:4] if name in more}
    si = row_2(given)
    more = {**more, **{name: si[name] for name in names if name in more}}
    if "samples" in more:
        more["samples"] = tuple(more["samples"])
    return Observation(scenario, flow, metric, si["value"], unit, source, **more)


def sample(scenario: str, flow: str, metric: str, value: float | None, unit: str, *more: Any, **named: Any) -> Sample:
    """A sample whose value is given in `unit`."""
    return Sample(scenario, flow, metric, None if value is None else units.to_si(value, unit), unit, *more, **named)


def shown(row: Observation | Sample) -> float | None:
    """The value of a row in its display unit."""
    return None if row.value is None else units.in_unit(row.value, row.display_unit)
