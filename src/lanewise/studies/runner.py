"""Runs a study: fits what it declares, asks the probe for every row, derives, concludes, charts and draws."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lanewise.errors import error_location
from lanewise.results.observation import Observation
from lanewise.results.run import StudyRun
from lanewise.results.statistics import residuals
from lanewise.studies import calibrate
from lanewise.studies.bench import Bench, fit_rows, targets
from lanewise.studies.conclude import conclude, derive
from lanewise.studies.form import RowForm, StudyForm
from lanewise.studies.hypotheses import try_hypothesis
from lanewise.studies.illustrate import charts, drawings, services
from lanewise.studies.measured import check_measured, find

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lanewise.catalog import Catalog
    from lanewise.results.plan import Plan, Probe
    from lanewise.studies.bench import Systems
    from lanewise.studies.measured import MeasuredRun

    Progress = Callable[[str], None]


def run_study(
    form: StudyForm,
    probe: Probe,
    catalog: Catalog,
    read_system: Systems,
    say: Progress = lambda _: None,
    measured: Sequence[MeasuredRun] = (),
) -> StudyRun:
    """The whole outcome of a study, its rows beside what `measured` runs have of them.

    LanewiseError with the location of the row that cannot be answered.
    """
    check_measured(form, measured)
    bench = Bench(form, probe, catalog, read_system, measured=measured)
    fit, left = _fit(bench, say)
    if fit is not None:
        bench = replace(bench, catalog=fit.catalog, known={})
    rows = _answer(bench, say)
    say("conclusions")
    return StudyRun(
        name=form.name, title=form.title, source=form.source, finding=_finding(form, rows), rows=tuple(rows),
        conclusions=tuple(conclude(entry, rows) for entry in form.conclusions),
        fitted=fit.values if fit else (), left_out=left,
        hypotheses=tuple(try_hypothesis(bench, h, fit_rows(form), catalog) for h in form.hypotheses),
        charts=charts(form, rows), drawings=drawings(bench), services=services(bench), method=form.method,
        assumptions=_assumptions(bench, form),
    )  # fmt: skip


def _fit(bench: Bench, say: Progress) -> tuple[calibrate.Fit | None, tuple[Any, ...]]:
    form = bench.form
    if not form.fit:
        return None, ()
    chosen = targets(bench, fit_rows(form))
    say(f"fitting {len(form.fit)} values to {len(chosen)} rows")
    with error_location(form.fit[0].location):
        fit, search = calibrate.calibrate(bench.probe, bench.catalog, form.fit, chosen)
        return fit, calibrate.leave_out(search, fit, say) if form.leave_out else ()


def _answer(bench: Bench, say: Progress) -> list[Observation]:
    """Every row in its order. Simulated ones run beside each other: the native core works outside Python's lock."""
    simulated = [row for row in bench.form.rows if not row.derive and row.scenario.method == "simulation"]
    plans = [bench.plan(row) for row in simulated]
    if simulated:
        say(f"simulating {len(simulated)} rows")
    with ThreadPoolExecutor() as pool:
        answers = pool.map(lambda row, plan: _see(bench, row, plan), simulated, plans)
        seen = {id(row): answer for row, answer in zip(simulated, answers, strict=True)}
    rows: list[Observation] = []
    for row in bench.form.rows:
        if row.derive:
            rows.append(derive(row, rows))
        else:
            rows.append(seen[id(row)] if id(row) in seen else _see(bench, row, bench.plan(row)))
    return rows


def _see(bench: Bench, row: RowForm, plan: Plan) -> Observation:
    with error_location(row.location):
        seen = bench.probe.run(plan)[0]
    note = "; ".join(text for text in (row.note, seen.note) if text)
    return replace(
        seen, study=bench.form.name, table=row.table, scenario=row.label, settings=dict(row.settings), note=note,
        published=row.published, extrapolated=row.extrapolated, role=row.role, measured=find(row, bench.measured),
    )  # fmt: skip


def _finding(form: StudyForm, rows: Sequence[Observation]) -> str:
    """The study's own sentence with this run's {rows}, {compared}, {rms} and {worst}; other braces stay as written."""
    found = residuals(rows)
    values = {
        "{rows}": str(len(rows)),
        "{compared}": str(found.compared),
        "{rms}": "n/a" if found.rms_pct is None else f"{found.rms_pct:.1f}",
        "{worst}": "n/a" if found.worst_pct is None else f"{found.worst_pct:+.1f}",
    }
    return re.sub(r"\{(rows|compared|rms|worst)\}", lambda token: values[token[0]], form.finding)


def _assumptions(bench: Bench, form: StudyForm) -> tuple[str, ...]:
    made = list(form.assumptions)
    for name in form.systems:
        row = next((r for r in form.rows if r.system == name), None)
        if row is not None:
            with error_location(row.location):
                system = bench.system(name, row.settings)
            made += [f"{form.systems[name].system}: {text}" for text in system.assumptions]
    return tuple(dict.fromkeys(made))
