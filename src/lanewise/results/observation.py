"""What we saw: one type for published, predicted, measured and extrapolated values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lanewise import units


class Source(StrEnum):
    """Where a value comes from."""

    PUBLISHED = "published"
    PREDICTED = "predicted"
    MEASURED = "measured"
    EXTRAPOLATED = "extrapolated"


class Basis(StrEnum):
    """What a prediction is based on, weakest claim last."""

    PHYSICS = "physics"
    CALIBRATED = "calibrated"
    TYPICAL = "typical"
    PLANNING = "planning"
    FITTED = "fitted"


@dataclass(frozen=True, slots=True)
class Observation:
    """One value of one metric of one flow in one scenario, in SI: B/s, s, 1/s, B or a ratio, named by `unit`.

    `display_unit` (GB/s, us, QPS, %) is that of the table or tool the value comes from, for text alone.
    `limit` names what holds the value down, `rests_on` the figures and sources it comes from, `low` and `high`
    the interval where a prediction is one, `use` the use (0..1) of each shared resource, `published` the value it is
    compared with, `path` the kind of path (host to device, peer PIX, staged). `value` None means unknown, and `note`
    says why. `role` is prediction; or input, where the published value itself went in; or repeat, where the row says
    in another unit or as a ratio what other rows say already. Only predictions count in summaries of residuals.
    `comparisons` holds the same metric by other methods: {'steady state': 24.9e9}. `how` says how a measured
    value was obtained: {'engine': 'copy engine', 'NUMA node': '0', 'link under load': 'Gen5 x16'}; its `low` and `high`
    are the smallest and largest of its `samples`, the value their median. `measured` is the measured row that a
    predicted one is compared with; its note names the run.
    """

    scenario: str
    flow: str
    metric: str
    value: float | None
    display_unit: str
    source: Source
    study: str = ""
    system: str = ""
    table: str = ""
    settings: Mapping[str, int] = field(default_factory=dict)
    basis: Basis | None = None
    limit: str = ""
    rests_on: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    use: Mapping[str, float] = field(default_factory=dict)
    published: float | None = None
    extrapolated: bool = False
    role: str = "prediction"
    path: str = ""
    note: str = ""
    samples: tuple[float, ...] = ()
    comparisons: Mapping[str, float] = field(default_factory=dict)
    how: Mapping[str, str] = field(default_factory=dict)
    measured: Observation | None = None

    @property
    def unit(self) -> str:
        """The SI unit of every value of the row: B/s, s, 1/s, B, or 1 for a ratio."""
        return units.si_unit(self.display_unit)

    def display(self, value: float | None) -> float | None:
        """One of the row's values as a number in its display unit, for text."""
        return None if value is None else units.in_unit(value, self.display_unit)

    @property
    def residual_pct(self) -> float | None:
        """100 * (value - published) / published, None where either is missing or published is zero."""
        return _residual_pct(self.value, self.published)

    @property
    def measured_residual_pct(self) -> float | None:
        """100 * (value - measured) / measured, None where either is missing or measured is zero."""
        return _residual_pct(self.value, self.measured.value) if self.measured else None

    @property
    def comparison_residuals_pct(self) -> dict[str, float | None]:
        """The residual in % of each value in `comparisons`, by method, as `residual_pct` is of the row's own."""
        return {method: _residual_pct(value, self.published) for method, value in self.comparisons.items()}


def _residual_pct(value: float | None, reference: float | None) -> float | None:
    if value is None or not reference:
        return None
    return 100.0 * (value - reference) / reference
