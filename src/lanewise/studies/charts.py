"""Charts and drawings of a study, as plain data that the report renders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lanewise.errors import error_location
from lanewise.perf.predict import Prediction, predict
from lanewise.results.observation import Observation
from lanewise.results.outline import outline
from lanewise.results.plan import Copies, Service
from lanewise.results.run import Chart, Drawing, Series
from lanewise.results.service_result import ServiceResult
from lanewise.serving.load import load_of
from lanewise.serving.peak import under_load
from lanewise.serving.steady import steady_rate
from lanewise.studies.context import StudyContext
from lanewise.studies.form import ChartForm, DrawingForm, StudyForm
from lanewise.studies.rows import ValueKind
from lanewise.topology.model import System


def charts(form: StudyForm, rows: Sequence[Observation]) -> tuple[Chart, ...]:
    """Every chart of the form: `x` is a setting or 'label', a series of each source for each value of `by`."""
    return tuple(_surface(entry, rows) if entry.kind == "surface" else _chart(entry, rows) for entry in form.charts)


def _surface(entry: ChartForm, rows: Sequence[Observation]) -> Chart:
    """A series for each row of cells, grouped by table unless the tables themselves are an axis."""
    x, by = entry.x, entry.by
    panels = [(table,) for table in entry.tables] if "table" not in (x, by) else [entry.tables]
    series: list[Series] = []
    for panel in panels:
        chosen = [row for row in rows if row.table in panel]
        for value in _sorted(_axis(row, by) for row in chosen):
            members = [row for row in chosen if _axis(row, by) == value]
            cells = {_axis(row, x): row.display(row.value) for row in members}
            points = tuple((place, cells[place]) for place in _sorted(cells))
            series.append(Series(str(value), "predicted", points, (), panel[0] if len(panels) > 1 else ""))
    names = (f"{row.metric} ({row.display_unit})" for row in rows if row.table in entry.tables)
    y_label = entry.y_label or next(names, "")
    return Chart(
        entry.title, entry.kind, entry.x_label or ("" if x == "label" else x), y_label, tuple(series), entry.note,
        entry.by_label or ("" if by == "label" else by), entry.within,
    )  # fmt: skip


def _sorted(values: Iterable[float | str]) -> list[float | str]:
    """Each value once: numbers ascending, then words in the order they come."""
    once = list(dict.fromkeys(values))
    return [*sorted(v for v in once if not isinstance(v, str)), *(v for v in once if isinstance(v, str))]


def _chart(entry: ChartForm, rows: Sequence[Observation]) -> Chart:
    chosen = [row for row in rows if row.table in entry.tables]
    x, by = entry.x, entry.by
    series: list[Series] = []
    for group in dict.fromkeys(_axis(row, by) for row in chosen) if by else [""]:
        members = [row for row in chosen if not by or _axis(row, by) == group]
        if "x" in entry.log:  # sizes: of several tables, or in the order of a source
            members.sort(key=lambda row: row.settings.get(x, 0))
        name = f"{group} {by}".strip() if by not in ("", "label", "table") else str(group)
        sources = ("predicted", "published", *(("measured",) if any(row.measured for row in chosen) else ()))
        series += [_series(members, x, name, name, kind) for kind in sources]
    y_label = entry.y_label or (f"{chosen[0].metric} ({chosen[0].display_unit})" if chosen else "")
    x_label = entry.x_label or ("" if x == "label" else x)
    return Chart(entry.title, entry.kind, x_label, y_label, tuple(series), entry.note, log=entry.log)


def _series(rows: Sequence[Observation], x: str, name: str, group: str, source: str) -> Series:
    pick = [ValueKind(source).of(row) for row in rows]
    points = tuple((_axis(row, x), value) for row, value in zip(rows, pick, strict=True))
    return Series(name, source, points, tuple(row.extrapolated for row in rows), group)


def _axis(row: Observation, name: str) -> float | str:
    if name in ("label", ""):
        return row.scenario
    if name == "table":
        return row.table
    return row.settings.get(name, row.scenario)


def drawings(context: StudyContext) -> tuple[Drawing, ...]:
    """Every drawing of the form: a system with the loads of one scenario; LanewiseError with its place."""
    result = []
    for entry in context.form.drawings:
        with error_location(entry.location):
            result.append(_drawing(context, entry))
    return tuple(result)


def _drawing(context: StudyContext, entry: DrawingForm) -> Drawing:
    system = context.system(entry.system, entry.settings)
    title = entry.title or system.title or system.name
    if entry.scenario is None:
        return Drawing(title, outline(system), entry.caption)
    prediction = _prediction(system, entry.scenario)
    flows = prediction.rates if len(prediction.rates) <= 6 else ()
    routes = [(flow.flow.name, flow.routes[0].nodes) for flow in flows]
    return Drawing(title, outline(system, prediction.loads, prediction.link_utilization, routes), entry.caption)


def services(context: StudyContext) -> tuple[ServiceResult, ...]:
    """Every service of the form at its peak, by event simulation; LanewiseError with its place."""
    results = []
    for entry in context.form.services:
        with error_location(entry.location):
            assert isinstance(entry.scenario, Service)
            result = under_load(context.system(entry.system, entry.settings), entry.scenario)
        results.append(replace(result, name=entry.title or result.name))
    return tuple(results)


def _prediction(system: System, work: Copies | Service) -> Prediction:
    if isinstance(work, Copies):
        return predict(system, work.flows)
    return steady_rate(system, load_of(work.workload, work.mode, work.division, work.host)).prediction
