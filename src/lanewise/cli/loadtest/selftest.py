"""`lanewise loadtest selftest`: how fast the load generator itself is on this host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import options, terminal
from lanewise.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.loadtest.selftest import GeneratorCeiling


def selftest(
    modes: Annotated[str, typer.Option(metavar="MODES", help="plain, coalesced; with commas.")] = "plain,coalesced",
    bound: Annotated[str, typer.Option(metavar="TIME", help="Latency that 99 % of the answers must keep.")] = "15 ms",
    seconds: Annotated[float, typer.Option(min=0.1, max=600.0, help="Length of one run.")] = 2.0,
    start: Annotated[float, typer.Option(min=1.0, help="The first rate tried, queries/s.")] = 50_000.0,
    precision: Annotated[float, typer.Option(min=0.001, max=1.0, help="Gap at the end, as a share.")] = 0.05,
    tries: Annotated[int, typer.Option(min=1, max=100, help="Runs of a rate before it counts as too high.")] = 2,
    at_once: Annotated[bool, typer.Option("--at-once", help="Answer within the call, not through a thread.")] = False,
    logs: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep LoadGen's logs there; else they are removed.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Find the largest rate that LoadGen itself issues in time here, on a system that answers at once.

    A load test at more than half of it measures the generator too.
    """
    from lanewise import api, units

    wanted = options.words(modes)
    if not wanted:
        raise FormatError("--modes names no mode", hint="write --modes plain,coalesced")
    found = []
    try:
        for ceiling in api.loadtest_selftest(
            wanted, bound=units.parse(bound, "s"), seconds=seconds, start=start, precision=precision, tries=tries,
            at_once=at_once, logs=logs, say=terminal.status,
        ):  # fmt: skip
            found.append(ceiling)  # noqa: PERF402 - an interrupt keeps those there are
    finally:
        terminal.done()
        if found:
            _show(found, as_json)
            _warn(found)


def _show(found: Sequence[GeneratorCeiling], as_json: bool) -> None:
    from lanewise.report import json
    from lanewise.report.text.loadtest import render_ceilings

    data = json.ceilings(found)
    terminal.out_json(data) if as_json else terminal.out(render_ceilings(data))


def _warn(found: Sequence[GeneratorCeiling]) -> None:
    import os

    if (os.cpu_count() or 1) < 2:
        terminal.note("warning: one CPU core for the generator, its log and the system\nhint:    test on two or more")
    for each in found:
        if each.note:
            terminal.note(f"warning: {each.mode}: {each.note}")
