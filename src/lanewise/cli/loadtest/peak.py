"""`lanewise loadtest peak`: the largest rate that keeps the bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from lanewise.cli import terminal
from lanewise.cli.option_group import option_group
from lanewise.cli.shared import Json
from lanewise.options.loadtest import PeakOptions

if TYPE_CHECKING:
    from lanewise.loadtest.load_run import LoadGenResult
    from lanewise.loadtest.peak import SearchProgress


@option_group
def peak(options: PeakOptions, json: Json = None) -> None:
    """Find the largest rate of MLPerf's Server scenario that LoadGen calls VALID on this machine.

    The peak is predicted first, then searched for. Ctrl-C keeps the finished runs; to resume, repeat the command with
    the same --results.
    Exit code 1 if no rate is VALID.
    """
    from lanewise import api
    from lanewise.loadtest.result import as_data
    from lanewise.report.json import document
    from lanewise.report.text.loadtest import render_peak

    try:
        result = api.loadtest_peak(
            options, say=terminal.status, warn=terminal.note, on_progress=show_progress, on_run=_show_run
        )
    finally:
        terminal.done()
    terminal.show(
        json, lambda: document("loadtest-peak", as_data(result)), lambda screen: render_peak(as_data(result), screen)
    )
    if result.best is None:
        raise typer.Exit(1)


def show_progress(progress: SearchProgress) -> None:
    """The run of a search that is about to begin."""
    load = f"{progress.load.qps:,.0f} queries/s" if progress.role == "search" else progress.role
    time = f"about {progress.remaining:.0f} s left of this search"
    terminal.status(f"run {progress.number}: {load} for {progress.load.seconds:.1f} s; {time}")


def _show_run(run: LoadGenResult) -> None:
    if run.role == "search" and not terminal.overwrites():
        verdict = "VALID" if run.valid else "not valid"
        terminal.status(f"{run.load.qps:,.0f} queries/s {verdict}")
