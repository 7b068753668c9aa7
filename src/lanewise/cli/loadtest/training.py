"""`lanewise loadtest training`: the data rate of a training, from its MLPerf log."""

from __future__ import annotations

from lanewise.cli import terminal
from lanewise.cli.option_group import option_group
from lanewise.cli.shared import Json
from lanewise.options.loadtest import TrainingOptions


@option_group
def training(options: TrainingOptions, json: Json = None) -> None:
    """Compute how much data a training reads per second: epochs of its MLPerf log times the size of the dataset."""
    from lanewise import api
    from lanewise.report.json import document
    from lanewise.report.text.loadtest import render_training

    result = api.loadtest_training(options)
    terminal.show(
        json,
        lambda: document("loadtest-training", result.data()),
        lambda screen: render_training(result.data(), screen),
    )
