"""`lanewise predict`: rates of concurrent flows, ends of transfers, all pairs, or an inference service."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import typer

from lanewise.cli import sweep, terminal
from lanewise.cli.command import GivenFlags, Json, option_group
from lanewise.cli.terminal import json_of
from lanewise.errors import InputError
from lanewise.options.blocks import BlockOptions
from lanewise.options.collective import CollectiveOptions
from lanewise.options.model_load import ModelLoadOptions
from lanewise.options.predict import PredictOptions, ServiceOptions
from lanewise.options.system import SystemOptions
from lanewise.options.workers import WorkerOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lanewise.blocks.pieces import Pieces
    from lanewise.collectives.model import CollectiveCurve
    from lanewise.perf.flow import Flow
    from lanewise.results.observation import Observation
    from lanewise.results.service_result import SearchRun
    from lanewise.topology.model import System

_STEADY = ("mode", "division", "host")  # options that the steady state knows too
# What an option belongs to.
_KINDS: dict[str, tuple[str, ...]] = {
    "schedule": ("flows",),
    "measured": ("flows", "matrix"),
    **{field.name: ("collective",) for field in fields(CollectiveOptions) if field.name != "collective"},
    "output": ("flows", "collective", "blocks", "tokens", "load", "matrix"),
    **dict.fromkeys(("path", "software", "posters"), ("blocks", "tokens")),
    **dict.fromkeys(("model", "tp", "block_tokens", "layout", "kv_dtype", "prefill"), ("tokens",)),
    **{field.name: ("load",) for field in fields(ModelLoadOptions) if field.name != "load"},
    **dict.fromkeys(("both_ways", "devices"), ("matrix",)),
    **{field.name: ("service",) for field in fields(ServiceOptions)},
}


@option_group
def predict(
    options: PredictOptions,
    service_options: ServiceOptions,
    collective_options: CollectiveOptions,
    system_options: SystemOptions,
    block_options: BlockOptions,
    load_options: ModelLoadOptions,
    engine: WorkerOptions,
    given: GivenFlags,
    json: Json = None,
) -> None:
    """Predict flows that run together, a collective, KV caches, a model's load, all pairs, or a service, with limits.

    \b
    lanewise predict SYSTEM --flows 'gpu0->gpu1, host0->gpu2'
    lanewise predict SYSTEM --collective all_reduce --ranks 'gpu[0-7]'
    lanewise predict SYSTEM --tokens 32000 --model llama-3-70b 'gpu0->gpu1'
    lanewise predict SYSTEM --load 140GB --from vol0 --to 'gpu[0-7]'
    lanewise predict SYSTEM --service resnet50 --peak

    Without any of them: what every kind of path delivers alone, and all GPUs of a host at once. Exit code 1 if a
    simulated service is INVALID.
    """
    from lanewise import api

    _check(options, given)
    if options.sweep and not options.measured:
        return sweep.sweep(options, service_options, system_options, engine, json)
    if engine.on is not None or engine.results is not None:
        raise InputError("--on and --results have no effect without --sweep", hint="write --sweep path=1..4")
    system = api.system_of_options(system_options)
    if options.measured:
        system = _calibrated(system, options)
    if options.service is not None:
        _predict_service(system, options.service, service_options, given, json)
    elif options.flows is not None:
        _predict_flows(system, options.flows, options, json)
    elif collective_options.collective is not None:
        _predict_collective(system, collective_options, options.no_p2p, options.output, json)
    elif block_options.blocks is not None or block_options.tokens is not None:
        _predict_blocks(system, block_options, options.no_p2p, options.output, json)
    elif load_options.load is not None:
        _predict_load(system, load_options, options.output, json)
    elif options.matrix is not None:
        _predict_matrix(system, options, json)
    else:
        _predict_paths(system, json)
    return None


def _check(options: PredictOptions, given: GivenFlags) -> None:
    """InputError unless one thing is to be predicted, and no option belongs to another."""
    kinds = [name for name in ("flows", "collective", "blocks", "tokens", "load", "matrix", "service") if name in given]
    choice = (
        "give one of --flows 'gpu0->gpu1', --collective all_reduce, --blocks '1000 x 64 KiB' 'gpu0->gpu1', "
        "--load 140GB --from volume0 --to 'gpu[0-7]', --matrix goodput, --service resnet50"
    )
    if len(kinds) > 1:
        raise InputError(f"{' and '.join(f'--{name}' for name in kinds)} exclude each other", hint=choice)
    groups = (PredictOptions, ServiceOptions, CollectiveOptions, BlockOptions, ModelLoadOptions)
    if not kinds:
        others = [field.name for kind in groups for field in fields(kind) if field.name != "measured"]
        alone = next((name for name in others if name in given), None)
        if alone is not None:
            fits = [f"--{kind}" for kind in _KINDS.get(alone, ())]
            hint = f"{_flag(alone)} goes with {', '.join(fits)}" if fits else choice
            raise InputError(f"nothing to predict with {_flag(alone)}", hint=hint)
        return
    if options.sweep and options.output is not None:
        raise InputError("--output has no effect with --sweep", hint="write --results FOLDER, or --json")
    if options.sweep and kinds[0] in ("collective", "blocks", "tokens", "load"):
        raise InputError(f"--sweep has no effect with --{kinds[0]}", hint="predict with --flows or --service")
    for name, its_kinds in _KINDS.items():
        if name in given and kinds[0] not in its_kinds:
            hint = f"leave it out, or predict with --{its_kinds[0]}; see lanewise predict --help"
            raise InputError(f"{_flag(name)} has no effect with --{kinds[0]}", hint=hint)
    if options.service is not None and options.no_p2p:
        raise InputError("--no-p2p has no effect with --service", hint="leave it out: no data passes between GPUs")


def _calibrated(system: System, options: PredictOptions) -> System:
    """The system with what was measured on it, and a note of what each measurement told."""
    from lanewise import api
    from lanewise.report.text.host_calibration import render_steps

    if options.sweep:
        raise InputError("--measured has no effect with --sweep", hint="predict with --flows or --matrix")
    calibration = api.calibrate_host(system, options.measured)
    for line in render_steps(calibration):
        terminal.note(line)
    return calibration.system


def _flag(name: str) -> str:
    return "FLOW" if name == "path" else f"--{name.strip('_').replace('_', '-')}"


def _predict_flows(system: System, flows: str, options: PredictOptions, json: str | None) -> None:
    from lanewise import api
    from lanewise.perf.flow import parse_flows
    from lanewise.report.text import predict as text
    from lanewise.results.flow_rows import predicted_flow_rows

    parsed = parse_flows(flows, not options.no_p2p)
    _refuse_no_p2p(system, parsed, options.no_p2p)
    if options.schedule != "together" or all(flow.size is None for flow in parsed):
        prediction = api.predict(system, parsed, schedule=options.schedule)
        _save(predicted_flow_rows(prediction), options.output)
        return terminal.show(json, json_of("flow_rates"), text.render_flow_rates, prediction)
    if options.output is not None:
        raise InputError("--output has no effect with flows of a size", hint="leave the sizes out, or use --json")
    transfers = api.finish_times(system, parsed)
    return terminal.show(json, json_of("transfers"), text.render_transfers, system, transfers)


def _refuse_no_p2p(system: System, flows: Sequence[Flow], no_p2p: bool) -> None:
    """InputError for --no-p2p where no flow is between two GPUs."""
    from lanewise.topology.model import Kind

    gpus = set(system.of_kind(Kind.GPU))
    if no_p2p and not any({flow.src, flow.dst} <= gpus for flow in flows):
        raise InputError("--no-p2p has no effect: no flow is between two GPUs", hint="leave it out")


def _predict_collective(
    system: System, options: CollectiveOptions, no_p2p: bool, output: Path | None, json: str | None
) -> None:
    from lanewise import api
    from lanewise.report.text.collective import render_collective

    if no_p2p and options.p2p_level != "default":
        raise InputError("--no-p2p and --p2p-level exclude each other", hint="leave one of them out")
    p2p = False if no_p2p else True if options.p2p_level == "sys" else None
    given = (str(options.collective), options.ranks, options.sizes, options.nccl, options.launch, options.algorithm)
    curve = api.predict_collective(system, *given, p2p)
    if p2p is not None and curve.points == api.predict_collective(system, *given).points:
        terminal.note(f"{'--no-p2p' if no_p2p else '--p2p-level'} changes nothing here: {_anyway(curve, no_p2p)}")
    _save(api.collective_rows(curve), output)
    terminal.show(json, json_of("collective_curve"), render_collective, curve)


def _anyway(curve: CollectiveCurve, no_p2p: bool) -> str:
    """Why a setting of NCCL's peers leaves a prediction as it is."""
    if curve.transports and all(each.transport != "P2P" for each in curve.transports):
        return "these GPUs are no peers (lanewise route shows why), so NCCL goes through shared memory anyway"
    return "by default NCCL uses no peers between these ranks" if no_p2p else "by default NCCL uses peers between them"


def _predict_blocks(system: System, options: BlockOptions, no_p2p: bool, output: Path | None, json: str | None) -> None:
    from lanewise import api
    from lanewise.perf.flow import parse_flows
    from lanewise.report.text.blocks import render_blocks

    if options.path is None:
        hint = "write from where to where: --blocks '1000 x 64 KiB' 'gpu0->gpu1'"
        raise InputError("the blocks go nowhere", hint=hint)
    if options.tokens is None:
        pieces: str | Pieces = str(options.blocks)
    elif options.model is None:
        raise InputError("--tokens without a model", hint="write --model llama-3-70b")
    else:
        layout = (options.block_tokens, options.layout, options.kv_dtype)
        pieces = api.kv_pieces(options.model, options.tokens, options.tp, *layout)
        if options.tp > 1 and pieces == api.kv_pieces(options.model, options.tokens, 1, *layout):
            cause = f"--tp has no effect with {options.model}: every rank keeps its whole cache"
            raise InputError(cause, hint="leave it out: the answer is for one rank")
    _refuse_no_p2p(system, parse_flows(options.path), no_p2p)
    prediction = api.predict_blocks(
        system, options.path, pieces, options.software, options.posters, not no_p2p, options.prefill
    )
    _save(api.block_rows(prediction), output)
    terminal.show(json, json_of("block_transfers"), render_blocks, prediction)


def _predict_load(system: System, options: ModelLoadOptions, output: Path | None, json: str | None) -> None:
    from lanewise.api.model_load import load_rows, predict_load_of
    from lanewise.report.text.model_load import render_model_load

    prediction = predict_load_of(system, options)
    _save(load_rows(prediction), output)
    terminal.show(json, json_of("model_load"), render_model_load, prediction)


def _save(rows: Sequence[Observation], path: Path | None) -> None:
    """Writes predicted rows as a run, if a file for it is named."""
    from lanewise import api

    if path is not None:
        api.save_run(api.as_measured_run((), rows=rows), path)
        terminal.note(f"wrote {path}")


def _predict_matrix(system: System, options: PredictOptions, json: str | None) -> None:
    from lanewise import api
    from lanewise.perf.flow import names_of
    from lanewise.report.text import predict as text
    from lanewise.results.flow_rows import predicted_pair_rows

    names = None if options.devices is None else names_of(options.devices)
    matrix = api.matrix(system, names, str(options.matrix), options.both_ways, not options.no_p2p)
    _save(predicted_pair_rows(matrix, system.name, both_ways=options.both_ways), options.output)
    terminal.show(json, json_of("pairs"), text.render_pairs, system, matrix)


def _predict_paths(system: System, json: str | None) -> None:
    """Every kind of path, where nothing else is to be predicted."""
    from lanewise import api
    from lanewise.report.text import path_overview

    terminal.show(json, json_of("paths"), path_overview.render_paths, api.predict_paths(system))


def _predict_service(
    system: System, workload: str, options: ServiceOptions, given: GivenFlags, json: str | None
) -> None:
    """The service under load where a rate or a scenario asks for it, else in steady state."""
    from lanewise import api
    from lanewise.report.text import predict as text

    only_simulated = [field.name for field in fields(options) if field.name in given and field.name not in _STEADY]
    if (
        options.peak
        or options.qps is not None
        or "stream" in options.mode
        or (options.mode == "offline" and only_simulated)
    ):
        _simulated(system, workload, options, given, json)
    elif only_simulated:
        names = " and ".join(f"--{name}" for name in only_simulated)
        verb = "has" if len(only_simulated) == 1 else "have"
        raise InputError(f"{names} {verb} no effect in steady state", hint="simulate with --qps RATE or --peak")
    else:
        mode, division = options.mode, options.division or "closed"
        rate = api.serve(system, workload, mode, division, options.host)
        terminal.show(json, json_of("steady_service"), text.render_steady_service, system, rate, mode, division)


def _simulated(system: System, workload: str, options: ServiceOptions, given: GivenFlags, json: str | None) -> None:
    from lanewise import api
    from lanewise.report.text.service import render_services

    if "precision" in given and not options.peak:
        hint = "write --peak" if options.mode == "server" else "leave it out"
        raise InputError("--precision has no effect without --peak", hint=hint)
    terminal.status("simulating")
    try:
        prediction = api.predict_service(system, workload, options, _show_run)
    finally:
        terminal.done()
    if options.trace is not None:
        terminal.write(options.trace, prediction.trace(), " (open it at ui.perfetto.dev)")
    if options.report is not None:
        terminal.write(options.report, api.render_report(api.as_run(prediction.results)))

    results = prediction.results
    terminal.show(json, json_of("services"), render_services, results)
    if not all(result.valid for result in results):
        raise typer.Exit(1)


def _show_run(run: SearchRun) -> None:
    from lanewise import units

    verdict = "VALID" if run.valid else "INVALID"
    latency = "cut short" if run.hopeless else units.readable(run.latency, "s")
    terminal.status(f"{units.show(run.rate, 'QPS', 6)}: {verdict} ({latency})")
