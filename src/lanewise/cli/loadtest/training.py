"""`lanewise loadtest training`: the data rate of a training, from its MLPerf log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import options, terminal
from lanewise.cli.loadtest.asked import RunFile

if TYPE_CHECKING:
    from lanewise.loadtest.training import Span, Training


def training(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="With the :::MLLOG lines of one run.")],
    sample_bytes: Annotated[str, typer.Option("--sample-bytes", metavar="SIZE", help="Of a sample, on average.")],
    samples: Annotated[
        int | None, typer.Option("--samples", min=1, help="Of an epoch. [default: train_samples of the log]")
    ] = None,
    as_json: options.Json = False,
    output: RunFile = None,
) -> None:
    """Tell how much data a training read a second: epochs of its MLPerf log times the size of the dataset."""
    from lanewise import api, files, units
    from lanewise.loadtest.training import as_samples

    if output is not None:
        files.check_writable(output)
    found = api.loadtest_training(log, units.parse(sample_bytes, "B"), samples)
    if output is not None:
        api.save_run(api.as_measured_run(as_samples(found, log.name)), output)
    if as_json:
        return terminal.out_json(found.data())
    return _show(found)


def _show(found: Training) -> None:
    from lanewise import units

    heads = ("epochs", "seconds", "s/epoch", "GB/s")
    rows = [
        (_called(span), f"{span.seconds:,.3f}", f"{span.seconds / span.epochs:,.3f}", f"{found.rate(span) / 1e9:.4g}")
        for span in found.spans
    ]
    terminal.out(terminal.table(heads, rows, right=heads[1:]))
    each = f"{found.samples:,} samples of {found.sample_bytes:,.6g} B an epoch"
    terminal.out(f"\nmedian     {units.readable(found.median, 'B/s')}; {each}")
    if found.run is not None:
        rate = units.readable(found.whole, "B/s")
        terminal.out(f"whole run  {rate} in {found.run:,.1f} s, with evaluation and all else")
    for note in found.notes:
        terminal.out(f"note: {note}")


def _called(span: Span) -> str:
    return str(span.first) if span.epochs == 1 else f"{span.first} to {span.first + span.epochs - 1}"
