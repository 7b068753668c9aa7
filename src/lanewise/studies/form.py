"""The form of a study: its rows, fits, hypotheses, conclusions, charts and drawings as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lanewise.errors import Location
from lanewise.evidence.model import EvidenceMachine
from lanewise.results.plan import Copies, Service
from lanewise.results.traffic import MachineTraffic

FORMAT = 1


@dataclass(frozen=True, slots=True)
class SystemRef:
    """A system by its short name: a ready one or a file, with settings that hold for all rows; or a measured
    `machine`."""

    name: str
    system: str
    settings: Mapping[str, int]
    location: Location
    machine: EvidenceMachine | None = None


@dataclass(frozen=True, slots=True)
class RowForm:
    """One published number (or a row without one): where, what, how much; `derive` computes it from other rows."""

    table: str
    label: str
    system: str
    settings: Mapping[str, int]
    scenario: Copies | Service | MachineTraffic
    metric: str
    unit: str
    published: float | None
    extrapolated: bool
    role: str
    note: str
    derive: str
    group: str
    location: Location


@dataclass(frozen=True, slots=True)
class FitForm:
    """An unknown figure of a part that the study fits to its own rows."""

    part: str
    figure: str
    start: float
    low: float
    high: float
    unit: str
    note: str
    location: Location


@dataclass(frozen=True, slots=True)
class FigureForm:
    """A figure of a part replaced by `value` in SI, a word, or None, which removes it."""

    part: str
    figure: str
    value: float | str | None
    unit: str
    location: Location


@dataclass(frozen=True, slots=True)
class HypothesisForm:
    """Figures replaced and what is fitted then, with the claim tested."""

    name: str
    says: str
    figures: tuple[FigureForm, ...]
    fit: tuple[FitForm, ...]
    note: str
    location: Location


@dataclass(frozen=True, slots=True)
class ConclusionForm:
    """A statement, the expression that tests it, and the expression whose value is shown with it."""

    says: str
    test: str
    shows: str
    location: Location


@dataclass(frozen=True, slots=True)
class ChartForm:
    """A chart of the rows of `tables`: `x` along the axis, a pair of series for each value of `by`; both are a
    setting, 'label' or 'table'.

    A surface has a column for each value of `x`, a row for each of `by`, a panel for each table; `within` outlines the
    cells that are that share (0..1) or less below their row's largest value. `log` names the logarithmic axes of lines:
    'x', 'y', 'xy' or ''.
    """

    title: str
    kind: str
    tables: tuple[str, ...]
    x: str
    by: str
    x_label: str
    y_label: str
    note: str
    location: Location
    by_label: str = ""
    within: float | None = None
    log: str = ""


@dataclass(frozen=True, slots=True)
class DrawingForm:
    """A system drawn, with the loads of one scenario on its links if one is given; or a service shown under load."""

    title: str
    system: str
    settings: Mapping[str, int]
    scenario: Copies | Service | None
    caption: str
    location: Location


@dataclass(frozen=True, slots=True)
class StudyForm:
    """A study file: rows with published values, their systems, what is fitted, conclusions, charts and drawings."""

    name: str
    title: str
    source: str
    finding: str
    method: str
    systems: Mapping[str, SystemRef]
    rows: tuple[RowForm, ...]
    fit: tuple[FitForm, ...] = ()
    fit_tables: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    hypotheses: tuple[HypothesisForm, ...] = ()
    conclusions: tuple[ConclusionForm, ...] = ()
    charts: tuple[ChartForm, ...] = ()
    drawings: tuple[DrawingForm, ...] = ()
    services: tuple[DrawingForm, ...] = ()
    assumptions: tuple[str, ...] = ()
