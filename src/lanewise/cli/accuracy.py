"""`lanewise accuracy`: the performance model scored on machines that were measured."""

from __future__ import annotations

from lanewise.cli import terminal
from lanewise.cli.command import Json, option_group
from lanewise.options.accuracy import EvidenceOptions


@option_group
def accuracy(options: EvidenceOptions, json: Json = None) -> None:
    """Score predictions on measured machines: errors, coverage of the intervals, order of paths."""
    from lanewise import api
    from lanewise.report import accuracy_json
    from lanewise.report.text.accuracy import render_accuracy, render_machine_rows

    score = api.accuracy(options.machines, options.folder, options.fitted, api.load_catalog(options.parts))
    render = render_machine_rows if options.rows else render_accuracy
    terminal.show(json, accuracy_json.accuracy, render, score)
