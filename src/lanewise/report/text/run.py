"""The facts of a run, a prediction, a comparison or a list of routes as tables on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.report import measured, page
from lanewise.report.citations import shortened
from lanewise.report.table import text_table
from lanewise.report.terminal import Column, Sheet, make_console, print_sheet
from lanewise.report.text.matrices import show_matrix
from lanewise.report.text.service import service_view, services_sheet, show_service
from lanewise.results import statistics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from lanewise.results.compare import Comparison
    from lanewise.results.observation import Observation
    from lanewise.results.run import Conclusion, Run, StudyRun
    from lanewise.results.statistics import Residuals
    from lanewise.routes.model import Route
    from lanewise.studies.form import StudyForm

_GRADE = {"": "", "off": "yellow", "far": "bold red"}


def render_studies(forms: Sequence[tuple[str, StudyForm]]) -> str:
    """One line a ready study."""
    rows = [(name, str(len(form.rows)), form.title) for name, form in forms]
    return text_table(("study", "rows", "title"), rows, right=("rows",))


def show_run(run: Run, console: Console | None = None, rows: bool = False) -> None:
    """The finding, a line a study and every conclusion; with `rows` every row as well."""
    console = console or make_console()
    _say(console, page.headline(run))
    _say(console, "")
    pages = page.study_pages(run)
    if pages or not (run.services or run.rows):
        print_sheet(console, _studies(pages))
    for service in run.services:
        console.print("")
        show_service(service, console)
    show_measured(run.rows, console)
    for one in pages:
        show_study(one.study, console, rows)


def show_measured(rows: Sequence[Observation], console: Console | None = None) -> None:
    """Measured rows by scenario: matrices of pairs, then every cell with its spread and what it is compared with."""
    console = console or make_console()
    for part in measured.parts(rows):
        _say(console, "")
        console.rule(part.name, align="left", style="dim", characters="─")
        _say(console, " · ".join(filter(None, [part.summary, part.common])))
        for matrix in part.matrices:
            _say(console, "")
            targets = [str(place) for place, _ in matrix.series[0].points]
            sources = [one.name for one in matrix.series]
            show_matrix(sources, targets, [[y for _, y in one.points] for one in matrix.series], matrix.title, console)
        for table in part.tables:
            _say(console, "")
            print_sheet(console, _measured(table))
            if table.left_out:
                _say(console, f"{table.left_out} more rows are in the run's file")


def _measured(table: measured.Table) -> Sheet:
    unit = table.unit
    sheet = Sheet(
        [
            Column("flow", elastic=True),
            Column("settings", keep=2, elastic=True),
            Column("metric"),
            Column(f"median\n{unit}", True),
            Column(f"smallest\n{unit}", True, keep=3),
            Column(f"largest\n{unit}", True, keep=3),
            Column("spread\n%", True, keep=1),
            Column("samples", True, keep=4),
            *(column for head in table.heads
              for column in (Column(f"{head}\n{unit}", True), Column(f"measured\n/ {head}", True))),
            Column("path", keep=5, elastic=True),
            Column("how", keep=6, elastic=True),
            Column("note", keep=7, elastic=True),
        ]
    )  # fmt: skip
    for cell in table.cells:
        told = [part for value, ratio, grade in cell.compared for part in (value, (ratio, _GRADE[grade]))]
        fixed = (cell.value, cell.low, cell.high, cell.spread, cell.samples)
        chosen = cell.settings if "settings" in table.columns else ""
        path = cell.path if "path" in table.columns else ""
        sheet.add(cell.flow, chosen, cell.metric, *fixed, *told, path, cell.how, cell.note)
    return sheet


def _studies(pages: Sequence[page.StudyPage]) -> Sheet:
    names = page.basis_names(pages)
    heads = [Column(f"{name}\nrms %", True, keep=2) for name in names]
    sheet = Sheet(
        [Column("study", elastic=True), Column("rows", True), Column("all\nrms %", True), *heads,
         Column("worst\n%", True), Column("conclusions", keep=1)]
    )  # fmt: skip
    for one in pages:
        groups = [_rms(one.bases.get(name)) for name in names]
        sheet.add(one.study.name, str(one.total.rows), _rms(one.total), *groups, _worst(one.total), one.verdict)
    return sheet


def _rms(group: Residuals | None) -> str:
    return page.NONE if group is None or group.rms_pct is None else f"{group.rms_pct:.1f}"


def _worst(group: Residuals) -> tuple[str, str]:
    return page.signed(group.worst_pct), _GRADE[page.grade(group.worst_pct)]


def show_study(study: StudyRun, console: Console | None = None, rows: bool = True) -> None:
    """One study: finding, conclusions and, with `rows`, every row of every table."""
    console = console or make_console()
    console.rule(study.title, align="left", style="dim", characters="─")
    _say(console, study.finding)
    _say(console, "")
    for conclusion in study.conclusions:
        _conclude(console, conclusion)
    if study.services:
        _say(console, "")
        print_sheet(console, services_sheet(study.services))
    if not rows:
        return
    prepared = page.study_page(study)
    for line in prepared.methods:
        _say(console, "")
        _say(console, line)
    for table in prepared.tables:
        _say(console, "")
        print_sheet(console, _rows(table))


def _conclude(console: Console, conclusion: Conclusion) -> None:
    from rich.text import Text

    word, style = {
        True: ("holds       ", "green"), False: ("does not    ", "bold red"), None: ("not tested  ", "dim"),
    }[conclusion.holds]  # fmt: skip
    shown = f"  ({conclusion.shown})" if conclusion.shown else ""
    console.print(Text(word, style=style) + Text(conclusion.says) + Text(shown, style="dim"))


def _rows(table: page.Table) -> Sheet:
    unit = table.unit
    sheet = Sheet(
        [
            Column("system", keep=2, elastic=True),
            Column("scenario", elastic=True),
            Column("flow", keep=3, elastic=True),
            Column("metric", elastic=True),
            Column("settings", keep=2, elastic=True),
            Column("source", keep=1),
            Column(f"published\n{unit}", True),
            Column(f"{table.value_head}\n{unit}", True),
            Column("residual\n%", True),
            Column(f"measured\n{unit}", True),
            Column("off meas.\n%", True),
            *(Column(f"{method}\n{unit} (res. %)", True, keep=4) for method in table.methods),
            Column("limited by", keep=4, elastic=True),
            Column("basis", keep=5),
            Column("note", keep=6, elastic=True),
        ],
        title=f"{table.title} ({table.common})" if table.common else table.title,
    )
    some = table.columns
    for cell in table.cells:
        mark = " *" if cell.extrapolated else ""
        sheet.add(
            cell.system if "system" in some else "",
            cell.scenario if "scenario" in some else "",
            cell.flow if "flow" in some else "",
            cell.metric if "metric" in some else "",
            cell.settings if "settings" in some else "",
            cell.source if "source" in some else "",
            cell.published + (mark if cell.published else ""),
            cell.value + ("" if cell.published else mark),
            (cell.residual, _GRADE[cell.grade]),
            cell.measured[0],
            (cell.measured[1], _GRADE[cell.measured[2]]),
            *(f"{value} ({residual})" if residual else value for value, residual, _ in cell.beside),
            cell.limit,
            cell.basis,
            cell.note,
        )
    if any(cell.extrapolated for cell in table.cells):
        sheet.title += "   (* extrapolated)"
    return sheet


def show_predictions(
    rows: Sequence[Observation], classes: Mapping[str, str] | None = None, console: Console | None = None
) -> None:
    """One line a flow: route class (by flow name, if given), value, limit and what it rests on."""
    sheet = Sheet(
        [
            Column("flow", elastic=True),
            Column("class"),
            Column("metric", keep=2),
            Column("value", True),
            Column("unit"),
            Column("interval", True, keep=3),
            Column("limited by", elastic=True),
            Column("basis", keep=1),
            Column("rests on", keep=4, elastic=True),
            Column("note", keep=5, elastic=True),
        ]
    )
    metrics = len({row.metric for row in rows}) > 1
    for row in rows:
        value = "unknown" if row.value is None else f"{row.value:,.{_decimals(row.value)}f}"
        interval = "" if row.low is None or row.high is None else f"{row.low:,.4g} to {row.high:,.4g}"
        sheet.add(
            row.flow or row.scenario,
            (classes or {}).get(row.flow, ""),
            row.metric if metrics else "",
            value,
            row.unit,
            interval,
            row.limit,
            row.basis.value if row.basis else "",
            "; ".join(shortened(text) for text in row.rests_on),
            row.note or ("no reason given" if row.value is None else ""),
        )
    print_sheet(console or make_console(), sheet)


def _decimals(value: float) -> int:
    return 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3


def show_routes(
    routes: Sequence[Route],
    rates: Sequence[float | None] | None = None,
    console: Console | None = None,
) -> None:
    """One line a route: ends, class, `rates` in GB/s, the devices on the way, and whether it is allowed."""
    sheet = Sheet(
        [
            Column("from"),
            Column("to"),
            Column("class"),
            Column("via", keep=2),
            Column("predicted\nGB/s", True),
            Column("route", elastic=True),
            Column("allowed", keep=1, elastic=True),
        ]
    )
    for index, route in enumerate(routes):
        rate = rates[index] if rates and index < len(rates) else None
        allowed: tuple[str, str] | str = "yes" if route.allowed else (f"no: {route.why}", "yellow")
        number = "" if rates is None else "unknown" if rate is None else f"{rate:.2f}"
        sheet.add(route.src, route.dst, route.cls, route.via.value, number, route.show(), allowed)
    print_sheet(console or make_console(), sheet)


def show_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Matched rows with their difference, then the rows that stand on one side only."""
    console = console or make_console()
    left, right = comparison.left_name, comparison.right_name
    sheet = Sheet(
        [
            Column("study", keep=3, elastic=True),
            Column("system", keep=2, elastic=True),
            Column("scenario", elastic=True),
            Column("flow", keep=1, elastic=True),
            Column("metric", elastic=True),
            Column("settings", keep=2, elastic=True),
            Column(left, True),
            Column(right, True),
            Column("unit"),
            Column("difference\n%", True),
            Column("note", keep=4, elastic=True),
        ]
    )
    for pair in comparison.pairs:
        row, difference = pair.left, pair.difference_pct
        sheet.add(
            row.study, row.system, row.scenario, row.flow, row.metric, page.settings_text(row),
            _value(pair.left_value), _value(pair.right_value), pair.unit,
            (page.signed(difference), _GRADE[page.grade(difference)]), pair.note,
        )  # fmt: skip
    print_sheet(console, sheet)
    for name, rows in ((left, comparison.only_left), (right, comparison.only_right)):
        if rows:
            _say(console, f"only in {name}: {len(rows)} rows")
            for one in rows:
                words = (one.study, one.system, one.scenario, one.flow, one.metric)
                _say(console, "  " + ", ".join(word for word in words if word))


def _value(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.{_decimals(value)}f}"


def show_residuals(groups: Mapping[str, statistics.Residuals], head: str, console: Console | None = None) -> None:
    """Residuals by group: rows, rms, mean and worst in %."""
    sheet = Sheet(
        [Column(head, elastic=True), Column("rows", True), Column("rms\n%", True), Column("mean\n%", True),
         Column("worst\n%", True)]
    )  # fmt: skip
    for name, group in groups.items():
        sheet.add(name, str(group.rows), _rms(group), page.signed(group.mean_pct), _worst(group))
    print_sheet(console or make_console(), sheet)


def _say(console: Console, text: str) -> None:
    from rich.text import Text

    console.print(Text(text))


__all__ = [
    "make_console",
    "service_view",
    "show_comparison",
    "show_measured",
    "show_predictions",
    "show_residuals",
    "show_routes",
    "show_run",
    "show_service",
    "show_study",
]
