"""Records the samples of every measuring verb: writes each one, shows progress, writes the run, prints a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise import files
from lanewise.cli import terminal
from lanewise.errors import CannotMeasure, LanewiseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lanewise.results.observation import Observation
    from lanewise.results.run import Run
    from lanewise.results.sample import Sample

RunFile = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="RUN.json", help="Write the run, for check, report, compare.")
]
SampleFile = Annotated[
    Path | None,
    typer.Option("--samples", metavar="FILE.jsonl", help="Write each sample as it is taken, one JSON object a line."),
]


def record(
    samples: Iterator[Sample],
    output: Path | None,
    sample_file: Path | None,
    as_json: bool,
    machine: Mapping[str, str] | None = None,
) -> tuple[Observation, ...]:
    """Take all samples, write each to its file, then write the run and print its rows.

    A Ctrl-C, or an error of the probe or of a file, does the same with the samples up to then and is raised afterwards.
    CannotMeasure where no row at all has a value.
    """
    from lanewise import api

    recorded: list[Sample] = []
    failure = _collect(samples, recorded, output, sample_file)
    run = api.as_measured_run(recorded, machine or {})
    if recorded and output is not None:
        failure = _save(run, output) or failure
    if recorded:
        _show(run.rows, as_json)
    if failure is not None:
        if recorded:
            terminal.note(f"not finished: {_many(len(recorded), 'sample')} of {_many(len(run.rows), 'row')} kept")
        raise failure
    if run.rows and all(row.value is None for row in run.rows):
        raise CannotMeasure(f"nothing could be measured: {run.rows[0].note}", hint="see what is here: lanewise doctor")
    return run.rows


def _collect(
    samples: Iterator[Sample], recorded: list[Sample], output: Path | None, sample_file: Path | None
) -> BaseException | None:
    """Append each sample to `recorded` and write it to the file; the error or Ctrl-C that ended it early, if any."""
    import json

    if output is not None:
        files.check_writable(output)
    lines = files.Lines(sample_file) if sample_file is not None else None
    if terminal.overwrites():
        terminal.status("preparing")
    try:
        for sample in samples:
            recorded.append(sample)
            if lines is not None:
                lines.write(json.dumps(sample.row(), ensure_ascii=False, allow_nan=False))
            progress(recorded)
    except (Exception, KeyboardInterrupt) as error:
        return error
    finally:
        terminal.done()
        close = getattr(samples, "close", None)
        if close is not None:
            close()
        if lines is not None:
            lines.close()
    return None


def progress(recorded: Sequence[Sample]) -> None:
    """Show the number of samples and the current row: always on a terminal; in a log once for each scenario."""
    last = recorded[-1]
    if terminal.overwrites() or all(sample.scenario != last.scenario for sample in recorded[:-1]):
        terminal.status(f"{_many(len(recorded), 'sample')}, now {last.scenario} {last.flow}")


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _save(run: Run, output: Path) -> LanewiseError | None:
    from lanewise import api

    try:
        api.save_run(run, output)
    except LanewiseError as error:
        return error
    terminal.note(f"wrote {output}")
    return None


def _show(rows: Sequence[Observation], as_json: bool) -> None:
    if as_json:
        from lanewise.report import json

        return terminal.out_json(json.measured_rows(rows))
    from lanewise.report.text.run import render_measured

    return terminal.print_text(render_measured, rows)
