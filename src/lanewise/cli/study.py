"""`lanewise study`: run built-in or own studies, start a new one, list the built-in ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from lanewise import files
from lanewise.cli import study_runs, terminal
from lanewise.cli.option_group import option_group
from lanewise.cli.shared import Command, Json, QuickGroup
from lanewise.options.study import AccuracyOptions, NewStudyOptions, StudyOptions

if TYPE_CHECKING:
    from lanewise.results.run import Run

app = typer.Typer(
    cls=QuickGroup, help="Run studies: a published table compared with predictions.", no_args_is_help=True
)


@app.command("run", cls=Command)
@option_group
def run(options: StudyOptions, json: Json = None) -> None:
    """Run studies and compare every row with its published value; Ctrl-C keeps the finished studies."""
    result = study_runs.run(options, json)
    if result.missing:
        terminal.note(f"not finished: {', '.join(result.missing)}")
    if result.run is not None:
        study_runs.write(result.run, options.output, json)  # first, as whoever reads the tables may leave
    try:
        if result.run is not None:
            _show(result.run, options.rows, json)
    finally:
        for path in (options.output, json):
            if path not in (None, "-") and result.run is not None:
                terminal.note(f"wrote {path}")
        _conclude(result, options.check)


@app.command("list", cls=Command)
@option_group
def list_(json: Json = None) -> None:
    """List the built-in studies."""
    from lanewise import api
    from lanewise.report import json as data
    from lanewise.report.text.run import render_studies

    forms = [(name, api.load_study(name)) for name in api.ready_studies()]
    terminal.show(json, lambda: data.studies(forms), lambda screen: render_studies(forms, screen))


@app.command("new", cls=Command)
@option_group
def new(options: NewStudyOptions) -> None:
    """Write a commented study and its system to the current folder; both run as they are."""
    from lanewise.cli import starter

    for path in starter.write(options.name):
        terminal.out(str(path))
    terminal.note(f"now: lanewise study run {options.name}.yaml")


@app.command("accuracy", cls=Command)
@option_group
def accuracy(options: AccuracyOptions) -> None:
    """Write the residuals of a run as a Markdown page, or with -o FILE.json the rms error of each basis."""
    from lanewise import api
    from lanewise.report.accuracy import basis_summary

    if options.output is not None and options.output.suffix == ".json":
        files.write_file(options.output, terminal.json_text(basis_summary(api.load_run(options.run))) + "\n")
        return terminal.note(f"wrote {options.output}")
    text = api.accuracy(options.run)
    if options.output is None:
        return terminal.out(text.rstrip("\n"))
    files.write_file(options.output, text)
    return terminal.note(f"wrote {options.output}")


def _show(run: Run, rows: bool, json: str | None) -> None:
    from lanewise.report.text.run import render_run
    from lanewise.results.codec import run_to_json

    if json == "-":
        terminal.out(run_to_json(run).rstrip("\n"))
    else:
        terminal.print_text(render_run, run, rows)


def _conclude(result: study_runs.StudyRuns, check: bool) -> None:
    """Raise what stopped the run, or exit with 1 if --check asks for a verdict that is negative."""
    if result.error is not None:
        raise result.error
    if check and result.run is not None and not _holds(result.run):
        raise typer.Exit(1)


def _holds(run: Run) -> bool:
    failed = [conclusion for study in run.studies for conclusion in study.conclusions if not conclusion.holds]
    for conclusion in failed:
        word = "could not be evaluated" if conclusion.holds is None else "does not hold"
        terminal.note(f"{word}: {conclusion.says} ({conclusion.shown})")
    return not failed
