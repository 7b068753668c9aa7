"""Runs studies one after the other so that neither Ctrl-C nor an error loses a finished one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lanewise import files
from lanewise.cli import terminal
from lanewise.errors import LanewiseError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lanewise.options.study import StudyOptions
    from lanewise.results.run import Run


@dataclass(frozen=True, slots=True)
class StudyRuns:
    """The finished studies, the names of the others, and the error or Ctrl-C that stopped them."""

    run: Run | None
    missing: tuple[str, ...] = ()
    error: LanewiseError | KeyboardInterrupt | None = None


def run(options: StudyOptions, json: str | None) -> StudyRuns:
    """Run each study; after each one the JSON file holds all that are finished."""
    from lanewise import api
    from lanewise.api.studies import load_measured

    for path in (options.output, None if json == "-" else json):
        if path is not None:
            files.check_writable(path)
    expanded = [study for name in options.names for study in (api.ready_studies() if name == "all" else [name])]
    names = list(dict.fromkeys(expanded))
    catalog, measured = api.load_catalog(options.parts), load_measured(options.measured)
    for name in names:
        api.load_study(name)  # a typing error in the last name shows before the first study runs
    finished: Run | None = None
    for number, name in enumerate(names):
        try:
            result = api.run_studies([name], terminal.status, catalog, measured=measured)
        except (LanewiseError, KeyboardInterrupt) as error:
            terminal.done()
            return StudyRuns(finished, tuple(names[number:]), error)
        finished = result if finished is None else replace(finished, studies=finished.studies + result.studies)
        if json not in (None, "-"):
            api.save_run(finished, str(json))
    terminal.done()
    if finished is not None:
        _count(finished, [entry.name for entry in measured])
    return StudyRuns(finished)


def _count(run: Run, names: Sequence[str]) -> None:
    """Say how many rows each measured run has a value for: none is most likely a misunderstanding."""
    from lanewise.studies.measured import matched

    rows = [row for study in run.studies for row in study.rows]
    counts = matched(rows)
    for name in dict.fromkeys(names):
        terminal.note(f"{counts.get(name, 0)} of {len(rows)} rows have a measured value in {name}")


def write(run: Run, html: Path | None, json: str | None) -> None:
    """Write the report and the run where asked."""
    from lanewise import api

    if html is not None:
        terminal.status("writing the report")
        files.write_file(html, api.render_report(run))
        terminal.done()
    if json not in (None, "-"):
        api.save_run(run, str(json))
