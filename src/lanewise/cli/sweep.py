"""`lanewise predict --sweep`: the same prediction for every combination of parameters, here or on an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.cli import terminal
from lanewise.cli.scenario_status import ScenarioStatus
from lanewise.cli.terminal import json_of
from lanewise.errors import InputError
from lanewise.report.words import plural
from lanewise.signal_deferral import SignalDeferral

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.api.sweep import ScenarioRows
    from lanewise.options.predict import PredictOptions, ServiceOptions
    from lanewise.options.system import SystemOptions
    from lanewise.options.workers import WorkerOptions

RUN = "run.json"


def sweep(
    options: PredictOptions, service: ServiceOptions, system: SystemOptions, engine: WorkerOptions, json: str | None
) -> None:
    """Every combination; what is finished is kept and shown, whatever ends the sweep."""
    from lanewise import api
    from lanewise.api.sweep import combinations

    if options.matrix is not None:
        raise InputError("--sweep has no effect with --matrix", hint="predict with --flows or --service")
    recorded: list[ScenarioRows] = []
    failure: BaseException | None = None
    interrupt: KeyboardInterrupt | None = None
    status = ScenarioStatus()
    status.begin(engine)
    answers = api.predict_sweep(system, options, service, engine, status.show)
    try:
        with SignalDeferral() as deferral:
            try:
                for _ in deferral.collect(answers, recorded):
                    pass
            except (Exception, KeyboardInterrupt) as error:
                failure = error
            answers.close()  # type: ignore[attr-defined]
            places = {tuple(values.values()): place for place, values in enumerate(combinations(options.sweep))}
            recorded.sort(key=lambda answer: places[tuple(answer.settings.values())])
            if engine.results is not None and recorded:
                api.save_run(api.as_measured_run((), None, [row for each in recorded for row in each.rows]),
                             engine.results / RUN)  # fmt: skip
    except KeyboardInterrupt as error:  # it has waited until the run was written
        interrupt = error
    status.end(engine, failure is not None)
    if recorded and failure is None and not any(row.value for answer in recorded for row in answer.rows):
        (first, *_), count = recorded[0].rows, plural(len(recorded), "scenario")
        raise InputError(f"none of {count} can be predicted: {first.note}", hint="predict one of them without --sweep")
    if recorded:
        _show(recorded, json)
    if failure is not None or interrupt is not None:
        raise failure or interrupt or KeyboardInterrupt


def _show(recorded: Sequence[ScenarioRows], json: str | None) -> None:
    from lanewise.report.text.scenarios import render_scenarios

    pairs = [(answer.settings, answer.rows) for answer in recorded]
    terminal.show(json, json_of("scenarios"), render_scenarios, pairs)
