"""What the HTML page shows, prepared as plain text and numbers; the template only places it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lanewise import units
from lanewise.report import measured, services
from lanewise.report.study_rows import StudyTable, settings_text, study_tables
from lanewise.report.table import Column, Table, TableCell, number_columns
from lanewise.report.words import NONE, anchor, errors, percent, plural, residual_cell, rms_cell, shortened, signed
from lanewise.results import statistics
from lanewise.results.observation import Observation, Source
from lanewise.results.run import FittedValue, LeftOut, Run, StudyRun
from lanewise.results.statistics import Residuals


@dataclass
class StudyPage:
    """One study as the template needs it; a chart is title, SVG, note, and whether it takes the whole width."""

    study: StudyRun
    anchor: str
    conclusions: Table
    methods: list[str]
    tables: list[StudyTable]
    fits: list[Table]
    hypotheses: Table
    limits: Table
    sources: list[str]
    charts: list[tuple[str, str, str, bool]] = field(default_factory=list)
    drawings: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def parts(self) -> list[tuple[str, str]]:
        """Name and anchor of each part that the study has, in the order of the page."""
        parts = {
            "conclusions": self.study.conclusions, "charts": self.charts, "drawings": self.drawings,
            "services": self.study.services, "rows": self.tables, "fits": self.fits, "hypotheses": self.hypotheses.rows,
            "limits": self.limits.rows, "assumptions": self.study.assumptions, "sources": self.sources,
            "method": self.study.method,
        }  # fmt: skip
        return [(name, f"{self.anchor}-{name}") for name, content in parts.items() if content]


def study_page(study: StudyRun) -> StudyPage:
    """One study prepared, without charts and drawings."""
    sources = list(dict.fromkeys(text for row in study.rows for text in row.rests_on))
    limits = statistics.by_limit(study.rows)
    return StudyPage(
        study=study,
        anchor=anchor(study.name),
        conclusions=_conclusions_table(study),
        methods=[*against_measured(study.rows), *method_lines(study.rows)],
        tables=study_tables(study, sources),
        fits=fit_tables(study.fitted, study.left_out),
        hypotheses=hypothesis_table(study),
        limits=_limits(limits if len(limits) > 1 else {}),
        sources=[shortened(text) for text in sources],
    )


def overview(run: Run) -> Table:
    """Each study with what it finds, its residuals by basis, and how many conclusions hold; all studies last."""
    rows = [row for study in run.studies for row in study.rows]
    bases = [name for name, group in statistics.by_basis(rows).items() if group.compared]
    table = Table([
        Column("study", wrap=True), Column("finding", wrap=True),
        *number_columns("rows"), *number_columns("all", *bases, unit="rms (rows)"),
        Column("worst", "%", number=True), Column("conclusions", wrap=True),
    ])  # fmt: skip
    for study in run.studies:
        name = TableCell(study.title, href=f"#{anchor(study.name)}")
        table.add(name, study.finding, *_errors_of(study.rows, bases), verdict_text([study]))
    if len(run.studies) > 1:
        cells = ("all", "", *_errors_of(rows, bases), verdict_text(run.studies))
        table.add(*(TableCell(cell if isinstance(cell, str) else cell.text, "sum") for cell in cells))
    return table


def _errors_of(rows: Sequence[Observation], bases: Sequence[str]) -> list[str | TableCell]:
    total, groups = statistics.residuals(rows), statistics.by_basis(rows)
    errors = [f"{percent(group.rms_pct)} ({group.compared})" if group and group.compared else NONE
              for group in (total, *(groups.get(name) for name in bases))]  # fmt: skip
    return [f"{total.rows:,}", *errors, residual_cell(total.worst_pct)]


def far_rows(studies: Sequence[StudyRun]) -> Table:
    """The predictions that are off by more than 10 %, the worst first."""
    far = sorted(
        ((study, row, row.residual_pct) for study in studies for row in study.rows
         if row.role == "prediction" and row.residual_pct is not None and abs(row.residual_pct) > statistics.FAR_PCT),
        key=lambda item: -abs(item[2]),
    )  # fmt: skip
    table = Table([
        *number_columns("off by"), Column("study"), Column("row"), Column("table", drop_order=4),
        Column("metric", drop_order=3), *number_columns("published", "predicted", drop_order=2),
        Column("unit", drop_order=2),
    ])  # fmt: skip
    for study, row, residual in far:
        flow = row.flow if row.flow != row.scenario else ""
        name = ", ".join(filter(None, [row.scenario, flow, settings_text(row)]))
        link = TableCell(study.name, href=f"#{anchor(study.name)}-rows")
        values = [units.number(row.display(value) or 0.0) for value in (row.published, row.value)]
        off = TableCell(f"{signed(residual)} %", "far")
        table.add(off, link, name, row.table, row.metric, *values, row.display_unit)
    return table


def _conclusions_table(study: StudyRun) -> Table:
    words = {
        True: TableCell("✓ holds", "good"),
        False: TableCell("✗ does not hold", "bad"),
        None: TableCell("not evaluated", "quiet"),
    }
    rows: list[Sequence[str | TableCell]] = [
        (words[c.holds], c.says, TableCell(c.shown, "quiet")) for c in study.conclusions
    ]
    return Table([Column("verdict"), Column("statement", wrap=True), Column("values behind it", wrap=True)], rows)


def fit_tables(fitted: Iterable[FittedValue], left_out: Iterable[LeftOut]) -> list[Table]:
    """The fitted values, and the residuals of rows that a fit did not see; tables without rows are left out."""
    values = Table([
        Column("figure"), *number_columns("fitted"), *number_columns("started from", drop_order=1),
        *number_columns("standard error"), *number_columns("rows used", drop_order=1),
        Column("note", drop_order=2, wrap=True),
    ])  # fmt: skip
    for fit in fitted:
        error = NONE if fit.spread is None else f"± {100 * fit.spread:.1f} %"
        value, start = (units.readable(number, fit.unit) for number in (fit.value, fit.start))
        values.add(fit.key, value, start, error, str(fit.used), fit.note)
    unseen = Table([
        Column("rows that the fit did not see", wrap=True), *number_columns("rows"),
        *number_columns("rms", "worst", unit="%"),
    ])  # fmt: skip
    for group in left_out:
        unseen.add(group.group, str(group.rows), rms_cell(group.rms_pct), residual_cell(group.worst_pct))
    return [table for table in (values, unseen) if table.rows]


def hypothesis_table(study: StudyRun) -> Table:
    """The alternative explanations, and the residuals that they leave."""
    table = Table([
        Column("explanation", wrap=True), Column("says", wrap=True), *number_columns("rms", "worst", unit="%"),
        *number_columns("values fitted"), Column("note", wrap=True),
    ])  # fmt: skip
    for h in study.hypotheses:
        table.add(h.name, h.says, rms_cell(h.rms_pct), residual_cell(h.worst_pct), str(h.fitted), h.note)
    return table


def _limits(groups: Mapping[str, Residuals]) -> Table:
    table = Table(
        [Column("limit", wrap=True), *number_columns("rows"), *number_columns("rms", "mean", "worst", unit="%")]
    )
    for name, group in groups.items():
        table.add(name, str(group.rows), rms_cell(group.rms_pct), signed(group.mean_pct),
                  residual_cell(group.worst_pct))  # fmt: skip
    return table


def verdict_text(studies: Iterable[StudyRun]) -> str:
    """'5 of 6 hold, 1 not evaluated', empty where there are no conclusions."""
    yes, no, open_ = statistics.verdicts(studies)
    if not yes + no + open_:
        return ""
    text = f"{yes} of {yes + no + open_} hold"
    return f"{text}, {open_} not evaluated" if open_ else text


def method_lines(rows: Sequence[Observation]) -> list[str]:
    """'20 rows: predicted rms 3.1 %, worst −7.4 %; steady state rms 8.8 %, worst +21.5 %', one line a method."""
    return [
        f"{plural(method.residuals.compared, 'row')}: {method.own_name} {errors(method.own)}; "
        f"{method.name} {errors(method.residuals)}"
        for method in statistics.by_method(rows)
    ]


def against_measured(rows: Sequence[Observation]) -> list[str]:
    """'20 rows have a measured value: predicted rms 3.1 %, worst −7.4 %', nothing where none has."""
    total = statistics.against_measured(rows)
    text = "" if total.rms_pct is None else f": predicted {errors(total)}"
    verb = "has" if total.rows == 1 else "have"
    return [f"{plural(total.rows, 'row')} {verb} a measured value{text}"] if total.rows else []


def headline(run: Run) -> str:
    """The results of all studies, measured rows and services in a few sentences."""
    under_load = [*run.services, *(service for study in run.studies for service in study.services)]
    texts = [_studies_headline(run)] if run.studies or not (under_load or run.rows) else []
    texts += [measured.overview(run.rows), f"{services.overview(under_load)}." if under_load else ""]
    return " ".join(filter(None, texts))


def _studies_headline(run: Run) -> str:
    total = statistics.overall(run)
    rows = [row for study in run.studies for row in study.rows]
    texts = [f"{plural(total.rows, 'row')} in {'1 study' if len(run.studies) == 1 else f'{len(run.studies)} studies'}."]
    if total.rms_pct is None:
        texts.append("None has a published value.")
    else:
        far = f", {total.far} off by more than 10 %" if total.far else ""
        verb = "predicts" if total.compared == 1 else "predict"
        texts.append(
            f"{total.compared} of them {verb} a published value: {total.close} within 5 % of it{far}, "
            f"the worst off by {signed(total.worst_pct)} %; the rms error is {percent(total.rms_pct)}."
        )
    texts += [f"{text}." for text in against_measured(rows)]
    # Conclusions about what somebody published, and those that are the study's own.
    published = [
        study for study in run.studies
        if any(row.published is not None or row.source is Source.PUBLISHED for row in study.rows)
    ]  # fmt: skip
    own = [study for study in run.studies if study not in published and study.conclusions]
    texts.append(_conclusions(published, "published conclusion", ""))
    texts.append(_conclusions(own, "unpublished conclusion", f" ({', '.join(study.name for study in own)})"))
    return " ".join(filter(None, texts))


def _conclusions(studies: Sequence[StudyRun], noun: str, names: str) -> str:
    """'Of 31 published conclusions, 28 hold in these rows, 2 do not, 1 could not be evaluated.'"""
    yes, no, unknown = statistics.verdicts(studies)
    if not yes + no + unknown:
        return ""
    text = f"Of {plural(yes + no + unknown, noun)}{names}, {yes} {'holds' if yes == 1 else 'hold'} in these rows"
    text += f", {no} {'does' if no == 1 else 'do'} not" if no else ""
    return text + (f", {unknown} could not be evaluated" if unknown else "") + "."
