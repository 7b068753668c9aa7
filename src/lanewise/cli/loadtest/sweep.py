"""`lanewise loadtest sweep`: the peak at several numbers of GPUs, batches, copy streams, or paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise import files
from lanewise.cli import terminal
from lanewise.cli.loadtest.peak import show_progress
from lanewise.cli.option_group import option_group
from lanewise.cli.shared import Json
from lanewise.options.loadtest import SweepOptions

if TYPE_CHECKING:
    from lanewise.loadtest.sweep import SweepResult


@option_group
def sweep(options: SweepOptions, json: Json = None) -> None:
    """Find the peak at each point of a sweep and compare the points.

    A point that cannot be measured is a row with its reason. Ctrl-C keeps the finished points; to resume, repeat the
    command with the same --results.
    """
    from lanewise import api

    results: list[SweepResult] = []
    try:
        for result in api.loadtest_sweep(options, say=terminal.status, warn=terminal.note, on_progress=show_progress):
            results.append(result)  # noqa: PERF402 - an interrupt keeps the finished points
    finally:
        terminal.done()
        if results:
            _write(options, results, json)


def _write(options: SweepOptions, results: list[SweepResult], json: str | None) -> None:
    from lanewise import api
    from lanewise.report.json import document
    from lanewise.report.sweep import as_chart
    from lanewise.report.text.loadtest import render_sweep

    data = api.sweep_data(options, results)
    if options.output is not None:
        api.save_run(api.as_sweep_run(options, results), options.output)
    terminal.show(json, lambda: document("loadtest-sweep", data), lambda screen: render_sweep(data, screen))
    if options.chart is not None:
        files.write_file(options.chart, as_chart(data))
        terminal.note(f"wrote {options.chart}")
