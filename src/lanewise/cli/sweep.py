"""`lanewise predict --sweep`: the same prediction for every combination of parameters, here or on an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise import files
from lanewise.cli import terminal
from lanewise.cli.scenario_status import ScenarioStatus
from lanewise.cli.terminal import json_of
from lanewise.errors import InputError

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
    """One parameter in this process is a table of its own; everything else goes through scenarios."""
    if options.matrix is not None:
        raise InputError("--sweep has no effect with --matrix", hint="predict with --flows or --service")
    if len(options.sweep) == 1 and engine.on is None and engine.results is None:
        return _one_parameter(options, options.sweep[0], service, system, json)
    return _scenarios(options, service, system, engine, json)


def _scenarios(
    options: PredictOptions, service: ServiceOptions, system: SystemOptions, engine: WorkerOptions, json: str | None
) -> None:
    """Every combination; what is finished is kept and shown, whatever ends the sweep."""
    from lanewise import api
    from lanewise.api.sweep import combinations

    recorded: list[ScenarioRows] = []
    failure: BaseException | None = None
    interrupt: KeyboardInterrupt | None = None
    status = ScenarioStatus()
    answers = api.predict_sweep(system, options, service, engine, status.show)
    try:
        with files.SignalDeferral() as deferral:
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
    if recorded:
        _show(recorded, json)
    if failure is not None or interrupt is not None:
        raise failure or interrupt or KeyboardInterrupt


def _show(recorded: Sequence[ScenarioRows], json: str | None) -> None:
    from lanewise.report.text.scenarios import render_scenarios

    pairs = [(answer.settings, answer.rows) for answer in recorded]
    terminal.show(json, json_of("scenarios"), render_scenarios, pairs)


def _one_parameter(
    options: PredictOptions, sweep: str, service: ServiceOptions, system_options: SystemOptions, json: str | None
) -> None:
    """The prediction for each value of a parameter, in one table."""
    from lanewise import api
    from lanewise.api.loading import swept_systems
    from lanewise.report.text import predict as text

    name, systems = swept_systems(system_options, sweep)
    if options.flows is not None:
        how = (options.flows, not options.no_p2p, options.schedule)
        predictions = {value: api.predict(system, *how) for value, system in systems.items()}
        return terminal.show(json, json_of("sweep"), text.render_flow_sweep, name, predictions)
    workload = str(options.service)
    if service.peak or service.qps is not None:
        results = {
            value: api.predict_service(system, workload, service).results[0] for value, system in systems.items()
        }
        return terminal.show(json, json_of("sweep"), text.render_service_sweep, name, results)
    division = service.division or "closed"
    steady = {v: api.serve(system, workload, service.mode, division, service.host) for v, system in systems.items()}
    return terminal.show(json, json_of("sweep"), text.render_steady_sweep, name, steady)
