"""Charts and drawings of a study, as plain data that the report renders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise.errors import LanewiseError
from lanewise.perf.predict import Prediction, predict
from lanewise.results.outline import outline
from lanewise.results.plan import Copies
from lanewise.results.run import Chart, Drawing, Series
from lanewise.serving import steady
from lanewise.studies.form import placed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lanewise.results.observation import Observation
    from lanewise.studies.form import StudyForm
    from lanewise.studies.runner import Bench


def charts(form: StudyForm, rows: Sequence[Observation]) -> tuple[Chart, ...]:
    """Every chart of the form: `x` is a setting or 'label', one pair of series for each value of `by`."""
    return tuple(_chart(entry, rows) for entry in form.charts)


def _chart(entry: Mapping[str, Any], rows: Sequence[Observation]) -> Chart:
    tables = [entry["table"]] if "table" in entry else list(entry.get("tables", ()))
    chosen = [row for row in rows if row.table in tables]
    x, by = str(entry.get("x", "label")), str(entry.get("by", ""))
    series: list[Series] = []
    for group in dict.fromkeys(_axis(row, by) for row in chosen) if by else [""]:
        members = [row for row in chosen if not by or _axis(row, by) == group]
        name = f"{group} {by}".strip() if by not in ("", "label", "table") else str(group)
        series += [_series(members, x, name, str(group), kind) for kind in ("predicted", "published")]
    unit = chosen[0].unit if chosen else ""
    y_label = str(entry.get("y_label", f"{chosen[0].metric} ({unit})" if chosen else ""))
    kind = str(entry.get("kind", "line"))
    x_label = str(entry.get("x_label", "" if x == "label" else x))
    return Chart(str(entry["title"]), kind, x_label, y_label, tuple(series), str(entry.get("note", "")))


def _series(rows: Sequence[Observation], x: str, name: str, group: str, source: str) -> Series:
    pick = [(row.value if source == "predicted" else row.published) for row in rows]
    points = tuple((_axis(row, x), value) for row, value in zip(rows, pick, strict=True))
    return Series(name, source, points, tuple(row.extrapolated for row in rows), group)


def _axis(row: Observation, name: str) -> float | str:
    if name in ("label", ""):
        return row.scenario
    if name == "table":
        return row.table
    return row.settings.get(name, row.scenario)


def drawings(bench: Bench) -> tuple[Drawing, ...]:
    """Every drawing of the form: a system with the loads of one scenario; LanewiseError with its place."""
    made = []
    for entry in bench.form.drawings:
        try:
            made.append(_drawing(bench, entry))
        except LanewiseError as error:
            raise placed(error, entry["_place"]) from None
    return tuple(made)


def _drawing(bench: Bench, entry: Mapping[str, Any]) -> Drawing:
    system = bench.system(str(entry["system"]), entry.get("set") or {})
    title = str(entry.get("title") or system.title or system.name)
    found = _loads(bench, system, entry)
    if found is None:
        return Drawing(title, outline(system), str(entry.get("caption", "")))
    routes = [(flow.flow.name, flow.routes[0].nodes) for flow in found.flows[:6]] if len(found.flows) <= 6 else []
    return Drawing(title, outline(system, found.loads, found.link_use, routes), str(entry.get("caption", "")))


def _loads(bench: Bench, system: Any, entry: Mapping[str, Any]) -> Prediction | None:
    from lanewise.studies.form import ScenarioForm
    from lanewise.studies.runner import scenario

    if not entry.get("scenario"):
        return None
    asked = scenario(ScenarioForm(**entry["scenario"]), str(entry.get("title", "")))
    if isinstance(asked, Copies):
        return predict(system, asked.flows)
    ask = steady.network if asked.division == "network" else steady.closed
    return ask(system, asked.workload, asked.mode, asked.host).prediction
