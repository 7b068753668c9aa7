"""`lanewise predict`: rates of concurrent flows, ends of transfers, all pairs, or an inference service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import options, predicted, terminal
from lanewise.errors import InputError

if TYPE_CHECKING:
    from lanewise.topology.model import System


def predict(
    system: options.SystemName,
    flows: Annotated[
        str | None,
        typer.Option(
            help="Flows at once: 'gpu0->gpu4, host0->gpu1', or with sizes: 'gpu0->gpu1 1 GiB, gpu2->gpu3 4 GiB @10 ms'."
        ),
    ] = None,
    matrix: Annotated[str | None, typer.Option(metavar="goodput|latency", help="All pairs, each alone.")] = None,
    both_ways: Annotated[
        bool, typer.Option("--both-ways", help="With --matrix goodput: both directions, their sum.")
    ] = False,
    devices: Annotated[str | None, typer.Option(metavar="gpu[0-3]", help="With --matrix: these devices only.")] = None,
    service: Annotated[
        str | None, typer.Option(metavar="WORKLOAD", help="An inference service: resnet50, bert-99, ...")
    ] = None,
    mode: Annotated[
        str | None, typer.Option(metavar="server|offline", help="With --service; server unless given.")
    ] = None,
    division: Annotated[
        str | None, typer.Option(metavar="closed|network", help="With --service; closed unless given.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="With --service: the host whose GPUs serve.")] = None,
    no_p2p: options.NoP2p = False,
    settings: options.Settings = None,
    parts: options.Parts = None,
    as_json: options.Json = False,
) -> None:
    """Predict flows together, all pairs, or a service; each rate with its limit and what it rests on."""
    asked = [
        name for name, value in (("--flows", flows), ("--matrix", matrix), ("--service", service)) if value is not None
    ]
    if len(asked) != 1:
        cause = f"{' and '.join(asked)} cannot be asked together" if asked else "nothing to predict"
        raise InputError(cause, hint="give one of --flows 'gpu0->gpu1', --matrix goodput, --service resnet50")
    _refuse(
        asked[0],
        {
            "--both-ways": ("--matrix", both_ways),
            "--devices": ("--matrix", devices is not None),
            "--mode": ("--service", mode is not None),
            "--division": ("--service", division is not None),
            "--host": ("--service", host is not None),
        },
    )
    if service is not None and no_p2p:
        raise InputError("--no-p2p says nothing about --service", hint="leave it out: no data passes between GPUs")
    loaded = options.load(system, settings, parts)
    if flows is not None:
        answer = _flows(loaded, flows, not no_p2p)
    elif matrix is not None:
        answer = _matrix(loaded, matrix, devices, both_ways, not no_p2p)
    else:
        answer = _service(loaded, str(service), mode or "server", division or "closed", host)
    terminal.out_json(answer.data) if as_json else answer.show()


def _refuse(asked: str, given: dict[str, tuple[str, bool]]) -> None:
    """InputError for an option that would be ignored because it belongs to another question."""
    for option, (question, used) in given.items():
        if used and question != asked:
            raise InputError(
                f"{option} says nothing about {asked}", hint=f"leave it out, or ask with {question}; see --help"
            )


def _flows(system: System, flows: str, p2p: bool) -> predicted.Answer:
    from lanewise import api
    from lanewise.perf.flow import parse_flows

    parsed = parse_flows(flows, p2p)
    if all(flow.size is None for flow in parsed):
        return predicted.rates(api.predict(system, parsed))
    return predicted.transfers(system, api.finish_times(system, parsed))


def _matrix(system: System, metric: str, devices: str | None, both_ways: bool, p2p: bool) -> predicted.Answer:
    from lanewise import api

    return predicted.matrix(system, api.matrix(system, names(devices), metric, both_ways, p2p))


def _service(system: System, workload: str, mode: str, division: str, host: str | None) -> predicted.Answer:
    from lanewise import api
    from lanewise.errors import unknown_name

    for kind, value, known in (
        ("mode", mode, ("server", "offline")),
        ("division", division, ("closed", "network")),
    ):
        if value not in known:
            raise unknown_name(kind, value, known)
    return predicted.service(system, api.serve(system, workload, mode, division, host), mode, division)


def names(pattern: str | None) -> list[str] | None:
    """'gpu[0-3]', 'gpu[0,4]' or 'gpu0, gpu2' as names; None stays None."""
    if pattern is None:
        return None
    from lanewise.perf.flow import COMMA  # outside brackets
    from lanewise.topology.ranges import expand

    return [name for piece in COMMA.split(pattern) for name in expand(piece.strip())]
