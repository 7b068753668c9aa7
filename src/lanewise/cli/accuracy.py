"""`lanewise accuracy`: the performance model scored on machines that were measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.cli import terminal
from lanewise.cli.command import Json, option_group
from lanewise.cli.scenario_status import ScenarioStatus
from lanewise.errors import InputError
from lanewise.options.accuracy import EvidenceOptions
from lanewise.options.workers import WorkerOptions

if TYPE_CHECKING:
    from lanewise.evidence.after_measurement import AfterMeasurement
    from lanewise.evidence.score import AccuracyScore
    from lanewise.evidence.services import PredictedService
    from lanewise.report.screen import Screen


@option_group
def accuracy(options: EvidenceOptions, workers: WorkerOptions, json: Json = None) -> None:
    """Score predictions on measured machines: errors, coverage of the intervals, order of paths."""
    from lanewise import api
    from lanewise.api.scores import accuracy_after_measurements, service_accuracy
    from lanewise.report import accuracy_json
    from lanewise.report.after_measurement import render_after
    from lanewise.report.service_accuracy import render_services_score
    from lanewise.report.text.accuracy import render_accuracy, render_machine_rows

    if options.output is None and (options.studies or options.history):
        raise InputError("--studies and --history have no effect without -o", hint="name the page: -o accuracy.md")
    status = ScenarioStatus("machine")
    catalog = api.load_catalog(options.parts)
    try:
        score = api.accuracy(options.machines, options.folder, options.fitted, catalog, workers, status.show)
    except KeyboardInterrupt:
        status.end(workers, True)
        raise
    terminal.done()
    services: tuple[PredictedService, ...] = ()
    if options.services:
        terminal.status("simulating published services")
        try:
            services = service_accuracy(catalog)
        finally:
            terminal.done()
    after = accuracy_after_measurements(score, catalog) if options.after_measurement else ()
    render = render_machine_rows if options.rows else render_accuracy

    def text(
        score: AccuracyScore,
        services: tuple[PredictedService, ...],
        after: tuple[AfterMeasurement, ...],
        screen: Screen,
    ) -> str:
        parts = [render(score, screen), render_services_score(services, screen) if services else ""]
        return "\n\n".join(filter(None, [*parts, render_after(after, screen) if after else ""]))

    terminal.show(json, accuracy_json.accuracy, text, score, services, after)
    if options.output is not None:
        _write(score, services, after, options, options.output)


def _write(
    score: AccuracyScore,
    services: tuple[PredictedService, ...],
    after: tuple[AfterMeasurement, ...],
    options: EvidenceOptions,
    path: Path,
) -> None:
    """Write the Markdown page, or what data/accuracy.json holds."""
    from lanewise import api
    from lanewise.api.scores import load_history
    from lanewise.report.accuracy import accuracy_page
    from lanewise.report.evidence_page import basis_errors

    run = api.load_run(options.studies) if options.studies is not None else None
    if path.suffix == ".json":
        terminal.write(path, terminal.json_text(basis_errors(score, run)) + "\n")
    else:
        history = load_history(options.history) if options.history is not None else ()
        terminal.write(path, accuracy_page(run, score, history, services, after))
