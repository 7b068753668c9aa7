"""`lanewise system`: list, show and draw systems, attach and detach devices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lanewise import files
from lanewise.cli import options, terminal

app = typer.Typer(
    cls=options.QuickGroup, help="List, show and draw systems; attach and detach their devices.", no_args_is_help=True
)

DeviceName = Annotated[str, typer.Argument(metavar="DEVICE", help="A GPU, network card, drive or controller.")]


@app.command("list")
def list_(as_json: options.Json = False) -> None:
    """List the ready systems."""
    from lanewise import api
    from lanewise.report import json
    from lanewise.report.text.system import render_systems

    systems = [api.load_system(name) for name in api.ready_systems()]
    if as_json:
        return terminal.out_json(json.systems(systems))
    terminal.print_text(render_systems, systems)
    return None


@app.command("show")
def show(
    system: options.SystemName,
    settings: options.Settings = None,
    yaml: Annotated[bool, typer.Option("--yaml", help="As a description, to edit and keep.")] = False,
    parts: options.Parts = None,
    as_json: options.Json = False,
) -> None:
    """Show the devices, links, domains, volumes and assumptions of a system."""
    from lanewise.report import json
    from lanewise.report.text.system import render_system

    loaded = options.load(system, settings, parts)
    if yaml:
        from lanewise.topology.write import write_system

        return terminal.out(write_system(loaded).rstrip("\n"))
    if as_json:
        return terminal.out_json(json.system(loaded))
    terminal.print_text(render_system, loaded)
    return None


@app.command("draw")
def draw(
    system: options.SystemName,
    flows: Annotated[
        str | None, typer.Option(help="Draw the load of these flows on the links, and their routes.")
    ] = None,
    settings: options.Settings = None,
    parts: options.Parts = None,
    output: options.Output = None,
) -> None:
    """Draw a system as SVG, to stdout or with -o to a file."""
    from lanewise import api

    _give(api.draw(options.load(system, settings, parts), flows), output)


@app.command("schema")
def schema(output: options.Output = None) -> None:
    """Print the JSON Schema of descriptions, for editors."""
    import json

    from lanewise.topology.schema import json_schema

    _give(json.dumps(json_schema(), indent=2), output)


@app.command("attach")
def attach(
    system: options.SystemName,
    device: DeviceName,
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host to bind it to.")],
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="SWITCH", help="Move its cable below this switch or CPU first."),
    ] = None,
    settings: options.Settings = None,
    parts: options.Parts = None,
    output: options.Output = None,
) -> None:
    """Bind a device to a host and give the new description, to stdout or with -o to a file."""
    from lanewise import api
    from lanewise.topology.write import write_system

    _give(write_system(api.attach(options.load(system, settings, parts), device, host, at)), output)


@app.command("detach")
def detach(
    system: options.SystemName,
    device: DeviceName,
    settings: options.Settings = None,
    parts: options.Parts = None,
    output: options.Output = None,
) -> None:
    """Unbind a device from its host and give the new description, to stdout or with -o to a file."""
    from lanewise import api
    from lanewise.topology.write import write_system

    _give(write_system(api.detach(options.load(system, settings, parts), device)), output)


def _give(text: str, output: Path | None) -> None:

    if output is None:
        return terminal.out(text.rstrip("\n"))
    files.write_file(output, text)
    terminal.note(f"wrote {output}")
    return None
