"""Alternative explanations: the same rows with other figures, refitted, so that rival mechanisms can be compared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.catalog import Catalog, Figure
from lanewise.errors import error_location
from lanewise.results.run import Hypothesis
from lanewise.studies.bench import Bench, fittable, targets
from lanewise.studies.calibrate import calibrate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.studies.calibrate import Fit
    from lanewise.studies.form import HypothesisForm, RowForm


def try_hypothesis(bench: Bench, form: HypothesisForm, rows: Sequence[RowForm], catalog: Catalog) -> Hypothesis:
    """The residuals that a hypothesis leaves on the study's fit rows (all published rows if it fits none)."""
    with error_location(form.location):
        changed = _replaced(catalog, form)
        other = replace(bench, catalog=changed, known={})
        chosen = targets(other, rows or [row for row in bench.form.rows if fittable(row) and row.published])
        fit, _ = calibrate(bench.probe, changed, form.fit, chosen)
    seen = [100 * r for r in fit.compared]
    worst = max(seen, key=abs) if seen else None
    return Hypothesis(form.name, form.says, fit.rms_pct if seen else None, worst, len(form.fit), _note(form, fit))


def _note(form: HypothesisForm, fit: Fit) -> str:
    values = []
    for found in fit.values:
        text = f"{found.key} = {units.readable(found.value, found.unit, 3)}"
        values.append(f"{text} (does not bind)" if found.note == "does not bind" else text)
    missing = fit.without_prediction
    left = f"{missing} row{'s' if missing > 1 else ''} without a prediction left out" if missing else ""
    return "; ".join(text for text in (form.note, ", ".join(values), left) if text)


def _replaced(catalog: Catalog, form: HypothesisForm) -> Catalog:
    for entry in form.figures:
        figure = Figure(entry.value, entry.unit, f"hypothesis '{form.name}'", basis="physics")
        if entry.unit != "text" and entry.value is not None:
            figure = replace(figure, basis="fitted")
        with error_location(entry.location):
            catalog = catalog.with_part(catalog.get(entry.part).with_figure(entry.figure, figure))
    return catalog
