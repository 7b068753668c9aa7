"""`lanewise measure gpu`: copies between hosts and GPUs, peers, latency, and any set of flows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import options, terminal
from lanewise.cli.measure import recorder

if TYPE_CHECKING:
    from lanewise.probes.gpu.options import MeasureGpuOptions


def gpu(
    cases: Annotated[
        str, typer.Option(metavar="NAME,...", help="Cases by name or pattern, or default, nvbandwidth, all (--list).")
    ] = "",
    list_: Annotated[bool, typer.Option("--list", help="List the cases and what each shows; measure nothing.")] = False,
    flows: Annotated[
        str, typer.Option(metavar="FLOWS", help="Measured together: 'gpu0->gpu1, host:1->gpu0 read, gpu2->gpu3 sm'.")
    ] = "",
    latency: Annotated[bool, typer.Option("--latency", help="The cases of latency: '*latency*'.")] = False,
    queries: Annotated[
        bool, typer.Option("--queries", help="The cases of scattered 150,528 B queries: 'queries_*'.")
    ] = False,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Copies of 4 KiB to 1 GiB, with latency and bandwidth fitted.")
    ] = False,
    devices: Annotated[str, typer.Option(metavar="gpu[0-3]", help="Only these GPUs; 0,2 will do.")] = "",
    bytes_: Annotated[
        str, typer.Option("--bytes", metavar="SIZE", help="Size of one copy. [default: 256 MiB; between GPUs 512 MiB]")
    ] = "",
    node: Annotated[
        int | None, typer.Option("--node", metavar="N", min=0, help="NUMA node of host memory. [default: near the GPU]")
    ] = None,
    no_p2p: options.NoP2p = False,
    as_json: options.Json = False,
    output: recorder.RunFile = None,
    samples: recorder.SampleFile = None,
) -> None:
    """Measure copies between this machine's hosts and GPUs; without options host and GPU, all pairs, and latencies."""
    from lanewise.api.gpu import gpu_cases, gpu_probe
    from lanewise.probes.gpu.probe import skipped_cases

    names = (*options.words(cases), *["*latency*"] * latency, *["queries_*"] * queries)
    if list_:
        return _list(names)
    plan = _options(flows, names, devices, bytes_, node, not no_p2p, sweep)
    probe = gpu_probe()
    skipped = skipped_cases(gpu_cases(names) if names else (), probe.measurements(plan))
    if skipped:
        terminal.note(f"skipped, for want of a second GPU: {', '.join(skipped)}")
    recorder.record(probe.run(plan), output, samples, as_json, probe.conditions())
    return None


def _options(
    flows: str, cases: tuple[str, ...], devices: str, size: str, node: int | None, p2p: bool, sweep: bool
) -> MeasureGpuOptions:
    from lanewise import units
    from lanewise.perf.flow import parse_flows
    from lanewise.probes.gpu.options import SWEEP, MeasureGpuOptions

    return MeasureGpuOptions(
        flows=parse_flows(flows) if flows else (), cases=cases, devices=devices, node=node, p2p=p2p,
        bytes=int(units.parse(size, "B")) if size else 0, sizes=SWEEP if sweep else (),
    )  # fmt: skip


def _list(names: tuple[str, ...]) -> None:
    from dataclasses import asdict

    from lanewise.api.gpu import gpu_cases
    from lanewise.report.text.measure import render_cases

    terminal.out(render_cases([asdict(case) for case in gpu_cases(names or ("all",))]))
