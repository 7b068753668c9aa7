"""Reads what a study makes of its rows: fits, hypotheses, conclusions, charts and drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.catalog import KEYS, unit_of
from lanewise.errors import Contradiction, FormatError, unknown_name
from lanewise.studies.form import ChartForm, ConclusionForm, DrawingForm, FigureForm, FitForm, HypothesisForm
from lanewise.studies.language import check_expression
from lanewise.studies.node import Node, at
from lanewise.studies.scenarios import scenario, settings

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lanewise.studies.form import RowForm, StudyForm

_FIT = ("part", "figure", "start", "low", "high", "note")
_HYPOTHESIS = ("name", "says", "figures", "fit", "note")
_CONCLUSION = ("says", "test", "shows")
_CHART = ("title", "kind", "x", "x_label", "y_label", "table", "tables", "by", "note")
_DRAWING = ("title", "system", "set", "scenario", "caption")
_FIGURES = "figures: {l40s: {engine.h2d.gen4: 24 GB/s}}"


def fits(node: Node) -> tuple[FitForm, ...]:
    """The figures to fit; Contradiction if one stands twice."""
    made: list[FitForm] = []
    for entry in node.items():
        form = _fit(entry)
        if any((form.part, form.figure) == (other.part, other.figure) for other in made):
            raise Contradiction(f"{form.part} {form.figure} is fitted twice", place=entry.place, hint="keep one")
        made.append(form)
    return tuple(made)


def fitted_unit(figure: str) -> str:
    """The SI unit of a figure that can be fitted; UnknownName or FormatError otherwise."""
    unit = unit_of(figure)
    if unit is None:
        raise unknown_name("figure", figure, KEYS)
    if unit == "text":
        raise FormatError(f"'{figure}' is a word and cannot be fitted", hint="fit a figure that is a number")
    return unit


def _fit(entry: Node) -> FitForm:
    entry.fields(_FIT)
    part, figure = entry["part"].needed(), entry["figure"].needed()
    with at(entry["figure"].place):
        unit = fitted_unit(figure)
    start, low, high = (entry[key].quantity(unit, above=0) for key in ("start", "low", "high"))
    if not low <= start <= high:
        raise entry.error("a fit needs low <= start <= high", "widen the range around the start")
    return FitForm(part, figure, start, low, high, unit, entry["note"].line(), entry.place)


def check_fit(form: StudyForm, node: Node) -> None:
    """FormatError if the study fits to nothing, or to a row that has no relative residual."""
    if not form.fit:
        return
    used = [row for row in form.rows if row.table in form.fit_tables and row.published is not None and not row.derive]
    if not used:
        raise node.error("there is no published row to fit to", "name their tables: fit_tables: [...]")
    for row in used:
        check_target(row)


def check_target(row: RowForm) -> None:
    """FormatError if a row cannot be used in a fit, which compares values relative to what was published."""
    if not row.published and not row.extrapolated:
        cause = f"'{row.label}' is published as 0 and cannot be used in a relative fit"
        raise FormatError(cause, place=row.place, hint="write null, or take the table out of fit_tables")


def hypothesis(entry: Node) -> HypothesisForm:
    """A rival explanation: figures replaced, then fitted."""
    entry.fields(_HYPOTHESIS)
    figures = [
        _figure(part, figure, node)
        for part, members in entry["figures"].members(_FIGURES).items()
        for figure, node in members.members(_FIGURES).items()
    ]
    return HypothesisForm(
        entry["name"].needed(), entry["says"].line(), tuple(figures), fits(entry["fit"]), entry["note"].line(),
        entry.place,
    )  # fmt: skip


def _figure(part: str, figure: str, node: Node) -> FigureForm:
    unit = unit_of(figure)
    if unit is None:
        raise unknown_name("figure", figure, KEYS, node.document.key_place(*node.path))
    value: float | str | None = None
    if node.given:
        value = node.needed() if unit == "text" else node.quantity(unit)
    return FigureForm(part, figure, value, unit, node.place)


def conclusion(entry: Node) -> ConclusionForm:
    """A statement with expressions that can be read; whether they can be computed shows when the study runs."""
    entry.fields(_CONCLUSION)
    says, test, shows = entry["says"].needed(), entry["test"].needed(), entry["shows"].text()
    for key, text in (("test", test), ("shows", shows)):
        if text:
            with at(entry[key].place):
                check_expression(text)
    return ConclusionForm(" ".join(says.split()), test, shows, entry.place)


def chart(entry: Node, rows: Sequence[RowForm]) -> ChartForm:
    """A chart of tables that the study has, over settings that their rows have."""
    entry.fields(_CHART)
    title = entry["title"].needed()
    if entry.has("table") == entry.has("tables"):
        raise entry.error("a chart has either 'table' or 'tables'", "add table: NAME")
    known = dict.fromkeys(row.table for row in rows)
    nodes = [entry["table"]] if entry.has("table") else entry["tables"].items("tables: [one, another]")
    tables = tuple(node.choice(known, "", "table") for node in nodes)
    axes = {"label", "table"}.union(*(row.settings for row in rows if row.table in tables))
    return ChartForm(
        title=title, kind=entry["kind"].choice(("line", "bar"), "line"), tables=tables,
        x=entry["x"].choice(axes, "label"), by=_axis(entry["by"], axes), x_label=entry["x_label"].line(),
        y_label=entry["y_label"].line(), note=entry["note"].line(), place=entry.place,
    )  # fmt: skip


def _axis(node: Node, known: Collection[str]) -> str:
    return node.choice(known, "label") if node.given else ""


def drawing(entry: Node, systems: Collection[str]) -> DrawingForm:
    """A system of the study, and what runs on it."""
    entry.fields(_DRAWING)
    entry["system"].needed()
    return DrawingForm(
        title=entry["title"].line(), system=entry["system"].choice(systems, "", "system of this study"),
        settings=settings(entry["set"]), caption=entry["caption"].line(), place=entry.place,
        scenario=scenario(entry["scenario"]) if entry.has("scenario") else None,
    )  # fmt: skip


def service(entry: Node, systems: Collection[str]) -> DrawingForm:
    """A system of the study with a service to show under load; FormatError if its scenario is none."""
    found = drawing(entry, systems)
    if found.scenario is None or not found.scenario.service:
        raise entry.error("a service under load needs one to ask for", "for example scenario: {service: resnet50}")
    return found
