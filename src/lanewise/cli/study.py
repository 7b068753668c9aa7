"""`lanewise study`: run ready or own studies, start a new one, list the ready ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise import files
from lanewise.cli import options, terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.cli.running import Outcome
    from lanewise.results.run import Run

app = typer.Typer(
    cls=options.QuickGroup, help="Run studies: a published table beside what is predicted.", no_args_is_help=True
)


@app.command("run")
def run(
    names: options.StudyNames,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the report, one HTML page.")
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write everything found, for report and compare."),
    ] = None,
    measured: Annotated[
        list[str] | None,
        typer.Option(metavar="[SYSTEM=]RUN.json", help="Lay rows beside a run of measure, loadtest; may be repeated."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 unless every conclusion holds.")] = False,
    rows: Annotated[bool, typer.Option("--rows", help="Show every row, not only those that are far off.")] = False,
    parts: options.Parts = None,
) -> None:
    """Run studies and compare every row with its published value; Ctrl-C keeps what is finished."""
    from lanewise.cli import running

    wanted = _expand(names)
    running.writable(output, json)
    outcome = running.run_each(wanted, options.catalog(parts), json, measured or ())
    if outcome.missing:
        terminal.note(f"not finished: {', '.join(outcome.missing)}")
    if outcome.run is not None:
        running.write(outcome.run, output, json)  # first, as whoever reads the tables may leave
    try:
        if outcome.run is not None:
            _show(outcome.run, rows)
    finally:
        for path in (output, json):
            if path is not None and outcome.run is not None:
                terminal.note(f"wrote {path}")
        _conclude(outcome, check)


@app.command("list")
def list_(as_json: options.Json = False) -> None:
    """List the ready studies."""
    from lanewise import api
    from lanewise.report import json
    from lanewise.report.text.run import render_studies

    forms = [(name, api.load_study(name)) for name in api.ready_studies()]
    if as_json:
        return terminal.out_json(json.studies(forms))
    terminal.print_text(render_studies, forms)
    return None


@app.command("new")
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Letters, digits and '-'; the files are called after it.")
    ],
) -> None:
    """Write a commented study and its system to the current folder; both run as they are."""
    from lanewise.cli import starter

    for path in starter.write(name):
        terminal.out(str(path))
    terminal.note(f"now: lanewise study run {name}.yaml")


@app.command("accuracy")
def accuracy(
    run: Annotated[Path, typer.Argument(metavar="RUN.json", help="Written by lanewise study run --json.")],
    output: options.Output = None,
) -> None:
    """Write the residuals of a run as a Markdown page, or with -o FILE.json the rms error of each basis."""
    from lanewise import api
    from lanewise.report.basis import basis_summary

    if output is not None and output.suffix == ".json":
        files.write_file(output, terminal.json_text(basis_summary(api.load_run(run))) + "\n")
        return terminal.note(f"wrote {output}")
    text = api.accuracy(run)
    if output is None:
        return terminal.out(text.rstrip("\n"))
    files.write_file(output, text)
    terminal.note(f"wrote {output}")
    return None


def _expand(names: Sequence[str]) -> list[str]:
    """`all` stands for the ready studies; each study runs once."""
    from lanewise import api

    wanted = [each for name in names for each in (api.ready_studies() if name == "all" else [name])]
    return list(dict.fromkeys(wanted))


def _show(run: Run, rows: bool) -> None:
    from lanewise.report.text.run import render_run

    terminal.print_text(render_run, run, rows)


def _conclude(outcome: Outcome, check: bool) -> None:
    """Raise what stopped the run, or exit with 1 if a verdict that was asked for is negative."""
    if outcome.stopped is not None:
        raise outcome.stopped
    if check and outcome.run is not None and not _holds(outcome.run):
        raise typer.Exit(1)


def _holds(run: Run) -> bool:
    failed = [c for s in run.studies for c in s.conclusions if not c.holds]
    for conclusion in failed:
        word = "could not be evaluated" if conclusion.holds is None else "does not hold"
        terminal.note(f"{word}: {conclusion.says} ({conclusion.shown})")
    return not failed
