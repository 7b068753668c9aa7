"""Alternative explanations: the same rows with other figures, refitted, so that rival mechanisms can be compared."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lanewise import units
from lanewise.catalog import Catalog, Figure, unit_of
from lanewise.errors import LanewiseError
from lanewise.results.run import Hypothesis
from lanewise.studies.calibrate import calibrate
from lanewise.studies.form import placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.studies.form import HypothesisForm, RowForm
    from lanewise.studies.runner import Bench


def try_hypothesis(bench: Bench, form: HypothesisForm, rows: Sequence[RowForm], catalog: Catalog) -> Hypothesis:
    """The residuals that a hypothesis leaves on the study's fit rows (all published rows if it fits none)."""
    from lanewise.studies.runner import targets

    try:
        changed = _replaced(catalog, form)
        other = replace(bench, catalog=changed, known={})
        chosen = targets(other, rows or [r for r in bench.form.rows if r.published and not r.derive])
        fit = calibrate(bench.probe, changed, form.fit, chosen)
    except LanewiseError as error:
        raise placed(error, form.place) from None
    values = ", ".join(f"{v.key} = {units.show(v.value, _unit(v.unit), 3)}" for v in fit.values)
    note = "; ".join(text for text in (form.note, values) if text)
    worst = 100 * max(fit.residuals, key=abs)
    rms = 100 * math.sqrt(sum(r * r for r in fit.residuals) / len(fit.residuals))
    return Hypothesis(form.name, form.says, rms, worst, len(form.fit), note)


def _replaced(catalog: Catalog, form: HypothesisForm) -> Catalog:
    for name, figures in form.figures.items():
        part = catalog.get(name)
        for key, value in figures.items():
            part = part.with_figure(key, _figure(key, value, form.name))
        catalog = catalog.with_part(part)
    return catalog


def _figure(key: str, value: Any, name: str) -> Figure:
    unit = unit_of(key) or "1"
    source = f"hypothesis '{name}'"
    if value is None or unit == "text":
        return Figure(value, unit, source)
    return Figure(units.parse(value, unit), unit, source, basis="fitted")


def _unit(si: str) -> str:
    return {"B/s": "GB/s", "1/s": "QPS", "s": "ns"}.get(si, si)
