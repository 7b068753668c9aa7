"""The form of a study file: what may be written, read from YAML with the line of every entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lanewise.errors import FormatError, InputError, LanewiseError, unknown_name
from lanewise.topology.marks import Document, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lanewise.errors import Place

FORMAT = 1


@dataclass(frozen=True, slots=True)
class SystemRef:
    """A system by its short name: a ready one or a file, with settings that hold for all rows."""

    name: str
    system: str
    settings: Mapping[str, int]
    place: Place


@dataclass(frozen=True, slots=True)
class ScenarioForm:
    """Either flows (with a common `demand` in B/s shared evenly, if given) or a service."""

    flows: str = ""
    demand: float | None = None
    p2p: bool = True
    service: str = ""
    mode: str = "server"
    division: str = "closed"
    host: str | None = None


@dataclass(frozen=True, slots=True)
class RowForm:
    """One published number (or a row without one): where, what, how much; `derive` computes it from other rows."""

    table: str
    label: str
    system: str
    settings: Mapping[str, int]
    scenario: ScenarioForm
    metric: str
    unit: str
    published: float | None
    extrapolated: bool
    note: str
    derive: str
    group: str
    place: Place


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
    place: Place


@dataclass(frozen=True, slots=True)
class HypothesisForm:
    """Figures replaced (part -> key -> SI value, None removes it) and what is fitted then, with the claim tested."""

    name: str
    says: str
    figures: Mapping[str, Mapping[str, Any]]
    fit: tuple[FitForm, ...]
    note: str
    place: Place


@dataclass(frozen=True, slots=True)
class StudyForm:
    """A whole study file."""

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
    conclusions: tuple[Mapping[str, Any], ...] = ()
    charts: tuple[Mapping[str, Any], ...] = ()
    drawings: tuple[Mapping[str, Any], ...] = ()
    assumptions: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)


def read_study(text: str, file: str) -> StudyForm:
    """The study in `text`; FormatError, UnknownName or InputError with file, line, cause and hint."""
    from lanewise.studies.reading import Reader

    document = load(text, file)
    if not isinstance(document.data, dict) or not document.data:
        raise FormatError("empty study", place=document.place(), hint="start one with: lanewise study new NAME")
    return Reader(document).study()


def placed(error: LanewiseError, place: Place) -> LanewiseError:
    """The same error with a place, if it had none."""
    if error.place is None:
        error.place = place
    return error


__all__ = ["Document", "FormatError", "InputError", "StudyForm", "read_study", "unknown_name"]
