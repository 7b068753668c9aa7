"""`lanewise calibrate` as text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lanewise import units
from lanewise.report.screen import PIPE, Screen
from lanewise.report.table import Column, Table, TableCell, number_columns, render_table
from lanewise.report.words import grade
from lanewise.results.run import FittedValue, LeftOut
from lanewise.studies.calibrate import CalibrationFit


def render_calibration(fit: CalibrationFit, left_out: Sequence[LeftOut], screen: Screen = PIPE) -> str:
    """Fitted figures, and the residuals of the rows."""
    columns = [Column("figure"), *number_columns("value", "standard error"), *number_columns("start", drop=1),
               Column("note", drop=2, wrap=True)]  # fmt: skip
    figures = Table(columns, [_value(value) for value in fit.values])
    rows = Table([Column("study", drop=2), Column("table", drop=1, wrap=True), Column("row", wrap=True),
                  *number_columns("residual")])  # fmt: skip
    for target, residual in zip(fit.targets, fit.residuals, strict=True):
        text = f"{100 * residual:+.1f} %" if math.isfinite(residual) else "no prediction"
        rows.add(*target.where, TableCell(text, grade(100 * residual) if math.isfinite(residual) else "far"))
    lines = [render_table(figures, screen), ""]
    lines += [f"fitted to {len(fit.compared)} rows, rms residual {fit.rms_pct:.1f} %", render_table(rows, screen)]
    if left_out:
        groups = Table([Column("left out", wrap=True), *number_columns("rows", "rms", "worst")])
        for group in left_out:
            groups.add(group.group, str(group.rows), f"{group.rms_pct:.1f} %", f"{group.worst_pct:+.1f} %")
        lines += ["", "each group left out, predicted by a fit to the others:", render_table(groups, screen)]
    return "\n".join(lines)


def _value(value: FittedValue) -> tuple[str, ...]:
    error = "unknown" if value.spread is None else f"±{100 * value.spread:.1f} %"
    fitted, start = (units.readable(number, value.unit) for number in (value.value, value.start))
    return (value.key, fitted, error, start, value.note)
