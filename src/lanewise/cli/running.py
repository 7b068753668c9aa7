"""Runs studies one after the other so that neither Ctrl-C nor an error loses a finished one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise import files
from lanewise.cli import terminal
from lanewise.errors import LanewiseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.catalog import Catalog
    from lanewise.results.run import Run


@dataclass(frozen=True, slots=True)
class Outcome:
    """The finished studies, the names of those that are missing, and what stopped the rest."""

    run: Run | None
    missing: tuple[str, ...] = ()
    stopped: LanewiseError | KeyboardInterrupt | None = None


def run_each(names: Sequence[str], catalog: Catalog, json: Path | None, measured: Sequence[str] = ()) -> Outcome:
    """Run each study beside the measured runs; after each one the JSON file holds all that is finished."""
    from lanewise import api
    from lanewise.api.studies import load_measured

    seen = load_measured(measured)
    for name in names:
        api.load_study(name)  # a typing error in the last name shows before the first study runs
    made: Run | None = None
    for i, name in enumerate(names):
        try:
            one = api.run_studies([name], terminal.status, catalog, measured=seen)
        except (LanewiseError, KeyboardInterrupt) as error:
            terminal.done()
            return Outcome(made, tuple(names[i:]), error)
        made = one if made is None else replace(made, studies=made.studies + one.studies)
        if json is not None:
            api.save_run(made, json)
    terminal.done()
    if made is not None:
        _count(made, [run.name for run in seen])
    return Outcome(made)


def _count(run: Run, names: Sequence[str]) -> None:
    """How many rows have their like in each measured run: none is most likely a misunderstanding."""
    from lanewise.studies.measured import matched

    rows = [row for study in run.studies for row in study.rows]
    found = matched(rows)
    for name in dict.fromkeys(names):
        terminal.note(f"{found.get(name, 0)} of {len(rows)} rows stand beside a measured value of {name}")


def writable(*paths: Path | None) -> None:
    """InputError for a file that could not be written, before any work is done."""

    for path in paths:
        if path is not None:
            files.check_writable(path)


def write(run: Run, html: Path | None, json: Path | None) -> None:
    """Write the report and the run where asked."""
    from lanewise import api

    if html is not None:
        terminal.status("writing the report")
        files.write_file(html, api.render_report(run))
        terminal.done()
    if json is not None:
        api.save_run(run, json)
