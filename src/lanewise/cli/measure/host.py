"""`lanewise measure host`: memory copies by NUMA node and thread count."""

from __future__ import annotations

from typing import Annotated

import typer

from lanewise.cli import options
from lanewise.cli.measure import recorded
from lanewise.errors import FormatError


def host(
    what: Annotated[str, typer.Option(metavar="KINDS", help="copy, read, write, latency; with commas.")] = "",
    threads: Annotated[str, typer.Option(metavar="NUMBERS", help="1,2,4: one a core; else 1, 2, 4, ... all.")] = "",
    nodes: Annotated[str, typer.Option(metavar="NUMBERS", help="NUMA nodes, 0,1; else all of them.")] = "",
    size: Annotated[
        str, typer.Option("--bytes", metavar="SIZE", help="Each buffer, 1GiB; else 3 times the last-level cache.")
    ] = "",
    output: recorded.RunFile = None,
    samples: recorded.SampleFile = None,
    as_json: options.Json = False,
) -> None:
    """Copy, read and write this machine's memory between its NUMA nodes, and time single loads."""
    from lanewise import api, units
    from lanewise.api.host import host_conditions

    kinds = options.words(what)
    wanted = int(units.parse(size, "B")) if size else None
    cores, where = _numbers(threads, "--threads"), _numbers(nodes, "--nodes")
    taken = api.measure_host(kinds, threads=cores, nodes=where, bytes=wanted)
    recorded.record(taken, output, samples, as_json, host_conditions())


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(word) for word in options.words(text)]
    except ValueError:
        raise FormatError(f"{option} {text}: not whole numbers", hint=f"write {option} 1,2,4") from None
