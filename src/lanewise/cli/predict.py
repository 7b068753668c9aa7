"""`lanewise predict`: rates of concurrent flows, ends of transfers, all pairs, or an inference service."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import loaded, options, terminal
from lanewise.cli.spread import spread
from lanewise.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lanewise.topology.model import System

Flows = Annotated[
    str | None,
    typer.Option(
        help="Flows at once: 'gpu0->gpu4, host0->gpu1', or with sizes: 'gpu0->gpu1 1 GiB, gpu2->gpu3 4 GiB @10 ms'."
    ),
]
Matrix = Annotated[str | None, typer.Option(metavar="goodput|latency", help="All pairs, each alone.")]
BothWays = Annotated[bool, typer.Option("--both-ways", help="With --matrix goodput: both directions, their sum.")]
Devices = Annotated[str | None, typer.Option(metavar="gpu[0-3]", help="With --matrix: these devices only.")]
Service = Annotated[
    str | None,
    typer.Option(
        metavar="WORKLOAD",
        help="An inference service: resnet50, bert-99, my.yaml; in steady state; simulated with --qps or --peak.",
    ),
]


@spread
def predict(
    *,
    system: options.SystemName,
    flows: Flows = None,
    matrix: Matrix = None,
    both_ways: BothWays = False,
    devices: Devices = None,
    service: Service = None,
    under_load: loaded.Asked,
    no_p2p: options.NoP2p = False,
    settings: options.Settings = None,
    parts: options.Parts = None,
    as_json: options.Json = False,
) -> None:
    """Predict flows together, all pairs, or a service; each rate with its limit and what it rests on."""
    _one_question(flows, matrix, service, {"both-ways": both_ways, "devices": devices}, asdict(under_load))
    if service is not None and no_p2p:
        raise InputError("--no-p2p says nothing about --service", hint="leave it out: no data passes between GPUs")
    described = options.load(system, settings, parts)
    if service is not None:
        _service(described, service, under_load, as_json)
        return
    if flows is not None:
        _flows(described, flows, not no_p2p, as_json)
    else:
        _matrix(described, str(matrix), devices, both_ways, not no_p2p, as_json)


def _one_question(
    flows: str | None,
    matrix: str | None,
    service: str | None,
    of_matrix: Mapping[str, object],
    of_load: Mapping[str, object],
) -> None:
    """InputError unless one question is asked, and no option belongs to another one."""
    questions = (("--flows", flows), ("--matrix", matrix), ("--service", service))
    asked = [name for name, value in questions if value is not None]
    if len(asked) != 1:
        cause = f"{' and '.join(asked)} cannot be asked together" if asked else "nothing to predict"
        raise InputError(cause, hint="give one of --flows 'gpu0->gpu1', --matrix goodput, --service resnet50")
    for question, options_of in (("--matrix", of_matrix), ("--service", of_load)):
        for name, value in options_of.items():
            # 0 is given: only what nobody wrote is None or False.
            if question != asked[0] and value is not None and value is not False:
                hint = f"leave it out, or ask with {question}; see --help"
                raise InputError(f"--{name} says nothing about {asked[0]}", hint=hint)


def _flows(system: System, flows: str, p2p: bool, as_json: bool) -> None:
    from lanewise import api
    from lanewise.perf.flow import parse_flows
    from lanewise.report import json
    from lanewise.report.text.predict import render_flow_rates, render_transfers

    parsed = parse_flows(flows, p2p)
    if all(flow.size is None for flow in parsed):
        found = api.predict(system, parsed)
        if as_json:
            return terminal.out_json(json.flow_rates(found))
        return terminal.print_text(render_flow_rates, found)
    finished = api.finish_times(system, parsed)
    if as_json:
        return terminal.out_json(json.transfers(system, finished))
    return terminal.print_text(render_transfers, system, finished)


def _matrix(system: System, metric: str, devices: str | None, both_ways: bool, p2p: bool, as_json: bool) -> None:
    from lanewise import api
    from lanewise.report import json
    from lanewise.report.text.predict import render_pairs

    found = api.matrix(system, names(devices), metric, both_ways, p2p)
    if as_json:
        terminal.out_json(json.pairs(system, found))
    else:
        terminal.print_text(render_pairs, system, found)


def _service(system: System, workload: str, asked: loaded.Asked, as_json: bool) -> None:
    """The service under load where that is asked for, else in steady state."""
    from lanewise import api
    from lanewise.errors import unknown_name
    from lanewise.report import json
    from lanewise.report.text.predict import render_steady_service

    if asked.simulated:
        loaded.answer(system, workload, asked, as_json)
        return
    if asked.needs_simulation:
        say = "says" if len(asked.needs_simulation) == 1 else "say"
        cause = f"{' and '.join(asked.needs_simulation)} {say} nothing about the steady state"
        raise InputError(cause, hint="ask with --qps RATE or --peak")
    mode, division = asked.mode or "server", asked.division or "closed"
    for kind, value, known in (
        ("mode", mode, ("server", "offline", "single-stream", "multi-stream")),
        ("division", division, ("closed", "network")),
    ):
        if value not in known:
            raise unknown_name(kind, value, known)
    rate = api.serve(system, workload, mode, division, asked.host)
    if as_json:
        terminal.out_json(json.steady_service(system, rate, mode, division))
    else:
        terminal.print_text(render_steady_service, system, rate, mode, division)


def names(pattern: str | None) -> list[str] | None:
    """'gpu[0-3]', 'gpu[0,4]' or 'gpu0, gpu2' as names; None stays None."""
    if pattern is None:
        return None
    from lanewise.perf.flow import COMMA  # outside brackets
    from lanewise.topology.ranges import expand

    return [name for piece in COMMA.split(pattern) for name in expand(piece.strip())]
