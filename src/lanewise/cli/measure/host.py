"""`lanewise measure host`: memory copies by NUMA node and thread count."""

from __future__ import annotations

from typing import Annotated

import typer

from lanewise.cli import options
from lanewise.cli.measure import recorder
from lanewise.errors import FormatError


def host(
    what: Annotated[str, typer.Option(metavar="KINDS", help="copy, read, write, latency; with commas.")] = "",
    threads: Annotated[str, typer.Option(metavar="NUMBERS", help="1,2,4: one a core; else 1, 2, 4, ... all.")] = "",
    nodes: Annotated[str, typer.Option(metavar="NUMBERS", help="NUMA nodes, 0,1; else all of them.")] = "",
    size: Annotated[
        str, typer.Option("--bytes", metavar="SIZE", help="Each buffer, 1GiB; else 3 times the last-level cache.")
    ] = "",
    output: recorder.RunFile = None,
    samples: recorder.SampleFile = None,
    as_json: options.Json = False,
) -> None:
    """Copy, read and write this machine's memory between its NUMA nodes, and time single loads."""
    from lanewise import units
    from lanewise.api.host import host_probe
    from lanewise.probes.host.options import MeasureHostOptions

    plan = MeasureHostOptions(
        tuple(options.words(what)), _numbers(threads, "--threads"), _numbers(nodes, "--nodes"),
        int(units.parse(size, "B")) if size else None,
    )  # fmt: skip
    probe = host_probe()
    recorder.record(probe.run(plan), output, samples, as_json, probe.conditions())


def _numbers(text: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in options.words(text))
    except ValueError:
        raise FormatError(f"{option} {text}: not whole numbers", hint=f"write {option} 1,2,4") from None
