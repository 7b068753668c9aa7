"""Runs a study: fits, predicts and derives its rows, tests its conclusions, and makes its charts and drawings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeAlias

from lanewise.catalog import Catalog
from lanewise.errors import error_location
from lanewise.results.observation import Observation
from lanewise.results.plan import SIMULATION, Plan, Service, StudyProbe
from lanewise.results.run import StudyRun
from lanewise.results.statistics import residuals
from lanewise.studies.calibrate import CalibrationFit, Progress, calibrate, leave_out
from lanewise.studies.charts import charts, drawings, services
from lanewise.studies.conclusions import conclude, derive
from lanewise.studies.context import StudyContext, Systems
from lanewise.studies.fitting import fit_rows, targets, try_hypothesis
from lanewise.studies.form import RowForm, StudyForm
from lanewise.studies.measured import MeasuredRun, check_measured, find

# The predicted value of each row of a study that is not derived, in their order.
RowPredictor: TypeAlias = Callable[[StudyContext], Sequence[Observation]]


def run_study(
    form: StudyForm,
    probe: StudyProbe,
    catalog: Catalog,
    read_system: Systems,
    say: Progress = lambda _: None,
    measured: Sequence[MeasuredRun] = (),
    predict_rows: RowPredictor | None = None,
) -> StudyRun:
    """The result of a study, its rows joined with the rows of `measured` runs.

    `predict_rows` predicts the rows that are not derived, in place of the probe: elsewhere, for example.
    LanewiseError with the location of the row that cannot be predicted.
    """
    check_measured(form, measured)
    context = StudyContext(form, probe, catalog, read_system, measured=measured)
    fit, left_out = _fit(context, say)
    if fit is not None:
        context = replace(context, catalog=fit.catalog, systems={})
    rows = _derived(context, _rows(context, say) if predict_rows is None else predict_rows(context))
    say("conclusions")
    return StudyRun(
        name=form.name, title=form.title, source=form.source, finding=_finding(form, rows), rows=tuple(rows),
        conclusions=tuple(conclude(entry, rows) for entry in form.conclusions),
        fitted=fit.values if fit else (), left_out=left_out,
        hypotheses=tuple(try_hypothesis(context, h, fit_rows(form), catalog) for h in form.hypotheses),
        charts=charts(form, rows), drawings=drawings(context), services=services(context), method=form.method,
        assumptions=_assumptions(context, form),
    )  # fmt: skip


def _fit(context: StudyContext, say: Progress) -> tuple[CalibrationFit | None, tuple[Any, ...]]:
    form = context.form
    if not form.fit:
        return None, ()
    chosen = targets(context, fit_rows(form))
    say(f"fitting {len(form.fit)} values to {len(chosen)} rows")
    with error_location(form.fit[0].location):
        fit, search = calibrate(context.probe, context.catalog, form.fit, chosen)
        return fit, leave_out(search, fit, say) if form.leave_out else ()


def _rows(context: StudyContext, say: Progress) -> list[Observation]:
    """Each row that is not derived. Simulations run in parallel: the native core releases Python's lock."""
    rows = [row for row in context.form.rows if not row.derive]
    simulated = [row for row in rows if isinstance(row.scenario, Service) and row.scenario.method == SIMULATION]
    plans = [context.plan(row) for row in simulated]
    if simulated:
        say(f"simulating {len(simulated)} rows")
    with ThreadPoolExecutor() as pool:
        results = pool.map(lambda row, plan: _predict(context, row, plan), simulated, plans)
        simulations = {id(row): result for row, result in zip(simulated, results, strict=True)}
    return [
        simulations[id(row)] if id(row) in simulations else _predict(context, row, context.plan(row)) for row in rows
    ]


def _predict(context: StudyContext, row: RowForm, plan: Plan) -> Observation:
    with error_location(row.location):
        return next(context.probe.run(plan))


def _derived(context: StudyContext, predicted: Sequence[Observation]) -> list[Observation]:
    """Every row in its order, with what the study states of it, the derived ones computed from those before."""
    rows: list[Observation] = []
    observations = iter(predicted)
    for row in context.form.rows:
        rows.append(derive(row, rows) if row.derive else _stated(context, row, next(observations)))
    return rows


def _stated(context: StudyContext, row: RowForm, observation: Observation) -> Observation:
    note = "; ".join(text for text in (row.note, observation.note) if text)
    return replace(
        observation, study=context.form.name, table=row.table, scenario=row.label, settings=dict(row.settings),
        note=note, published=row.published, extrapolated=row.extrapolated, role=row.role,
        measured=find(row, context.measured),
    )  # fmt: skip


def _finding(form: StudyForm, rows: Sequence[Observation]) -> str:
    """The study's own sentence with this run's {rows}, {compared}, {rms} and {worst}; other braces stay as written."""
    errors = residuals(rows)
    values = {
        "{rows}": str(len(rows)),
        "{compared}": str(errors.compared),
        "{rms}": "n/a" if errors.rms_pct is None else f"{errors.rms_pct:.1f}",
        "{worst}": "n/a" if errors.worst_pct is None else f"{errors.worst_pct:+.1f}",
    }
    return re.sub(r"\{(rows|compared|rms|worst)\}", lambda token: values[token[0]], form.finding)


def _assumptions(context: StudyContext, form: StudyForm) -> tuple[str, ...]:
    texts = list(form.assumptions)
    for name in form.systems:
        row = next((r for r in form.rows if r.system == name), None)
        if row is not None:
            with error_location(row.location):
                system = context.system(name, row.settings)
            texts += [f"{form.systems[name].system}: {text}" for text in system.assumptions]
    return tuple(dict.fromkeys(texts))
