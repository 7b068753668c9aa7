"""Samples: what a probe yields while it measures, one value at a time, and the observations they make up.

A run file, the file of samples and what an interrupted measurement keeps all derive from the same stream.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lanewise import units
from lanewise.results.match import group
from lanewise.results.observation import Observation, Source


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured value of one metric of one flow, in SI, of a run of its own; runs may still drift together.

    `display_unit` (GB/s, us) is the unit that text shows it in.

    `settings` are the numbers that tell cells of one scenario apart (bytes, threads), `how` the words that say how the
    value was obtained (engine, method, NUMA node, link under load). `value` None: not measured, and `note` says why.
    `path` is the kind of path (host to device, peer NVL, storage), as in Observation.
    """

    scenario: str
    flow: str
    metric: str
    value: float | None
    display_unit: str
    settings: Mapping[str, int] = field(default_factory=dict)
    how: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    note: str = ""

    @property
    def unit(self) -> str:
        """The SI unit of the value: B/s, s, 1/s, B, or 1 for a ratio."""
        return units.si_unit(self.display_unit)

    def as_record(self) -> dict[str, Any]:
        """The sample as one flat-keyed record of a long-format file, with the SI unit of its value."""
        return {**asdict(self), "unit": self.unit}


def summarise(samples: Iterable[Sample], system: str = "") -> tuple[Observation, ...]:
    """One measured observation for the samples of one identity, in the order in which identities first appear.

    The value is the median, `low` and `high` the smallest and largest sample; `how` is what the last sample with a
    value says. A sample without value adds its reason to the note.
    """
    return tuple(_observe(members, system) for members in group(samples).values())


def _observe(samples: list[Sample], system: str) -> Observation:
    last = next((sample for sample in reversed(samples) if sample.value is not None), samples[-1])
    values = tuple(sample.value for sample in samples if sample.value is not None)
    notes = dict.fromkeys(sample.note for sample in samples if sample.note)
    return Observation(
        last.scenario, last.flow, last.metric, statistics.median(values) if values else None, last.display_unit,
        Source.MEASURED, system=system, settings=dict(last.settings), path=last.path, how=dict(last.how),
        low=min(values, default=None), high=max(values, default=None), samples=values, note="; ".join(notes),
    )  # fmt: skip
