"""What a study fits: its own rows, rows named on the command line, and rival hypotheses with other figures."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from lanewise import units
from lanewise.catalog import Catalog, Figure
from lanewise.errors import FormatError, InputError, Location, error_location
from lanewise.results.plan import STEADY, Service, StudyProbe
from lanewise.results.run import Hypothesis, LeftOut
from lanewise.studies.calibrate import CalibrationFit, CalibrationTarget, Progress, calibrate, leave_out
from lanewise.studies.context import StudyContext, Systems
from lanewise.studies.form import FitForm, HypothesisForm, RowForm, StudyForm
from lanewise.studies.sections import check_target, fitted_unit

_UNKNOWN = re.compile(
    r"^\s*(?P<part>\S+)\s+(?P<figure>\S+)\s+(?P<low>\S+?)\s*\.\.\s*(?P<high>[\d.eE+-]+)\s*(?P<unit>\S*)\s*$"
)


def parse_unknown(text: str) -> FitForm:
    """Read 'l40s service.resnet50.server 10000..100000 QPS'; FormatError or UnknownName if it cannot be."""
    match = _UNKNOWN.match(text)
    if not match:
        hint = "write: PART FIGURE LOW..HIGH UNIT, such as 'l40s engine.h2d.gen4 15..30 GB/s'"
        raise FormatError(f"'{text}' is not an unknown to fit", location=Location("--fit"), hint=hint)
    location = Location("--fit")
    with error_location(location):
        unit = fitted_unit(match["figure"])
        low, high = (units.parse(f"{match[end]} {match['unit']}".strip(), unit) for end in ("low", "high"))
    if not 0 < low < high < math.inf:
        cause = f"'{text}': the range must rise from above zero and be finite"
        raise FormatError(cause, location=location, hint="write LOW..HIGH")
    return FitForm(match["part"], match["figure"], math.sqrt(low) * math.sqrt(high), low, high, unit, "", location)


def calibrate_to_studies(
    forms: Sequence[tuple[StudyForm, Systems]],
    unknowns: Sequence[FitForm],
    tables: Sequence[str],
    catalog: Catalog,
    probe: StudyProbe,
    say: Progress = lambda _: None,
) -> tuple[CalibrationFit, tuple[LeftOut, ...]]:
    """Fit `unknowns` to the published rows of the chosen tables (all if none); InputError if no row is left to use.

    A study's own fits are not applied: only what is named here is fitted. Rows of one label are left out together.
    """
    chosen: list[CalibrationTarget] = []
    for form, read_system in forms:
        rows = [r for r in form.rows if (not tables or r.table in tables) and fittable(r)]
        labelled = [replace(r, group=r.group or f"{r.table} {r.label}") for r in rows]
        chosen += targets(StudyContext(form, probe, catalog, read_system), labelled)
    if not chosen:
        names = sorted({r.table for form, _ in forms for r in form.rows})
        raise InputError("no published row to fit to", hint=f"tables: {', '.join(names)}")
    say(f"fitting {len(unknowns)} figures to {len(chosen)} rows")
    fit, search = calibrate(probe, catalog, unknowns, chosen)
    return fit, leave_out(search, fit, say)


def fit_rows(form: StudyForm) -> list[RowForm]:
    """The rows that the study fits to: those of its fit tables that can be fitted to."""
    return [row for row in form.rows if row.table in form.fit_tables and fittable(row)]


def fittable(row: RowForm) -> bool:
    """Whether a row is a prediction of its own with a published value that the source did not extrapolate."""
    own = row.role == "prediction" and not row.derive and not row.extrapolated
    return own and row.published is not None


def targets(context: StudyContext, rows: Sequence[RowForm]) -> list[CalibrationTarget]:
    """Fit targets of rows, grouped by the rows' group; FormatError for a row that was published as 0."""
    chosen = []
    for row in rows:
        check_target(row)
        settings = " ".join(f"{key}={value}" for key, value in row.settings.items() if key not in row.label)
        where = (context.form.name, row.table, f"{row.label} {settings}".strip())
        # A fit predicts thousands of times, so it always predicts the steady state.
        if isinstance(row.scenario, Service):
            row = replace(row, scenario=replace(row.scenario, method=STEADY))
        chosen.append(CalibrationTarget(context.plan(row), row.published or 0.0, row.group, where))
    return chosen


def try_hypothesis(
    context: StudyContext, form: HypothesisForm, rows: Sequence[RowForm], catalog: Catalog
) -> Hypothesis:
    """The residuals that a hypothesis leaves on the study's fit rows (all published rows if it fits none)."""
    with error_location(form.location):
        changed = _replaced(catalog, form)
        changed_context = replace(context, catalog=changed, systems={})
        chosen = targets(changed_context, rows or [row for row in context.form.rows if fittable(row) and row.published])
        fit, _ = calibrate(context.probe, changed, form.fit, chosen)
    residuals = [100 * r for r in fit.compared]
    worst = max(residuals, key=abs, default=None)
    rms = fit.rms_pct if residuals else None
    return Hypothesis(form.name, form.says, rms, worst, len(form.fit), _note(form, fit))


def _note(form: HypothesisForm, fit: CalibrationFit) -> str:
    values = []
    for value in fit.values:
        text = f"{value.key} = {units.readable(value.value, value.unit, 3)}"
        values.append(f"{text} (does not bind)" if value.note == "does not bind" else text)
    missing = fit.without_prediction
    omitted = f"{missing} row{'s' if missing > 1 else ''} without a prediction left out" if missing else ""
    return "; ".join(text for text in (form.note, ", ".join(values), omitted) if text)


def _replaced(catalog: Catalog, form: HypothesisForm) -> Catalog:
    for entry in form.figures:
        number = entry.unit != "text" and entry.value is not None
        figure = Figure(entry.value, entry.unit, f"hypothesis '{form.name}'", basis="fitted" if number else "physics")
        with error_location(entry.location):
            catalog = catalog.with_part(catalog.get(entry.part).with_figure(entry.figure, figure))
    return catalog
