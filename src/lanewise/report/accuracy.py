"""docs/accuracy.md: scores on measured machines; of studies the residuals by study, basis, path and row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lanewise.evidence.after_measurement import AfterMeasurement
from lanewise.evidence.score import AccuracyScore
from lanewise.evidence.services import PredictedService
from lanewise.report import page
from lanewise.report.after_measurement import after_sections
from lanewise.report.evidence_page import other_studies, row_sections, score_sections
from lanewise.report.service_accuracy import service_sections
from lanewise.report.study_rows import study_tables
from lanewise.report.table import Column, Table, markdown_table, number_columns
from lanewise.report.words import signed
from lanewise.results import statistics
from lanewise.results.run import Run, StudyRun
from lanewise.results.statistics import Residuals


def accuracy_page(
    run: Run | None, score: AccuracyScore | None = None, history: Sequence[Mapping[str, Any]] = (),
    services: Sequence[PredictedService] = (), after: Sequence[AfterMeasurement] = (),
) -> str:  # fmt: skip
    """The Markdown text, every number from the score on measured machines, its `history`, the run of studies, the
    published `services` and the scores `after` measurements of the machines."""
    parts = [
        "# Accuracy",
        "How far predictions lie from measured and published values. Made by `make accuracy`; do not edit it.",
        *(score_sections(score, history) if score is not None else []),
        *after_sections(after),
        *service_sections(services),
        *(_studies(other_studies(run, score)) if run is not None else []),
        *(row_sections(score) if score is not None else []),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _studies(run: Run) -> list[str]:
    """Residuals of a run of studies; those without published or measured values are left out."""
    compared = [study for study in run.studies if any(row.published or row.measured for row in study.rows)]
    run = replace(run, studies=tuple(compared))
    rows = [row for study in run.studies for row in study.rows]
    total = statistics.overall(run)
    return [
        "## Studies of published evaluations",
        f"lanewise {run.version}, {len(run.studies)} studies, {total.rows} rows; "
        f"{total.compared} predict a published value. A residual is (predicted - "
        "published) / published. Every row is listed; summaries count predictions only, not rows whose published value "
        "went in (input) nor rows that say again what others say (repeat).",
        "## By study",
        _residuals("study", {study.name: statistics.residuals(study.rows) for study in run.studies}),
        *_against_measured(run),
        "## By what the prediction rests on",
        "`physics`: specifications alone. `calibrated`: a figure measured elsewhere. `fitted`: a figure "
        "fitted to the very table it stands in; the residual says how well the mechanism fits, no more.",
        _residuals("basis", statistics.by_basis(rows)),
        "## By kind of path",
        _residuals("path", statistics.by_path(rows)),
        *(line for study in run.studies for line in _study(study)),
    ]


def _study(study: StudyRun) -> list[str]:
    lines = [
        f"## {study.title}",
        f"Source: {study.source}",
        study.finding,
        *page.against_measured(study.rows),
        _residuals("table", statistics.by(study.rows, lambda row: row.table or "other")),
        *_methods(study),
    ]
    if fits := page.fit_tables(study.fitted, study.left_out):
        lines += ["Fitted values, and how far off rows are that the fit did not see:", *map(markdown_table, fits)]
    if study.hypotheses:
        lines += ["Explanations tried on the same rows:", markdown_table(page.hypothesis_table(study))]
    for rows in study_tables(study):
        lines += [f"### {rows.title}", rows.summary, markdown_table(rows.table)]
    return lines


def _against_measured(run: Run) -> list[str]:
    """By study as well, what was measured in place of what was published; nothing where nothing was."""
    residuals = {study.name: statistics.against_measured(study.rows) for study in run.studies}
    compared = {name: group for name, group in residuals.items() if group.rows}
    return ["## Against measured values, by study", _residuals("study", compared)] if compared else []


def _methods(study: StudyRun) -> list[str]:
    """Other methods on the rows they answered, each under the rows' own values."""
    compared = statistics.by_method(study.rows)
    groups: dict[str, Residuals] = {}
    for method in compared:
        own = method.own_name if len(compared) == 1 else f"{method.own_name}, on the rows of {method.name}"
        groups |= {own: method.own, method.name: method.residuals}
    return ["The same rows by another method:", _residuals("method", groups)] if groups else []


def _residuals(head: str, groups: Mapping[str, Residuals]) -> str:
    table = Table([
        Column(head), *number_columns("rows", "compared", "rms %", "worst %", "mean %", "within 5 %", "beyond 10 %"),
    ])  # fmt: skip
    for name, group in groups.items():
        errors = ("", "", "")
        if group.rms_pct is not None:
            errors = (f"{group.rms_pct:.1f}", signed(group.worst_pct), signed(group.mean_pct))
        table.add(name, str(group.rows), str(group.compared), *errors, str(group.close), str(group.far))
    return markdown_table(table)
