"""What a run holds (studies, services, measured rows): plain data to be saved, loaded, rendered and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lanewise.results.observation import Observation
from lanewise.results.outline import Outline
from lanewise.results.service_result import ServiceResult


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A statement tested on the rows: `holds` None means it could not be evaluated, `shown` the figures behind it."""

    says: str
    holds: bool | None
    shown: str = ""


@dataclass(frozen=True, slots=True)
class FittedValue:
    """A value fitted to observations: `key` is part and figure, `used` how many rows, `start` the first guess.

    `spread` is its relative error.
    """

    key: str
    value: float
    unit: str
    used: int
    start: float | None = None
    spread: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """An alternative explanation tried on the same rows, with the residual it leaves."""

    name: str
    says: str
    rms_pct: float | None
    worst_pct: float | None
    fitted: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The residuals, `rms_pct` and `worst_pct`, of rows that a fit did not see: `group` names what was left out."""

    group: str
    rows: int
    rms_pct: float
    worst_pct: float


@dataclass(frozen=True, slots=True)
class Series:
    """One line or set of bars of a chart; `source` is published, predicted or measured; a None y is a gap."""

    name: str
    source: str
    points: tuple[tuple[float | str, float | None], ...]
    extrapolated: tuple[bool, ...] = ()
    group: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of the source redrawn: `kind` is line, bar or surface; series of one `group` share a colour.

    In a surface each series is a row of cells and each group a panel; `y_label` is what its cells tell, `by_label` what
    its rows are, and `within` outlines the cells that are that share (0..1) or less below their row's largest value.
    `log` names the logarithmic axes of lines: 'x', 'y', 'xy' or ''.
    """

    title: str
    kind: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    note: str = ""
    by_label: str = ""
    within: float | None = None
    log: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A system drawn with the load of one scenario on its links."""

    title: str
    outline: Outline
    caption: str = ""


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One study's outcome: the finding in a sentence, rows, conclusions, fits, charts, drawings and services."""

    name: str
    title: str
    source: str
    finding: str
    rows: tuple[Observation, ...]
    conclusions: tuple[Conclusion, ...] = ()
    fitted: tuple[FittedValue, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    charts: tuple[Chart, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    assumptions: tuple[str, ...] = ()
    method: str = ""
    services: tuple[ServiceResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """All studies, services and measured rows of one command, with when, where and with which version it ran.

    `rows` belong to no study: measured ones, and what load tests predicted or extrapolated. `machine_facts` (`machine`
    in the file) are what the command ran on: kernel, CPU, driver, GPUs.
    """

    studies: tuple[StudyRun, ...]
    created: str
    version: str
    command: str = ""
    machine_facts: Mapping[str, str] = field(default_factory=dict, metadata={"key": "machine"})
    services: tuple[ServiceResult, ...] = ()
    rows: tuple[Observation, ...] = ()
