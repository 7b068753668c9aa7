"""`lanewise report`: one offline HTML page of a saved run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lanewise import files
from lanewise.cli import terminal


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN.json", help="Written by study run --json or measure -o.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
) -> None:
    """Write the report of a saved run as one HTML page that needs nothing else."""
    from lanewise import api
    from lanewise.cli import running

    running.writable(output)
    files.write_file(output, api.render_report(api.load_run(run)))
    terminal.note(f"wrote {output}")
