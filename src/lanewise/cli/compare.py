"""`lanewise compare`: two runs, two sources of one run, or two systems of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.cli import terminal
from lanewise.cli.command import Json, option_group
from lanewise.errors import InputError
from lanewise.options.study import CompareOptions

if TYPE_CHECKING:
    from lanewise.results.compare import Comparison
    from lanewise.results.run import Run


@option_group
def compare(options: CompareOptions, json: Json = None) -> None:
    """Compare two runs, two sources, or two systems row by row, or show how the rows of a history drifted."""
    from lanewise import api
    from lanewise.report import json as data
    from lanewise.report.text.compare import render_comparison

    if options.history and not options.devices:
        return _drift(options, json)
    if options.devices and options.right is None:
        hint = "name it: lanewise compare RUN.json OTHER.json"
        raise InputError("--as has no effect without a second run", hint=hint)
    if options.machine is not None:
        raise InputError("--machine without --history", hint="name the folder of runs: --history DIR")
    choices = [value for value in (options.right, options.sources, options.systems) if value is not None]
    if len(choices) != 1:
        cause = "too much to compare at once" if choices else "nothing to compare with"
        hint = (
            "give two RUN.json, or one and --sources published predicted or --systems SYSTEM SYSTEM; or --history DIR"
        )
        raise InputError(cause, hint=hint)
    if options.left is None:
        raise InputError("no run is named", hint="lanewise compare RUN.json --sources published predicted")
    run = api.load_run(options.left)
    if options.right is not None:
        comparison = api.compare(run, options.right, (str(options.left), str(options.right)), options.devices)
    elif options.sources is not None:
        comparison = api.compare_sources(run, *options.sources)
    else:
        assert options.systems is not None
        comparison = api.compare_systems(run, *options.systems)
    if not comparison.pairs:
        cause = f"no row of {comparison.left_name} has its like in {comparison.right_name}"
        raise InputError(cause, hint=(options.right is not None and _other_names(comparison)) or _offer(run))
    return terminal.show(json, data.comparison, render_comparison, comparison)


def _drift(options: CompareOptions, json: str | None) -> None:
    from lanewise import api
    from lanewise.report.drift_json import drift_json
    from lanewise.report.text.drift import render_drift

    if options.right is not None or options.sources is not None or options.systems is not None:
        raise InputError("--history is compared with one run at most", hint="lanewise compare --history DIR RUN.json")
    terminal.show(json, drift_json, render_drift, api.drift(options.history, options.left, options.machine))


def _other_names(comparison: Comparison) -> str:
    """The --as that joins rows of two runs that differ in the names of devices alone; '' if they differ in more."""
    from lanewise.results.compare import names_that_differ

    pairs = [f"--as {word}={device}" for word, device in names_that_differ(comparison).items()]
    return f"if these are the same devices under other names: {' '.join(pairs)}" if pairs else ""


def _offer(run: Run) -> str:
    rows = [*run.rows, *(row for study in run.studies for row in study.rows)]
    systems = ", ".join(sorted({row.system for row in rows if row.system}))
    if not systems:
        return "give two runs of the same measurement, with the same sizes and numbers of threads"
    return f"systems of the run: {systems}; sources: {', '.join(sorted({row.source for row in rows}))}"
