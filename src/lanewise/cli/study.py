"""`lanewise study`: run built-in or own studies, start a new one, list the built-in ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lanewise import files
from lanewise.cli import terminal
from lanewise.cli.command import Command, Json, QuickGroup, option_group
from lanewise.cli.scenario_status import ScenarioStatus
from lanewise.errors import InputError, LanewiseError, Location
from lanewise.options.study import AccuracyOptions, NewStudyOptions, StudyOptions
from lanewise.options.workers import WorkerOptions
from lanewise.signal_deferral import SignalDeferral

if TYPE_CHECKING:
    from lanewise.results.run import Run, StudyRun

app = typer.Typer(
    cls=QuickGroup, help="Run studies: a published table compared with predictions.", no_args_is_help=True
)


@dataclass(frozen=True, slots=True)
class StudyRuns:
    """The finished studies, the names of the others, and the error or Ctrl-C that stopped them."""

    run: Run | None
    missing: tuple[str, ...] = ()
    error: LanewiseError | KeyboardInterrupt | None = None


@app.command("run", cls=Command)
@option_group
def run(options: StudyOptions, workers: WorkerOptions, json: Json = None) -> None:
    """Run studies and compare every row with its published value; Ctrl-C keeps the finished studies."""
    names = _names(options, json)
    result = StudyRuns(None)
    try:
        with SignalDeferral() as deferral:
            result = _run(names, options, workers, json, deferral)
            if result.missing:
                terminal.note(f"not finished: {', '.join(result.missing)}")
            if result.run is not None:
                _write(result.run, options.output, json)  # first, as whoever reads the tables may leave
    except KeyboardInterrupt as error:  # it has waited until the files were written
        result = replace(result, error=result.error or error)
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
    terminal.show(json, data.studies, render_studies, forms)


@app.command("new", cls=Command)
@option_group
def new(options: NewStudyOptions) -> None:
    """Write a commented study and its system to the current folder; both run as they are."""
    from lanewise import api

    study, system = api.new_study(options.name)
    texts = {Path(f"{options.name}.yaml"): study, Path(f"{options.name}-system.yaml"): system}
    for path in texts:
        if path.exists():
            cause = "exists already and is not overwritten"
            raise InputError(cause, location=Location(str(path)), hint="choose another name")
    for path, text in texts.items():
        files.write_file(path, text)
        terminal.out(str(path))
    terminal.note(f"now: lanewise study run {options.name}.yaml")


@app.command("accuracy", cls=Command)
@option_group
def accuracy(options: AccuracyOptions) -> None:
    """Write the residuals of a run as a Markdown page."""
    from lanewise import api

    terminal.write(options.output, api.study_accuracy(options.run))


def _names(options: StudyOptions, json: str | None) -> list[str]:
    """The studies to run; an error in the last of them, or a file that cannot be written, shows before the first."""
    from lanewise import api
    from lanewise.report.figure import import_charts

    for path in (options.output, None if json == "-" else json):
        if path is not None:
            files.check_writable(path)
    if options.output is not None:
        import_charts()
    expanded = [study for name in options.names for study in (api.ready_studies() if name == "all" else [name])]
    names = list(dict.fromkeys(expanded))
    for name in names:
        api.load_study(name)
    return names


def _run(
    names: Sequence[str], options: StudyOptions, workers: WorkerOptions, json: str | None,
    deferral: SignalDeferral,
) -> StudyRuns:  # fmt: skip
    """Run each study, which a signal interrupts; after each one the JSON file holds all that are finished."""
    from lanewise import api
    from lanewise.api.provenance import new_run
    from lanewise.api.studies import each_study, load_measured

    catalog, measured = api.load_catalog(options.parts), load_measured(options.measured)
    status = ScenarioStatus()
    status.begin(workers)
    studies: list[StudyRun] = []
    results = each_study(names, terminal.status, catalog, None, measured, workers, status.show)
    failure: LanewiseError | KeyboardInterrupt | None = None
    try:
        for _ in deferral.collect(results, studies):
            if json not in (None, "-"):
                api.save_run(new_run(studies=tuple(studies)), str(json))
    except (LanewiseError, KeyboardInterrupt) as error:
        failure = error
    terminal.done()
    finished = new_run(studies=tuple(studies)) if studies else None
    if finished is not None and failure is None:
        _count(finished, [entry.name for entry in measured])
    return StudyRuns(finished, tuple(names[len(studies) :]), failure)


def _count(run: Run, names: Sequence[str]) -> None:
    """Say how many rows each measured run has a value for: none is most likely a misunderstanding."""
    from lanewise.studies.measured import matched

    rows = [row for study in run.studies for row in study.rows]
    counts = matched(rows)
    for name in dict.fromkeys(names):
        terminal.note(f"{counts.get(name, 0)} of {len(rows)} rows have a measured value in {name}")


def _write(run: Run, html: Path | None, json: str | None) -> None:
    """Write the report and the run file, if named."""
    from lanewise import api

    if html is not None:
        terminal.status("writing the report")
        files.write_file(html, api.render_report(run))
        terminal.done()
    if json not in (None, "-"):
        api.save_run(run, str(json))


def _show(run: Run, rows: bool, json: str | None) -> None:
    from lanewise.report.text.run import render_run
    from lanewise.results.codec import run_to_json

    if json == "-":
        terminal.out(run_to_json(run).rstrip("\n"))
    else:
        terminal.print_text(render_run, run, rows)


def _conclude(result: StudyRuns, check: bool) -> None:
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
