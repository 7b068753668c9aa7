"""`lanewise loadtest training`: the data rate of a training, from its MLPerf log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lanewise.cli import options, terminal
from lanewise.cli.loadtest.asked import RunFile


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
    from lanewise.report.text.loadtest import render_training

    if output is not None:
        files.check_writable(output)
    found = api.loadtest_training(log, units.parse(sample_bytes, "B"), samples)
    if output is not None:
        api.save_run(api.as_measured_run(as_samples(found, log.name)), output)
    data = found.data()
    terminal.out_json(data) if as_json else terminal.out(render_training(data))
