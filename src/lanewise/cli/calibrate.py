"""`lanewise calibrate`: fit unknown figures of parts to rows of studies, and predict what was left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lanewise import files
from lanewise.cli import options, terminal

if TYPE_CHECKING:
    from lanewise.studies.calibrate import CalibrationFit


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
    from lanewise.report import json
    from lanewise.report.text.calibrate import render_calibration

    running.writable(output)
    found, left = api.calibrate(studies, fit, table or (), terminal.status, options.catalog(parts))
    terminal.done()
    terminal.out_json(json.calibration(found, left)) if as_json else terminal.print_text(
        render_calibration, found, left
    )
    if output is not None:
        files.write_file(output, _part_file(found))
        terminal.note(f"wrote {output}; use it with --parts {output}")


def _part_file(found: CalibrationFit) -> str:
    """Only the parts that were fitted, so that the file stays short and the rest comes from the catalogue."""
    from lanewise import api
    from lanewise.catalog import Catalog

    names = [value.key.split()[0] for value in found.values]
    parts = [found.catalog.get(name) for name in names]
    return api.write_parts(Catalog({part.name: part for part in parts}))
