"""What every measuring verb does with its samples: keep each one, show progress, write the run, print a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise import files
from lanewise.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lanewise.results.observation import Observation
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
    show: Callable[[Sequence[Observation]], str] | None = None,
) -> tuple[Observation, ...]:
    """Take all samples, keep them, print what they say; a Ctrl-C does the same with what there is, then goes on up.

    `show` makes what stands above the table of all rows, such as matrices; '' for nothing.

    An error of the probe in mid-way likewise leaves finished samples in the files before it goes on up.
    """
    from lanewise import api

    taken: list[Sample] = []
    failure = _collect(samples, taken, output, sample_file)
    run = api.as_measured_run(taken, machine or {})
    if taken and output is not None:
        api.save_run(run, output)
        terminal.note(f"wrote {output}")
    if taken:
        terminal.out_json(_data(run.rows)) if as_json else terminal.out(_shown(run.rows, show))
    if failure is not None:
        if taken:
            terminal.note(f"not finished: {len(taken)} samples of {len(run.rows)} cells are kept")
        raise failure
    return run.rows


def _collect(
    samples: Iterator[Sample], taken: list[Sample], output: Path | None, sample_file: Path | None
) -> BaseException | None:
    """Every sample into `taken` and the file; what stopped it early, if anything did."""
    import json

    if output is not None:
        files.check_writable(output)
    lines = files.Lines(sample_file) if sample_file is not None else None
    try:
        for sample in samples:
            taken.append(sample)
            if lines is not None:
                lines.write(json.dumps(sample.row(), ensure_ascii=False, allow_nan=False))
            terminal.status(f"{len(taken)} samples, now {sample.scenario} {sample.flow}")
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


def _shown(rows: Sequence[Observation], show: Callable[[Sequence[Observation]], str] | None) -> str:
    above = show(rows) if show is not None else ""
    return f"{above}\n\n{_table(rows)}" if above else _table(rows)


def _table(rows: Sequence[Observation]) -> str:
    from lanewise import units

    heads = ("scenario", "flow", "settings", "metric", "median", "smallest", "largest", "unit", "samples", "note")
    cells = []
    for row in rows:
        shown = [units.number(v) if v is not None else "–" for v in (row.value, row.low, row.high)]
        settings = " ".join(f"{key}={value}" for key, value in row.settings.items())
        cells.append(
            (row.scenario, row.flow, settings, row.metric, *shown, row.unit, str(len(row.samples)), row.note)
        )
    return terminal.table(heads, cells, right=("median", "smallest", "largest", "samples"))


def _data(rows: Sequence[Observation]) -> object:
    from lanewise.results.codec import encode

    return [encode(row, "row") for row in rows]
