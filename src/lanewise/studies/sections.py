"""Reads the sections of a study other than its tables: scenarios, fits, hypotheses, conclusions, charts, drawings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from lanewise import units
from lanewise.catalog import KEYS, unit_of
from lanewise.errors import Contradiction, FormatError, error_location, unknown_name
from lanewise.expressions import STATEMENTS, check_expression
from lanewise.perf.flow import parse_flows
from lanewise.results.plan import METHODS, STEADY, Copies, Service
from lanewise.studies.form import (
    ChartForm,
    ConclusionForm,
    DrawingForm,
    FigureForm,
    FitForm,
    HypothesisForm,
    RowForm,
    StudyForm,
)
from lanewise.yaml_positions import YamlNode

_FIT = ("part", "figure", "start", "low", "high", "note")
_HYPOTHESIS = ("name", "says", "figures", "fit", "note")
_CONCLUSION = ("says", "test", "shows")
_CHART = ("title", "kind", "x", "x_label", "y_label", "table", "tables", "by", "note", "by_label", "within", "log")
_SURFACE_ONLY = ("by_label", "within")
_MOST_CELLS = 40  # in a row or a column of a surface, so that the numbers in them can be read
_DRAWING = ("title", "system", "set", "scenario", "caption")
_SCENARIO = ("flows", "demand", "p2p", "service", "mode", "division", "host", "method")
_FIGURES = "figures: {l40s: {engine.h2d.gen4: 24 GB/s}}"


def fits(node: YamlNode) -> tuple[FitForm, ...]:
    """The figures to fit; Contradiction if one is given twice."""
    forms: dict[tuple[str, str], FitForm] = {}
    for entry in node.items():
        form = _fit(entry)
        if forms.setdefault((form.part, form.figure), form) is not form:
            raise Contradiction(f"{form.part} {form.figure} is fitted twice", location=entry.location, hint="keep one")
    return tuple(forms.values())


def fitted_unit(figure: str) -> str:
    """The SI unit of a figure that can be fitted; UnknownName or FormatError otherwise."""
    unit = unit_of(figure)
    if unit is None:
        raise unknown_name("figure", figure, KEYS)
    if unit == "text":
        raise FormatError(f"'{figure}' is a word and cannot be fitted", hint="fit a figure that is a number")
    return unit


def _fit(entry: YamlNode) -> FitForm:
    entry.check_fields(_FIT)
    part, figure = entry["part"].needed(), entry["figure"].needed()
    with error_location(entry["figure"].location):
        unit = fitted_unit(figure)
    start, low, high = (entry[key].quantity(unit, above=0) for key in ("start", "low", "high"))
    if not low <= start <= high:
        raise entry.error("a fit needs low <= start <= high", "widen the range around the start")
    return FitForm(part, figure, start, low, high, unit, entry["note"].line(), entry.location)


def check_fit(form: StudyForm, node: YamlNode) -> None:
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
        raise FormatError(cause, location=row.location, hint="write null, or take the table out of fit_tables")


def hypothesis(entry: YamlNode) -> HypothesisForm:
    """A rival hypothesis: figures replaced, then fitted."""
    entry.check_fields(_HYPOTHESIS)
    figures = [
        _figure(part, figure, node)
        for part, members in entry["figures"].members(_FIGURES).items()
        for figure, node in members.members(_FIGURES).items()
    ]
    return HypothesisForm(
        entry["name"].needed(), entry["says"].line(), tuple(figures), fits(entry["fit"]), entry["note"].line(),
        entry.location,
    )  # fmt: skip


def _figure(part: str, figure: str, node: YamlNode) -> FigureForm:
    unit = unit_of(figure)
    if unit is None:
        raise unknown_name("figure", figure, KEYS, node.key_location)
    value: float | str | None = None
    if node.given:
        value = node.needed() if unit == "text" else node.quantity(unit)
    return FigureForm(part, figure, value, unit, node.location)


def conclusion(entry: YamlNode) -> ConclusionForm:
    """A statement with expressions that can be read; whether they can be computed shows when the study runs."""
    entry.check_fields(_CONCLUSION)
    says, test, shows = entry["says"].needed(), entry["test"].needed(), entry["shows"].text()
    for key, text in (("test", test), ("shows", shows)):
        if text:
            with error_location(entry[key].location):
                check_expression(text, STATEMENTS)
    return ConclusionForm(" ".join(says.split()), test, shows, entry.location)


def chart(entry: YamlNode, rows: Sequence[RowForm]) -> ChartForm:
    """A chart of tables that the study has, over settings that their rows have."""
    entry.check_fields(_CHART)
    title = entry["title"].needed()
    if entry["table"].given == entry["tables"].given:
        raise entry.error("a chart has either 'table' or 'tables'", "add table: NAME")
    names = dict.fromkeys(row.table for row in rows)
    nodes = [entry["table"]] if entry["table"].given else entry["tables"].items("tables: [one, another]")
    tables = tuple(node.choice(names, "", "table") for node in nodes)
    axes = {"label", "table"}.union(*(row.settings for row in rows if row.table in tables))
    form = ChartForm(
        title=title, kind=entry["kind"].choice(("line", "bar", "surface"), "line"), tables=tables,
        x=entry["x"].choice(axes, "label"), by=_axis(entry["by"], axes), x_label=entry["x_label"].line(),
        y_label=entry["y_label"].line(), note=entry["note"].line(), location=entry.location,
        log=entry["log"].choice(("", "x", "y", "xy")),
    )  # fmt: skip
    if form.log and form.kind != "line":
        raise entry["log"].error(f"a {form.kind} chart has no 'log'", "write kind: line, or leave it out")
    if form.kind == "surface":
        return _surface(entry, form, [row for row in rows if row.table in tables])
    for key in _SURFACE_ONLY:
        if entry[key].given:
            raise entry[key].error(f"a {form.kind} chart has no '{key}'", "write kind: surface, or leave it out")
    return form


def _surface(entry: YamlNode, form: ChartForm, rows: Sequence[RowForm]) -> ChartForm:
    """A surface: each cell is one row of the study, all in one unit."""
    x, by = form.x, form.by
    if not by or by == x:
        settings_of_rows = sorted({name for row in rows for name in row.settings} - {x})
        cause = "a surface needs 'by', which makes its rows" if not by else f"'x' and 'by' are both '{x}'"
        raise entry["by"].error(cause, f"for example by: {[*settings_of_rows, 'label'][0]}")
    row_units = list(dict.fromkeys(row.unit for row in rows))
    if len(row_units) > 1:
        cause = f"a surface has one scale, but its rows are in {' and '.join(row_units)}"
        raise entry.error(cause, "make one chart for each unit")
    cells: dict[tuple[str, object, object], RowForm] = {}
    for row in rows:
        key = (row.table, _cell(entry["x"], row, x), _cell(entry["by"], row, by))
        first = cells.setdefault(key, row)
        if first is not row:
            cause = f"'{first.label}' and '{row.label}' of table '{row.table}' fall into one cell"
            raise entry.error(cause, "choose x and by so that each row has a cell of its own")
    for axis, index in ((x, 1), (by, 2)):
        if len({key[index] for key in cells}) > _MOST_CELLS:
            raise entry.error(f"a surface takes {_MOST_CELLS} values of '{axis}' at most", "chart fewer rows, or lines")
    return replace(form, by_label=entry["by_label"].line(), within=_within(entry["within"], row_units))


def _cell(node: YamlNode, row: RowForm, axis: str) -> object:
    """The value of a row on an axis."""
    if axis == "label":
        return row.label
    if axis == "table":
        return row.table
    if axis not in row.settings:
        raise node.error(f"'{row.label}' of table '{row.table}' has no '{axis}'", "name a setting that all rows have")
    return row.settings[axis]


def _within(node: YamlNode, row_units: Sequence[str]) -> float | None:
    share = node.number()
    if share is None:
        return None
    if not 0 <= share < 1:
        raise node.error(f"'within' must be a share from 0 to below 1, not {share:g}", "such as 0.05 for 5 %")
    if row_units and units.dimension(row_units[0]) == "s":
        raise node.error("'within' outlines the largest values, but of times the smallest are best", "leave it out")
    return share


def _axis(node: YamlNode, axes: Collection[str]) -> str:
    return node.choice(axes, "label") if node.given else ""


def drawing(entry: YamlNode, systems: Collection[str]) -> DrawingForm:
    """A system of the study, and what runs on it."""
    entry.check_fields(_DRAWING)
    entry["system"].needed()
    title = entry["title"].line()
    return DrawingForm(
        title=title, system=entry["system"].choice(systems, "", "system of this study"),
        settings=settings(entry["set"]), caption=entry["caption"].line(), location=entry.location,
        scenario=scenario(entry["scenario"], title) if entry["scenario"].given else None,
    )  # fmt: skip


def service(entry: YamlNode, systems: Collection[str]) -> DrawingForm:
    """A system of the study with a service under load; FormatError if its scenario is no service."""
    form = drawing(entry, systems)
    if not isinstance(form.scenario, Service):
        raise entry.error("the scenario names no service", "for example scenario: {service: resnet50}")
    return form


def scenario(node: YamlNode, name: str) -> Copies | Service:
    """Flows, with a `demand` shared evenly if given, or a service; FormatError if it is neither."""
    if not node.given:
        raise node.error("there is no scenario to ask for", "for example scenario: {flows: gpu0->gpu1}")
    node.check_fields(_SCENARIO)
    if node["flows"].given == node["service"].given:
        raise node.error("a scenario is either 'flows' or a 'service'", "for example flows: gpu0->gpu1")
    for key in ("mode", "division", "host", "method") if node["flows"].given else ("demand", "p2p"):
        if node[key].given:
            raise node[key].error(f"'{key}' says nothing about {'flows' if node['flows'].given else 'a service'}")
    if node["service"].given:
        return Service(
            node["service"].needed(), mode=node["mode"].choice(("server", "offline"), "server"),
            division=node["division"].choice(("closed", "network"), "closed"),
            host=node["host"].needed() if node["host"].given else None, name=name,
            method=node["method"].choice(METHODS, STEADY),
        )  # fmt: skip
    p2p = node["p2p"].flag(True)
    with error_location(node["flows"].location):
        flows = parse_flows(node["flows"].needed(), p2p)
    if node["demand"].given:
        share = node["demand"].quantity("B/s", above=0) / len(flows)
        flows = tuple(
            replace(flow, cap=share, cap_name="the work itself", cap_rests_on="the published data rate")
            for flow in flows
        )
    return Copies(flows, name)


def settings(node: YamlNode) -> dict[str, int]:
    """Parameters of a system; FormatError unless each is a whole number."""
    return {name: value.integer() for name, value in node.members("set: {path: 4}").items()}
