"""`lanewise calibrate`: fit unknown figures of parts to rows of studies, and predict what was left out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise import files, units
from lanewise.cli import options, terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.results.run import FittedValue, LeftOut
    from lanewise.studies.calibrate import Fit


def calibrate(
    studies: options.StudyNames,
    fit: Annotated[
        list[str],
        typer.Option(
            "--fit",
            metavar="'PART FIGURE LOW..HIGH UNIT'",
            help="An unknown, such as 'l40s engine.h2d.gen4 15..30 GB/s'; may be repeated.",
        ),
    ],
    table: Annotated[
        list[str] | None, typer.Option("--table", help="Fit to the rows of this table only; may be repeated.")
    ] = None,
    output: options.Output = None,
    parts: options.Parts = None,
    as_json: options.Json = False,
) -> None:
    """Fit figures to published or measured rows; -o writes a part file for --parts."""
    from lanewise import api
    from lanewise.cli import running

    running.writable(output)
    found, left = api.calibrate(studies, fit, table or (), terminal.status, options.catalog(parts))
    terminal.done()
    terminal.out_json(_data(found, left)) if as_json else terminal.out(_text(found, left))
    if output is not None:
        files.write_file(output, _part_file(found))
        terminal.note(f"wrote {output}; use it with --parts {output}")


def _text(found: Fit, left: Sequence[LeftOut]) -> str:
    residuals = [f"{100 * r:+.1f} %" if math.isfinite(r) else "no prediction" for r in found.residuals]
    lines = [
        terminal.table(
            ("figure", "value", "spread", "start", "note"),
            [_value(v) for v in found.values],
            right=("value", "spread", "start"),
        )
    ]
    lines += ["", f"fitted to {len(found.compared)} rows, rms residual {found.rms_pct:.1f} %"]
    rows = [(*each.where, residual) for each, residual in zip(found.targets, residuals, strict=True)]
    lines.append(terminal.table(("study", "table", "row", "residual"), rows, right=("residual",)))
    if left:
        lines += ["", "left out, fitted to the rest, then predicted:"]
        groups = [(g.group, str(g.rows), f"{g.rms_pct:.1f} %", f"{g.worst_pct:+.1f} %") for g in left]
        heads = ("left out", "rows", "rms", "worst")
        lines.append(terminal.table(heads, groups, right=heads[1:]))
    return "\n".join(lines)


def _value(value: FittedValue) -> tuple[str, ...]:
    spread = "unknown" if value.spread is None else f"+-{100 * value.spread:.1f} %"
    found, start = (units.readable(number, value.unit) for number in (value.value, value.start))
    return (value.key, found, spread, start, value.note)


def _data(found: Fit, left: Sequence[LeftOut]) -> dict[str, Any]:
    from lanewise.results.codec import encode

    rows = []
    for each, residual in zip(found.targets, found.residuals, strict=True):
        study, table, row = each.where
        known = 100 * residual if math.isfinite(residual) else None
        rows.append({"study": study, "table": table, "row": row, "residual_pct": known})
    return {
        "fitted": [encode(value, "fitted") for value in found.values],
        "rms_pct": found.rms_pct if math.isfinite(found.rms_pct) else None,
        "used": rows,
        "left_out": [encode(group, "left_out") for group in left],
    }


def _part_file(found: Fit) -> str:
    """Only the parts that were fitted, so that the file stays short and the rest comes from the catalogue."""
    from lanewise import api
    from lanewise.catalog import Catalog

    names = [value.key.split()[0] for value in found.values]
    parts = [found.catalog.get(name) for name in names]
    return api.write_parts(Catalog({part.name: part for part in parts}))
