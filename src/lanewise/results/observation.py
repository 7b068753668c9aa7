"""What we saw: one type for published, predicted, measured and extrapolated values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Source(StrEnum):
    """Where a value comes from."""

    PUBLISHED = "published"
    PREDICTED = "predicted"
    MEASURED = "measured"
    EXTRAPOLATED = "extrapolated"


class Basis(StrEnum):
    """What a prediction rests on, weakest claim last."""

    PHYSICS = "physics"
    CALIBRATED = "calibrated"
    FITTED = "fitted"


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured value that a row is laid beside, in the row's unit, and which one of a measured run it is.

    `value` is the median, `low` and `high` the smallest and largest of `samples` samples; 0: the tool gave one value.
    """

    value: float
    which: str
    low: float | None = None
    high: float | None = None
    samples: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """One value of one metric of one flow in one scenario, in `unit` (GB/s, us, QPS, %).

    `limit` names what holds the value down, `rests_on` the figures and sources it comes from, `low` and `high`
    the interval where a prediction is one, `use` the use (0..1) of each shared resource, `published` the value it is
    laid beside, `path` the kind of path (host to device, peer PIX, staged). `value` None means unknown, and `note`
    says why. `role` is prediction; or input, where the published value itself went in; or repeat, where the row says
    in another unit or as a ratio what other rows say already. Only predictions count in summaries of residuals.
    `beside` holds the same metric by other methods, in the same unit: {'steady state': 24.9}. `how` says how a measured
    value was obtained: {'engine': 'copy engine', 'NUMA node': '0', 'link under load': 'Gen5 x16'}; its `low` and `high`
    are the smallest and largest of its `samples`, the value their median. `measured` is what was measured where the row
    predicts.
    """

    scenario: str
    flow: str
    metric: str
    value: float | None
    unit: str
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
    beside: Mapping[str, float] = field(default_factory=dict)
    how: Mapping[str, str] = field(default_factory=dict)
    measured: Measured | None = None

    @property
    def residual_pct(self) -> float | None:
        """100 * (value - published) / published, None where either is missing or published is zero."""
        return _residual_pct(self.value, self.published)

    @property
    def measured_residual_pct(self) -> float | None:
        """100 * (value - measured) / measured, None where either is missing or measured is zero."""
        return _residual_pct(self.value, self.measured.value) if self.measured else None

    @property
    def beside_residuals_pct(self) -> dict[str, float | None]:
        """The residual in % of each value in `beside`, by method, as `residual_pct` is of the row's own."""
        return {method: _residual_pct(value, self.published) for method, value in self.beside.items()}


def _residual_pct(value: float | None, reference: float | None) -> float | None:
    if value is None or not reference:
        return None
    return 100.0 * (value - reference) / reference
