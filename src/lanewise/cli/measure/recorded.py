"""What every measuring verb does with its samples: keep each one, show progress, write the run, print a table."""

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
    """Take all samples, keep them, print what they say; a Ctrl-C does the same with what there is, then goes on up.

    An error, of the probe in mid-way or of a file, likewise loses no finished sample before it goes on up;
    CannotMeasure where no row at all has a value.
    """
    from lanewise import api

    taken: list[Sample] = []
    failure = _collect(samples, taken, output, sample_file)
    run = api.as_measured_run(taken, machine or {})
    if taken and output is not None:
        failure = _save(run, output) or failure
    if taken:
        _show(run.rows, as_json)
    if failure is not None:
        if taken:
            terminal.note(f"not finished: {_many(len(taken), 'sample')} of {_many(len(run.rows), 'row')} kept")
        raise failure
    if run.rows and all(row.value is None for row in run.rows):
        raise CannotMeasure(f"nothing could be measured: {run.rows[0].note}", hint="see what is here: lanewise doctor")
    return run.rows


def _collect(
    samples: Iterator[Sample], taken: list[Sample], output: Path | None, sample_file: Path | None
) -> BaseException | None:
    """Every sample into `taken` and the file; what stopped it early, if anything did."""
    import json

    if output is not None:
        files.check_writable(output)
    lines = files.Lines(sample_file) if sample_file is not None else None
    if terminal.overwrites():
        terminal.status("preparing")
    try:
        for sample in samples:
            taken.append(sample)
            if lines is not None:
                lines.write(json.dumps(sample.row(), ensure_ascii=False, allow_nan=False))
            progress(taken)
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


def progress(taken: Sequence[Sample]) -> None:
    """Every sample on a terminal; in a log one line for each scenario that begins."""
    now = taken[-1]
    if terminal.overwrites() or all(sample.scenario != now.scenario for sample in taken[:-1]):
        terminal.status(f"{_many(len(taken), 'sample')}, now {now.scenario} {now.flow}")


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
        return terminal.out_json(_data(rows))
    from lanewise.report.text.run import show_measured

    return show_measured(rows)


def _data(rows: Sequence[Observation]) -> object:
    from lanewise.results.codec import encode

    return [encode(row, "row") for row in rows]
