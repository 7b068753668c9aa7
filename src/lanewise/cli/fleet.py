"""`lanewise fleet`: many machines checked together, one verdict a node."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from lanewise import files
from lanewise.cli import terminal
from lanewise.cli.command import Command, Json, QuickGroup, option_group
from lanewise.options.fleet import FleetAgentOptions, FleetCheckOptions
from lanewise.signal_deferral import SignalDeferral

if TYPE_CHECKING:
    from lanewise.fleet.fleet_check import FleetCheck

app = typer.Typer(
    cls=QuickGroup, help="Check many machines together: one verdict a node, with cause and next step.",
    no_args_is_help=True,
)  # fmt: skip


@app.command(cls=Command, short_help="Measure all nodes alone, together and in pairs; judge each.")
@option_group
def check(options: FleetCheckOptions, json: Json = None) -> None:
    """Measure the nodes of a fleet alone, all together and in pairs over the network, and judge each of them.

    Each node is compared with the model, with its siblings of the same class of machine, and with its own earlier runs
    (--history). A node that is lost is a finding; a node with a busy GPU is left alone. Ctrl-C keeps what is done.

    Exit codes: 0 all well, 1 a node is lost, at fault or slow, 2 bad input, 3 nodes that could not be judged.
    """
    from lanewise.api import fleet
    from lanewise.report.text.fleet import render_fleet, render_fleet_plan

    for path in (options.output, options.junit, options.prometheus):
        if path is not None:
            files.check_writable(path)
    if options.plan:
        return terminal.show(json, _plan_data, render_fleet_plan, *fleet.plan_fleet(options))
    result = fleet.check_fleet(options, terminal.status)
    terminal.done()
    with SignalDeferral():
        _write(result, options)
        terminal.save(json, lambda: fleet.fleet_data(result))
    terminal.show(
        "-" if json == "-" else None, lambda: fleet.fleet_data(result), lambda screen: render_fleet(result, screen)
    )
    if result.interrupted:
        raise KeyboardInterrupt
    raise typer.Exit(result.exit_code)


@app.command(cls=Command, short_help="Answer a fleet check on stdin; it starts this on each node.")
@option_group
def agent(options: FleetAgentOptions) -> None:
    """Answer the jobs of a fleet check, a line of JSON each, on stdin and stdout; the check starts it on each node."""
    from lanewise.api.fleet_agent import serve_agent

    serve_agent(options.name, sys.stdin, sys.stdout)


def _plan_data(names: Any, phases: Any) -> Any:
    from lanewise.report.fleet_json import fleet_plan_json

    return fleet_plan_json(names, phases)


def _write(result: FleetCheck, options: FleetCheckOptions) -> None:
    """The files that the options name."""
    from lanewise.api import fleet

    makers = ((options.output, fleet.fleet_page), (options.junit, fleet.fleet_junit),
              (options.prometheus, fleet.fleet_metrics))  # fmt: skip
    for path, make in makers:
        if path is not None:
            terminal.write(path, make(result))
