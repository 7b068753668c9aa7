"""`lanewise predict`: rates of concurrent flows, ends of transfers, all pairs, or an inference service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import options, predicted, terminal
from lanewise.errors import InputError

if TYPE_CHECKING:
    from lanewise.topology.model import System

# In the order of the fields of cli.loaded.Asked.
LOAD_OPTIONS = (
    "qps", "peak", "mode", "division", "frontend", "host", "gpus", "batch", "timeout", "copies", "dispatch", "beside",
    "background", "seconds", "seed", "precision", "trace", "report",
)  # fmt: skip


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
        str | None,
        typer.Option(
            metavar="WORKLOAD",
            help="An inference service: resnet50, bert-99, my.yaml; in steady state; simulated with --qps or --peak.",
        ),
    ] = None,
    qps: Annotated[float | None, typer.Option(metavar="RATE", help="Does the service hold at that rate?")] = None,
    peak: Annotated[
        bool, typer.Option("--peak", help="The largest rate that keeps the service's latency bound.")
    ] = False,
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="server|offline|single-stream|multi-stream", help="MLPerf's scenario; server unless given."
        ),
    ] = None,
    division: Annotated[
        str | None, typer.Option(metavar="closed|network", help="Where queries come from; closed unless given.")
    ] = None,
    frontend: Annotated[
        str | None, typer.Option(metavar="HOST", help="The host that sends them over the network.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="The host whose GPUs serve.")] = None,
    gpus: Annotated[str | None, typer.Option(metavar="gpu[0-3]", help="The GPUs that serve.")] = None,
    batch: Annotated[int | None, typer.Option(metavar="N", help="Largest batch; the workload's unless given.")] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long a query waits for its batch to fill: '1 ms'.")
    ] = None,
    copies: Annotated[
        str | None, typer.Option(metavar="gathered|per-query", help="A batch copied in one go, or query by query.")
    ] = None,
    dispatch: Annotated[
        str | None,
        typer.Option(metavar="least|round-robin|random", help="How queries spread where GPUs share no queue."),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(metavar="'WORKLOAD QPS on gpu[4-7]'", help="Another service beside it; may be repeated."),
    ] = None,
    background: Annotated[
        str | None,
        typer.Option(metavar="FLOWS", help="Traffic beside it: 'ssd0->gpu0, gpu1->host0 4 GiB every 10 s'."),
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Simulated seconds at --qps.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the random arrivals; 1 unless given.")] = None,
    precision: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Of --peak; 0.0025 unless given.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the first queries as a trace for ui.perfetto.dev.")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the simulation as one HTML page.")] = None,
    no_p2p: options.NoP2p = False,
    settings: options.Settings = None,
    parts: options.Parts = None,
    as_json: options.Json = False,
) -> None:
    """Predict flows together, all pairs, or a service; each rate with its limit and what it rests on."""
    under_load = (
        qps, peak, mode, division, frontend, host, gpus, batch, timeout, copies, dispatch, tuple(beside or ()),
        background, seconds, seed, precision, trace, report,
    )  # fmt: skip
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
            **{
                f"--{name}": ("--service", value not in (None, False, [], ()))
                for name, value in zip(LOAD_OPTIONS, under_load, strict=True)
            },
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
        from lanewise.cli.loaded import Asked
        from lanewise.cli.loaded import answer as simulate

        load = Asked(**dict(zip(LOAD_OPTIONS, under_load, strict=True)))  # type: ignore[arg-type]
        if load.simulated:
            simulate(loaded, str(service), load, as_json)
            return
        if load.needs_simulation:
            names = " and ".join(load.needs_simulation)
            raise InputError(f"{names} says nothing about the steady state", hint="ask with --qps RATE or --peak")
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
        ("mode", mode, ("server", "offline", "single-stream", "multi-stream")),
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
