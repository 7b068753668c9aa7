"""`lanewise system`: list, show and draw systems, attach and detach devices."""

from __future__ import annotations

import typer

from lanewise.cli import terminal
from lanewise.cli.command import Command, Json, QuickGroup, option_group
from lanewise.options.system import (
    AttachOptions,
    DetachOptions,
    DrawSystemOptions,
    ExportSystemOptions,
    OutputOptions,
    ShowSystemOptions,
)

app = typer.Typer(
    cls=QuickGroup, help="List, show, draw and export systems; attach and detach their devices.", no_args_is_help=True
)


@app.command("list", cls=Command)
@option_group
def list_(json: Json = None) -> None:
    """List the built-in systems."""
    from lanewise import api
    from lanewise.report import json as data
    from lanewise.report.text.listings import render_systems

    systems = [api.load_system(name) for name in api.ready_systems()]
    terminal.show(json, data.systems, render_systems, systems)


@app.command("show", cls=Command)
@option_group
def show(options: ShowSystemOptions, json: Json = None) -> None:
    """Show the devices, links, domains, volumes and assumptions of a system."""
    from lanewise import api
    from lanewise.report import json as data
    from lanewise.report.text.listings import render_system
    from lanewise.topology.write import write_system

    system = api.system_of_options(options)
    if options.yaml:
        return terminal.out(write_system(system).rstrip("\n"))
    return terminal.show(json, data.system, render_system, system)


@app.command("draw", cls=Command)
@option_group
def draw(options: DrawSystemOptions) -> None:
    """Draw a system as SVG."""
    from lanewise import api

    terminal.write(options.output, api.draw(api.system_of_options(options), options.flows))


@app.command("export", cls=Command)
@option_group
def export(options: ExportSystemOptions) -> None:
    """Write a host for another tool: an NCCL topology file."""
    from lanewise import api

    terminal.write(options.output, api.nccl_topology(api.system_of_options(options), options.host, options.rates))


@app.command("schema", cls=Command)
@option_group
def schema(options: OutputOptions) -> None:
    """Print the JSON Schema of descriptions, for editors."""
    import json

    from lanewise.topology.form import json_schema

    terminal.write(options.output, json.dumps(json_schema(), indent=2))


@app.command("attach", cls=Command)
@option_group
def attach(options: AttachOptions) -> None:
    """Bind a device to a host and write the new description."""
    from lanewise import api
    from lanewise.topology.write import write_system

    attached = api.attach(api.system_of_options(options), options.device, options.host, options.at)
    terminal.write(options.output, write_system(attached))


@app.command("detach", cls=Command)
@option_group
def detach(options: DetachOptions) -> None:
    """Unbind a device from its host and write the new description."""
    from lanewise import api
    from lanewise.topology.write import write_system

    terminal.write(options.output, write_system(api.detach(api.system_of_options(options), options.device)))
