"""Rival hypotheses: the same rows with other figures, refitted, so that mechanisms can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise import units
from lanewise.catalog import Catalog, Figure
from lanewise.errors import error_location
from lanewise.results.run import Hypothesis
from lanewise.studies.calibrate import CalibrationFit, calibrate
from lanewise.studies.context import StudyContext, fittable, targets
from lanewise.studies.form import HypothesisForm, RowForm


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
        figure = Figure(entry.value, entry.unit, f"hypothesis '{form.name}'", basis="physics")
        if entry.unit != "text" and entry.value is not None:
            figure = replace(figure, basis="fitted")
        with error_location(entry.location):
            catalog = catalog.with_part(catalog.get(entry.part).with_figure(entry.figure, figure))
    return catalog
