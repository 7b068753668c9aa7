"""`lanewise loadtest sweep`: the peak at several numbers of GPUs, batches, copy streams, or paths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise.cli import options, terminal
from lanewise.cli.loadtest.asked import Asked, Outputs, Search
from lanewise.cli.loadtest.peak import progress
from lanewise.cli.spread import spread
from lanewise.errors import FormatError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.loadtest.sweep import SweepResult, SweepRow


@spread
def sweep(
    *,
    gpus: Annotated[str, typer.Option("--gpus", metavar="1,2,4", help="The first so many of --devices.")] = "",
    batches: Annotated[str, typer.Option("--batches", metavar="1,4,16", help="Largest batches.")] = "",
    stream_counts: Annotated[str, typer.Option("--stream-counts", metavar="1,2,4", help="Batches in flight.")] = "",
    paths: Annotated[str, typer.Option("--paths", metavar="'gpu0; gpu2,gpu3'", help="Sets of devices.")] = "",
    baseline: Annotated[str, typer.Option("--baseline", metavar="POINT", help="Of speed-ups. [default: first]")] = "",
    link: Annotated[str, typer.Option("--link", metavar="RATE", help="Of the link shared: '32 GB/s'.")] = "",
    extrapolate: Annotated[str, typer.Option("--extrapolate", metavar="8,16", help="GPUs; a straight line.")] = "",
    chart: Annotated[Path | None, typer.Option("--chart", metavar="FILE.svg", help="Draw QPS and GB/s.")] = None,
    what: Asked,
    search: Search,
    pairs: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=NUMBER", help="A setting that all rows bear, for study: path=3."),
    ] = None,
    outputs: Outputs,
) -> None:
    """Search the peak at each point of a sweep, and lay the points beside each other.

    A point that cannot be measured is a row with its reason. Ctrl-C keeps what is finished: the same command with
    --results goes on from there.
    """
    from lanewise import api, units
    from lanewise.loadtest import sweep as swept

    axis, values = _axis({"GPUs": gpus, "batch": batches, "streams": stream_counts, "path": paths})
    points = swept.points(axis, values, what.bench(), options.settings(pairs))
    counts, rate = _counts(extrapolate), units.parse(link, "B/s") if link else None
    swept.check_baseline(baseline, points)
    swept.check_extrapolated(axis, counts, points)
    _check(rate, chart, outputs.output)
    found: list[SweepResult] = []
    try:
        for each in api.loadtest_sweep(
            points, **search.settings(), results=outputs.results, say=terminal.status, on_progress=progress
        ):
            found.append(each)  # noqa: PERF402 - an interrupt keeps those there are
    finally:
        terminal.done()
        if found:
            rows = swept.table(found, baseline, rate, counts)
            _write(found, rows, outputs.output)
            _show(swept.as_data(axis, rows, baseline, rate, swept.doubts(found)), chart, outputs.as_json)


def _axis(asked: dict[str, str]) -> tuple[str, list[str]]:
    """What is swept, and its values as typed."""
    given = [(axis, text) for axis, text in asked.items() if text]
    if len(given) != 1:
        cause = "a sweep over nothing" if not given else f"a sweep over {' and '.join(axis for axis, _ in given)}"
        raise InputError(cause, hint="give one of --gpus 1,2,4, --batches, --stream-counts, --paths 'gpu0; gpu2,gpu3'")
    axis, text = given[0]
    return axis, [each.strip() for each in text.split(";")] if axis == "path" else options.words(text)


def _counts(text: str) -> list[int]:
    try:
        return [int(word) for word in options.words(text)]
    except ValueError:
        raise FormatError(f"--extrapolate '{text}' is no list of numbers", hint="write --extrapolate 8,16") from None


def _check(rate: float | None, chart: Path | None, output: Path | None) -> None:
    """InputError for what would be noticed after hours only."""
    from lanewise import files

    if rate is not None and not rate > 0:
        raise InputError("a link of no rate", hint="write --link '32 GB/s'")
    for path in (chart, output):
        if path is not None:
            files.check_writable(path)


def _write(found: Sequence[SweepResult], rows: Sequence[SweepRow], output: Path | None) -> None:
    from lanewise import api

    if output is not None:
        api.save_run(api.as_sweep_run(found, rows), output)


def _show(data: dict[str, Any], chart: Path | None, as_json: bool) -> None:
    from lanewise import files
    from lanewise.report.sweep import as_chart, as_table, doubts
    from lanewise.report.table import text_table

    if as_json:
        terminal.out_json(data)
    else:
        terminal.out(text_table(*as_table(data)))
        for line in doubts(data):
            terminal.out(line)
    if chart is not None:
        files.write_file(chart, as_chart(data))
        terminal.note(f"wrote {chart}")
