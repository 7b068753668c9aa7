"""Calibration against the published or measured rows of study files, with unknowns named on the command line."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.errors import FormatError, InputError, Location, error_location
from lanewise.studies.calibrate import CalibrationFit, calibrate, leave_out
from lanewise.studies.context import StudyContext, fittable, targets
from lanewise.studies.form import FitForm, StudyForm
from lanewise.studies.sections import fitted_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.catalog import Catalog
    from lanewise.results.plan import StudyProbe
    from lanewise.results.run import LeftOut
    from lanewise.studies.calibrate import CalibrationTarget, Progress
    from lanewise.studies.context import Systems

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
