"""`lanewise loadtest`: MLPerf LoadGen on this machine; one function for each kind of test."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from lanewise import files
from lanewise.cli import terminal
from lanewise.cli.command import Command, Json, QuickGroup, option_group
from lanewise.options.loadtest import BOTH, PeakOptions, RunOptions, SelftestOptions, SweepOptions, TrainingOptions
from lanewise.signal_deferral import SignalDeferral

if TYPE_CHECKING:  # numpy comes with them
    from lanewise.dispatch.counters import DispatchRates
    from lanewise.loadtest.divisions import DivisionsResult
    from lanewise.loadtest.load_run import LoadGenResult
    from lanewise.loadtest.peak import PeakResult, SearchProgress
    from lanewise.loadtest.selftest import GeneratorCeiling
    from lanewise.loadtest.single_run import SingleRun
    from lanewise.loadtest.sweep import SweepResult


class PeakByDefault(QuickGroup):
    """Runs the search for the peak where no verb is named: `lanewise loadtest --devices gpu0`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments, with `peak` before options that no verb precedes."""
        has_verb = args and (args[0] in (*self.commands, "-h", "--help") or not args[0].startswith("-"))
        return super().parse_args(ctx, args if has_verb else ["peak", *args])


app = typer.Typer(cls=PeakByDefault, help="Load tests of this machine, or of nodes over a network, with LoadGen.")


@app.command(cls=Command, short_help="Find the largest VALID rate of this machine (the default).")
@option_group
def peak(options: PeakOptions, json: Json = None) -> None:
    """Find the largest rate of MLPerf's Server scenario that LoadGen calls VALID on this machine.

    The peak is predicted first, then searched for. With --nodes or --division network, Accelerator nodes answer; with
    --division both, first this machine's devices, then nodes: Network as a share of Closed. Ctrl-C keeps the finished
    runs; to resume, repeat the command with the same --results.
    Exit code 1 if no rate is VALID.
    """
    from lanewise.api.loadtest import loadtest_peak

    if options.division == BOTH:
        return _both(options, json)
    try:
        result = loadtest_peak(
            options, say=terminal.status, warn=terminal.note, on_progress=_show_progress, on_run=_show_run,
            on_result=lambda result: _show_peak(result, json), on_counters=_show_counters,
        )  # fmt: skip
    finally:
        terminal.done()
    if result.best is None:
        raise typer.Exit(1)
    return None


def _both(options: PeakOptions, json: str | None) -> None:
    from lanewise.api.divisions import loadtest_divisions

    before = [""]  # the division whose run is under way

    def show_progress(progress: SearchProgress) -> None:
        before[0] = f"{progress.division}: "
        _show_progress(progress, before[0])

    try:
        result = loadtest_divisions(
            options, say=terminal.status, warn=terminal.note, on_progress=show_progress,
            on_run=lambda run: _show_run(run, before[0]), on_result=lambda result: _show_divisions(result, json),
            on_counters=_show_counters,
        )  # fmt: skip
    finally:
        terminal.done()
    if result.share.share is None:
        raise typer.Exit(1)


@app.command(cls=Command, short_help="Run LoadGen once: a given load, Top-1, or an audit.")
@option_group
def run(options: RunOptions, json: Json = None) -> None:
    """Run LoadGen once at a given load on this machine: for its verdict, for Top-1, or for an audit.

    Exit code 1 if LoadGen calls the run INVALID, if it ended early, or if an audit failed.
    """
    from lanewise.api.loadtest import loadtest_run

    try:
        result = loadtest_run(
            options, say=terminal.status, warn=terminal.note,
            tick=_show_tick if terminal.overwrites() and not options.nodes else None,
            on_result=lambda result: _show_single(result, json), on_counters=_show_counters,
        )  # fmt: skip
    finally:
        terminal.done()
    if not result.passed:
        raise typer.Exit(1)


@app.command(cls=Command, short_help="Find the load generator's own ceiling on this host.")
@option_group
def selftest(options: SelftestOptions, json: Json = None) -> None:
    """Find the largest rate that LoadGen itself issues in time on this host, with a system that answers at once.

    A load test above half of this rate measures the generator too.
    """
    from lanewise.api.loadtest import loadtest_selftest
    from lanewise.report.text.loadtest import render_ceilings

    ceilings: list[GeneratorCeiling] = []
    try:
        for ceiling in loadtest_selftest(options, say=terminal.status):
            ceilings.append(ceiling)  # noqa: PERF402 - an interrupt keeps the finished modes
    finally:
        terminal.done()
        if ceilings:
            _show("selftest", {"modes": [asdict(ceiling) for ceiling in ceilings]}, json, render_ceilings)
            _warn(ceilings)


@app.command(cls=Command, short_help="Find the peak for several numbers of GPUs, batches, streams or paths.")
@option_group
def sweep(options: SweepOptions, json: Json = None) -> None:
    """Find the peak at each point of a sweep and compare the points.

    A point that cannot be measured is a row with its reason; exit code 1 if no point has a rate. Ctrl-C keeps the
    finished points; to resume, repeat the command with the same --results.
    """
    from lanewise.api.loadtest import loadtest_sweep
    from lanewise.report.figure import import_charts

    if options.chart is not None:
        import_charts()
    results: list[SweepResult] = []
    with SignalDeferral() as deferral:
        points = loadtest_sweep(options, say=terminal.status, warn=terminal.note, on_progress=_show_progress)
        try:
            for _ in deferral.collect(points, results):
                pass
        finally:
            terminal.done()
            if results:
                _write_sweep(options, results, json)
    if all(result.reason for result in results):
        raise typer.Exit(1)


@app.command(cls=Command, short_help="Compute the data rate of a training from its log.")
@option_group
def training(options: TrainingOptions, json: Json = None) -> None:
    """Compute how much data a training reads per second: epochs of its MLPerf log times the size of the dataset."""
    from lanewise.api.loadtest import loadtest_training
    from lanewise.report.text.loadtest import render_training

    _show("training", loadtest_training(options).data(), json, render_training)


def _show_peak(result: PeakResult, json: str | None) -> None:
    from lanewise.loadtest.result import peak_data
    from lanewise.report.text.loadtest import render_peak

    _show("peak", peak_data(result), json, render_peak)


def _show_divisions(result: DivisionsResult, json: str | None) -> None:
    from lanewise.loadtest.divisions import divisions_data
    from lanewise.report.text.loadtest import render_divisions

    _show("divisions", divisions_data(result), json, render_divisions)


def _show_single(result: SingleRun, json: str | None) -> None:
    from lanewise.loadtest.result import run_data
    from lanewise.report.text.loadtest import render_run

    _show("run", run_data(result), json, render_run)


def _show(verb: str, data: Mapping[str, Any], json: str | None, render: Any) -> None:
    from lanewise.report.json import document

    terminal.done()
    terminal.show(json, lambda: document(f"loadtest-{verb}", data), lambda screen: render(data, screen))


def _show_progress(progress: SearchProgress, before: str = "") -> None:
    """The run of a search that is about to begin."""
    load = f"{progress.load.qps:,.0f} queries/s" if progress.role == "search" else progress.role
    time = f"about {progress.remaining:.0f} s left of this search"
    spec = progress.load  # LoadGen runs until both are reached
    seconds = max(spec.seconds, spec.queries / spec.qps) if progress.role == "search" else spec.seconds
    terminal.status(f"{before}run {progress.number}: {load} for {seconds:.1f} s; {time}")


def _show_run(run: LoadGenResult, before: str = "") -> None:
    if run.role == "search" and not terminal.overwrites():
        verdict = "VALID" if run.valid else "INVALID"
        terminal.status(f"{before}{run.load.qps:,.0f} queries/s {verdict}")


def _show_tick(issued: int, answered: int, late: int) -> None:
    terminal.status(f"{issued:,} issued, {answered:,} answered, {late:,} late")


def _show_counters(rates: DispatchRates) -> None:
    """What the connections to the nodes do, on a terminal."""
    if terminal.overwrites():
        from lanewise.report.dispatch import progress

        terminal.status(progress(rates))


def _warn(ceilings: list[GeneratorCeiling]) -> None:
    if (os.cpu_count() or 1) < 2:
        terminal.note("warning: one CPU core for the generator, its log and the system\nhint:    test on two or more")
    for ceiling in ceilings:
        if ceiling.note:
            terminal.note(f"warning: {ceiling.mode}: {ceiling.note}")


def _write_sweep(options: SweepOptions, results: list[SweepResult], json: str | None) -> None:
    from lanewise.api.loadtest import as_sweep_run, sweep_data
    from lanewise.api.runs import save_run
    from lanewise.report.sweep import as_chart
    from lanewise.report.text.loadtest import render_sweep

    data = sweep_data(options, results)
    if options.output is not None:
        save_run(as_sweep_run(options, results), options.output)
    _show("sweep", data, json, render_sweep)
    if options.chart is not None and all(result.reason for result in results):
        terminal.note(f"{options.chart} not written: no point has a rate")
    elif options.chart is not None:
        files.write_file(options.chart, as_chart(data))
        terminal.note(f"wrote {options.chart}")
