"""`lanewise loadtest run`: one run of LoadGen, with Top-1 or an audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import terminal
from lanewise.cli.loadtest import asked
from lanewise.cli.loadtest.asked import Asked, Outputs, Rules
from lanewise.cli.spread import spread

if TYPE_CHECKING:
    from lanewise.loadtest.load_run import LoadSpec
    from lanewise.loadtest.loadgen import Tick
    from lanewise.loadtest.single_run import SingleRun

Scenario = Annotated[
    str,
    typer.Option(
        "--scenario", metavar="NAME",
        help="server, offline, singlestream, multistream. [default: server; of accuracy and audits offline]",
    ),
]  # fmt: skip
Qps = Annotated[
    float, typer.Option("--qps", help="Target queries/s of server; offline samples/s to expect, 0: from a batch.")
]
Seconds = Annotated[float, typer.Option("--seconds", help="Of the run, at least.")]
Queries = Annotated[int, typer.Option("--queries", help="At least; accuracy and payload send each sample once.")]
Audit = Annotated[str, typer.Option("--audit", metavar="same-sample|payload", help="No cache; unchanged samples.")]
MlperfConf = Annotated[Path | None, typer.Option("--mlperf-conf", metavar="FILE", help="Above --seconds, --bound, ...")]
UserConf = Annotated[
    Path | None,
    typer.Option("--user-conf", metavar="FILE", help="Above mlperf.conf; --qps and --seed stand above both."),
]


@spread
def run(
    *,
    what: Asked,
    scenario: Scenario = "",
    qps: Qps = 0.0,
    seconds: Seconds = 10.0,
    queries: Queries = 1000,
    accuracy: Annotated[bool, typer.Option("--accuracy", help="Top-1 of the labelled --images.")] = False,
    audit: Audit = "",
    rules: Rules,
    mlperf_conf: MlperfConf = None,
    user_conf: UserConf = None,
    trace: asked.Trace = None,
    outputs: Outputs,
) -> None:
    """Run LoadGen once at a given load on this machine, for its verdict, for Top-1, or for an audit.

    Exit code 1 if an audit failed.
    """
    from lanewise import api, units
    from lanewise.loadtest.load_run import LoadSpec

    named = scenario_named(scenario or ("offline" if accuracy or audit else "server"))
    load = LoadSpec(named, qps, seconds, queries, units.parse(rules.bound, "s"), rules.percentile, rules.seed, accuracy,
                rules.coalesce)  # fmt: skip
    try:
        found = api.loadtest_run(
            what.bench(), load, audit=audit, mlperf_conf=mlperf_conf, user_conf=user_conf, results=outputs.results,
            trace=trace, output=outputs.output, say=terminal.status,
            tick=_ticked(load) if terminal.overwrites() else None,
        )  # fmt: skip
    finally:
        terminal.done()
    _show(found, outputs.as_json)


def scenario_named(text: str) -> str:
    """MLPerf's name of a scenario from 'server', 'single-stream', ...; UnknownName for another."""
    from lanewise.errors import unknown_name
    from lanewise.loadtest.loadgen import SCENARIOS

    known = {name.lower(): name for name in SCENARIOS}
    found = known.get(text.lower().replace("-", ""))
    if found is None:
        raise unknown_name("scenario", text, known)
    return found


def _ticked(load: LoadSpec) -> Tick:
    def told(issued: int, answered: int, late: int) -> None:
        terminal.status(f"{load.scenario}: {issued:,} issued, {answered:,} answered, {late:,} late")

    return told


def _show(found: SingleRun, as_json: bool) -> None:
    from lanewise.loadtest.run_result import as_data
    from lanewise.report.text.loadtest_run import as_text

    data = as_data(found)
    if as_json:
        terminal.out_json(data)
    else:
        terminal.out(as_text(data))
    if found.audit is not None and not found.audit.passed:
        raise typer.Exit(1)
