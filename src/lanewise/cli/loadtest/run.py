"""`lanewise loadtest run`: one run of LoadGen, with Top-1 or an audit."""

from __future__ import annotations

import typer

from lanewise.cli import terminal
from lanewise.cli.option_group import option_group
from lanewise.cli.shared import Json
from lanewise.options.loadtest import RunOptions


@option_group
def run(options: RunOptions, json: Json = None) -> None:
    """Run LoadGen once at a given load on this machine: for its verdict, for Top-1, or for an audit.

    Exit code 1 if LoadGen calls the run INVALID, if it ended early, or if an audit failed.
    """
    from lanewise import api
    from lanewise.loadtest.run_result import as_data
    from lanewise.report.json import document
    from lanewise.report.text.loadtest import render_run

    try:
        result = api.loadtest_run(
            options, say=terminal.status, warn=terminal.note, tick=_show_tick if terminal.overwrites() else None
        )
    finally:
        terminal.done()
    terminal.show(
        json, lambda: document("loadtest-run", as_data(result)), lambda screen: render_run(as_data(result), screen)
    )
    if not result.passed:
        raise typer.Exit(1)


def _show_tick(issued: int, answered: int, late: int) -> None:
    terminal.status(f"{issued:,} issued, {answered:,} answered, {late:,} late")
