"""`lanewise loadtest peak`: the largest rate that keeps the bound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import options, terminal
from lanewise.cli.loadtest import asked
from lanewise.cli.loadtest.asked import Asked

if TYPE_CHECKING:
    from lanewise.api.loadtest import Answer
    from lanewise.loadtest.peak import Done, Progress


def peak(
    engine: asked.EngineName = "",
    model: asked.ModelName = "small-cnn",
    precision: asked.Precision = "fp32",
    devices: asked.Devices = "cpu",
    batch: asked.Batch = 8,
    timeout: asked.Timeout = "1 ms",
    streams: asked.Streams = 2,
    copy: asked.Copy = "auto",
    library: asked.Library = 1024,
    sample_bytes: asked.SampleBytes = "150528 B",
    service: asked.Service = "1 ms",
    threads: asked.Threads = 0,
    mode: asked.Mode = "eager",
    images: asked.Images = None,
    bound: asked.Bound = "15 ms",
    percentile: asked.Percentile = 0.99,
    within: Annotated[float, typer.Option("--within", min=0.001, max=0.5, help="Precision wanted, as a share.")] = 0.02,
    seconds: Annotated[float, typer.Option("--seconds", min=1.0, help="Load in all; more tells more.")] = 140.0,
    most_runs: Annotated[int, typer.Option("--most-runs", min=1, help="Server runs at most.")] = 12,
    seed: Annotated[int, typer.Option("--seed", min=1, help="Of the first run; each has its own.")] = 1,
    coalesce: asked.Coalesce = False,
    results: asked.Results = None,
    trace: Annotated[Path | None, typer.Option("--trace", metavar="FILE", help="The last run for Perfetto.")] = None,
    as_json: options.Json = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="RUN.json", help="Write the run, for report, compare.")
    ] = None,
) -> None:
    """Search the largest VALID target of MLPerf's Server scenario on this machine, predicted before and measured.

    Its answer is the target of a run that LoadGen calls VALID. Ctrl-C keeps what is finished: the same command with
    --results goes on from there.
    """
    from lanewise import api, units

    what = Asked(engine, model, precision, devices, batch, timeout, streams, copy, library, sample_bytes, service,
                 threads, mode, images)  # fmt: skip
    try:
        answer = api.loadtest_peak(
            what.bench(), bound=units.parse(bound, "s"), percentile=percentile, precision=within, seconds=seconds,
            most_runs=most_runs, seed=seed, coalesce=coalesce, results=results, trace=trace, output=output,
            say=terminal.status, on_progress=progress, on_run=_told,
        )  # fmt: skip
    finally:
        terminal.done()
    show(answer, as_json)


def progress(now: Progress) -> None:
    """The run of a search that is about to begin."""
    load = f"{now.load.qps:,.0f} queries/s" if now.kind == "search" else now.kind
    left = f"about {now.left:.0f} s left of this search"
    terminal.status(f"run {now.number}: {load} for {now.load.seconds:.1f} s; {left}")


def _told(run: Done) -> None:
    if run.kind != "search" or terminal.overwrites():
        return
    outcome = run.outcome
    terminal.note(f"{outcome.load.qps:,.0f} queries/s {'VALID' if outcome.valid else 'not valid'}")


def show(answer: Answer, as_json: bool) -> None:
    """The answer, beside its prediction, and what it rests on."""
    if as_json:
        return terminal.out_json(answer.data())
    from lanewise.report.loadtest import as_text

    return terminal.out(as_text(answer.data()))
