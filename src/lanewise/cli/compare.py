"""`lanewise compare`: two runs, two sources of one run, or two systems of one run, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import terminal
from lanewise.cli.options import Json
from lanewise.errors import InputError

if TYPE_CHECKING:
    from lanewise.results.run import Run


def compare(
    left: Annotated[Path, typer.Argument(metavar="RUN.json", help="Written by study run --json or measure -o.")],
    right: Annotated[Path | None, typer.Argument(metavar="[OTHER.json]", help="A second run.")] = None,
    sources: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="ONE OTHER", help="published, predicted, measured, extrapolated."),
    ] = None,
    systems: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="ONE OTHER", help="Two systems that answer the same rows."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Lay two runs, two sources, or two systems side by side and say how far they lie apart."""
    from lanewise import api

    if sum(x is not None for x in (right, sources, systems)) != 1:
        raise InputError(
            "nothing to compare with" if not (right or sources or systems) else "too much to compare at once",
            hint="give a second RUN.json, or --sources published predicted, or --systems ONE OTHER",
        )
    run = api.load_run(left)
    if right is not None:
        found = api.compare(run, right, (str(left), str(right)))
    elif sources is not None:
        found = api.compare_sources(run, *sources)
    else:
        assert systems is not None
        found = api.compare_systems(run, *systems)
    if not found.pairs:
        raise InputError(f"no row of {found.left_name} has its like in {found.right_name}", hint=_offer(run))
    from lanewise.report import json
    from lanewise.report.text.compare import render_comparison

    terminal.out_json(json.comparison(found)) if as_json else terminal.print_text(render_comparison, found)


def _offer(run: Run) -> str:
    rows = [*run.rows, *(row for study in run.studies for row in study.rows)]
    systems = ", ".join(sorted({row.system for row in rows if row.system}))
    if not systems:
        return "give two runs of the same measurement, with the same sizes and numbers of threads"
    return f"systems of the run: {systems}; sources: {', '.join(sorted({row.source for row in rows}))}"
