"""`lanewise calibrate`: fit unknown figures of parts to rows of studies, and predict what was left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise import files
from lanewise.cli import terminal
from lanewise.cli.command import Json, option_group
from lanewise.options.study import CalibrateOptions

if TYPE_CHECKING:
    from lanewise.studies.calibrate import CalibrationFit


@option_group
def calibrate(options: CalibrateOptions, json: Json = None) -> None:
    """Fit unknown figures of parts to published or measured rows."""
    from lanewise import api
    from lanewise.report import json as data
    from lanewise.report.text.run import render_calibration

    if options.output is not None:
        files.check_writable(options.output)
    catalog = api.load_catalog(options.parts)
    fit, left_out = api.calibrate(options.studies, options.fit, options.table, terminal.status, catalog)
    terminal.done()
    terminal.show(json, data.calibration, render_calibration, fit, left_out)
    if options.output is not None:
        terminal.write(options.output, _part_file(fit), f"; use it with --parts {options.output}")


def _part_file(fit: CalibrationFit) -> str:
    """The fitted parts alone, so that the file stays short and the rest comes from the catalogue."""
    from lanewise import api
    from lanewise.catalog import Catalog

    names = [value.key.split()[0] for value in fit.values]
    parts = [fit.catalog.get(name) for name in names]
    return api.write_parts(Catalog({part.name: part for part in parts}))
