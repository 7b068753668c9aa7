"""`lanewise calibrate` as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.report.table import text_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.results.run import FittedValue, LeftOut
    from lanewise.studies.calibrate import CalibrationFit


def render_calibration(found: CalibrationFit, left: Sequence[LeftOut]) -> str:
    """Fitted figures, and the residuals of the rows."""
    residuals = [f"{100 * r:+.1f} %" if math.isfinite(r) else "no prediction" for r in found.residuals]
    lines = [
        text_table(
            ("figure", "value", "spread", "start", "note"),
            [_value(v) for v in found.values],
            right=("value", "spread", "start"),
        )
    ]
    lines += ["", f"fitted to {len(found.compared)} rows, rms residual {found.rms_pct:.1f} %"]
    rows = [(*each.where, residual) for each, residual in zip(found.targets, residuals, strict=True)]
    lines.append(text_table(("study", "table", "row", "residual"), rows, right=("residual",)))
    if left:
        lines += ["", "left out, fitted to the rest, then predicted:"]
        groups = [(g.group, str(g.rows), f"{g.rms_pct:.1f} %", f"{g.worst_pct:+.1f} %") for g in left]
        heads = ("left out", "rows", "rms", "worst")
        lines.append(text_table(heads, groups, right=heads[1:]))
    return "\n".join(lines)


def _value(value: FittedValue) -> tuple[str, ...]:
    spread = "unknown" if value.spread is None else f"+-{100 * value.spread:.1f} %"
    found, start = (units.readable(number, value.unit) for number in (value.value, value.start))
    return (value.key, found, spread, start, value.note)
