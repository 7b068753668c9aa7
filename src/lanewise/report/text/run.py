"""A run as text: studies in one screen, their rows with --rows, services under load, measured rows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from lanewise.report import measured, page, services
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.study_rows import EXTRAPOLATED, study_tables
from lanewise.report.table import Column, Table, TableCell, number_columns, render_matrix, render_table
from lanewise.report.text.service import render_service
from lanewise.report.words import plural, residual_cell, rms_cell
from lanewise.results import statistics
from lanewise.results.observation import Observation
from lanewise.results.run import Conclusion, LeftOut, Run, StudyRun
from lanewise.studies.calibrate import CalibrationFit
from lanewise.studies.form import StudyForm

MOST_FAR_ROWS = 8  # rows off by more than 10 % that are shown at once
FEW_ROWS = 12  # in all studies, shown without --rows
MOST_FAILED = 5  # conclusions that do not hold that are shown at once
_VERDICTS = {True: ("holds", "green"), False: ("does not hold", "bold red"), None: ("not evaluated", "dim")}


def render_studies(forms: Sequence[tuple[str, StudyForm]], screen: Screen = PLAIN) -> str:
    """One line a built-in study."""
    table = Table([Column("study"), *number_columns("rows"), Column("title", wrap=True)])
    for name, form in forms:
        table.add(name, str(len(form.rows)), form.title)
    return render_table(table, screen)


def render_run(run: Run, rows: bool = False, screen: Screen = PLAIN) -> str:
    """One screen: what each study finds, what does not hold, the rows that are far off.

    Every row is shown with `rows`, or if there are few.
    """
    parts = [_head(run, screen)]
    if run.studies:
        parts += [_summary(run, screen), _failed(run.studies, screen), _far(run.studies, screen)]
    parts += [render_service(service, screen) for service in run.services]
    parts.append(render_measured(run.rows, screen))
    few = sum(len(study.rows) for study in run.studies) <= FEW_ROWS
    parts += [_study(study, screen) for study in run.studies if rows or few]
    return "\n\n".join(filter(None, parts))


def _head(run: Run, screen: Screen) -> str:
    """What was compared, and how far off it is."""
    total = statistics.overall(run)
    if not run.studies or total.rms_pct is None:
        return screen.wrap(page.headline(run))
    text = (
        f"{'1 study' if len(run.studies) == 1 else f'{len(run.studies)} studies'}, {plural(total.rows, 'row')}; "
        f"{total.compared} predict a published value: rms residual {total.rms_pct:.1f} %, {total.close} within 5 %, "
        f"{total.far} beyond 10 %"
    )
    measured_rows = page.against_measured([row for study in run.studies for row in study.rows])
    return "\n".join(screen.wrap(line) for line in [text, *measured_rows])


def _summary(run: Run, screen: Screen) -> str:
    """Each study with its residuals and how many conclusions hold; below it what it finds, in one line."""
    columns = [
        Column("study"), *number_columns("rows", drop_order=3), *number_columns("compared", drop_order=2),
        *number_columns("rms %", "worst %"), Column("conclusions that hold", drop_order=1),
    ]  # fmt: skip
    table = Table(columns)
    for study in run.studies:
        total = statistics.residuals(study.rows)
        table.add(study.name, str(total.rows), str(total.compared), rms_cell(total.rms_pct).text,
                  residual_cell(total.worst_pct), page.verdict_text([study]).replace(" hold", ""))  # fmt: skip
    head, *lines = render_table(table, screen).split("\n")
    for number, study in enumerate(run.studies):
        sentence = screen.wrap(f"  {_first_sentence(study.finding)}", indent=2)
        lines[number] += f"\n{screen.style(sentence, 'dim')}"
    return "\n".join([head, *lines])


def _first_sentence(text: str) -> str:
    """The first sentence, without what is in brackets."""
    head, end, rest = re.split(r"(?<=[.!?]) ", text, maxsplit=1)[0].rpartition(")")
    return re.sub(r" \([^)]*\)", "", head + end) + rest


def _failed(studies: Sequence[StudyRun], screen: Screen) -> str:
    """The conclusions that do not hold."""
    failed = [(study, conclusion) for study in studies for conclusion in study.conclusions if conclusion.holds is False]
    if not failed:
        return ""
    lines = [screen.wrap(f"  {study.name}: {conclusion.says}", indent=4) for study, conclusion in failed[:MOST_FAILED]]
    more = len(failed) - MOST_FAILED
    lines += [f"  and {more} more: --rows"] if more > 0 else []
    return "\n".join([screen.style("does not hold in these rows", "bold"), *lines])


def _far(studies: Sequence[StudyRun], screen: Screen) -> str:
    """The predictions that are off by more than 10 %, the worst first."""
    table = page.far_rows(studies)
    if not table.rows:
        return ""
    more = len(table.rows) - MOST_FAR_ROWS
    text = f"{plural(len(table.rows), 'row')} off by more than {statistics.FAR_PCT:g} %, the worst first"
    table.rows = table.rows[:MOST_FAR_ROWS]
    rest = [f"  and {more} more: --rows"] if more > 0 else []
    return "\n".join([screen.style(text, "bold"), render_table(table, screen), *rest])


def _study(study: StudyRun, screen: Screen) -> str:
    """One study: finding, conclusions and every row of every table."""
    parts = [f"{screen.style(study.title, 'bold')}\n{screen.wrap(study.finding)}"]
    parts.append("\n".join(_conclusion(conclusion, screen) for conclusion in study.conclusions))
    parts.append(render_table(services.services_table(study.services), screen) if study.services else "")
    lines = [*page.against_measured(study.rows), *page.method_lines(study.rows)]
    parts += [screen.wrap(line, indent=2) for line in lines]
    for rows in study_tables(study):
        rows.table.title = " · ".join(filter(None, [rows.title, rows.summary]))
        if rows.extrapolated:
            rows.table.title += f"   ({EXTRAPOLATED} extrapolated)"
        parts.append(render_table(rows.table, screen))
    return "\n\n".join(filter(None, parts))


def _conclusion(conclusion: Conclusion, screen: Screen) -> str:
    word, style = _VERDICTS[conclusion.holds]
    text = screen.wrap(f"{word:15}{conclusion.says}", indent=15)
    return screen.style(text[:15], style) + text[15:]


def render_measured(rows: Iterable[Observation], screen: Screen = PLAIN) -> str:
    """Measured rows by scenario: matrices of pairs, then every row with its range and what it is compared with."""
    blocks = []
    for part in measured.parts(rows):
        head = screen.style(part.name, "bold")
        blocks.append(f"{head}\n{screen.wrap(' · '.join(filter(None, [part.summary, part.common])))}")
        for matrix in part.matrices:
            targets = [str(target) for target, _ in matrix.series[0].points]
            sources = [series.name for series in matrix.series]
            values = [[y for _, y in series.points] for series in matrix.series]
            blocks.append(render_matrix(sources, targets, values, matrix.title, screen))
        for table in part.tables:
            more = f"\n{table.left_out} more rows are in the run's file" if table.left_out else ""
            blocks.append(render_table(table.table, screen) + more)
    return "\n\n".join(blocks)


def render_calibration(fit: CalibrationFit, left_out: Sequence[LeftOut], screen: Screen = PLAIN) -> str:
    """Fitted figures, the residuals of the rows, and those of each group by a fit to the others."""
    rows = Table([Column("study", drop_order=2), Column("table", drop_order=1, wrap=True), Column("row", wrap=True),
                  *number_columns("residual", unit="%")])  # fmt: skip
    for target, residual in zip(fit.targets, fit.residuals, strict=True):
        known = math.isfinite(residual)
        rows.add(*target.where, residual_cell(100 * residual) if known else TableCell("no prediction", "far"))
    figures, *unseen = (render_table(table, screen) for table in page.fit_tables(fit.values, left_out))
    used = f"fitted to {len(fit.compared)} rows, rms residual {fit.rms_pct:.1f} %\n{render_table(rows, screen)}"
    return "\n\n".join([figures, used, *unseen])
