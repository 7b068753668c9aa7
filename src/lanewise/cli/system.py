"""`lanewise system`: list, show and draw systems, attach and detach devices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise import files
from lanewise.cli import options, terminal

if TYPE_CHECKING:
    from lanewise.topology.model import Device, System

app = typer.Typer(
    cls=options.QuickGroup, help="List, show and draw systems; attach and detach their devices.", no_args_is_help=True
)

DeviceName = Annotated[str, typer.Argument(metavar="DEVICE", help="A GPU, network card, drive or controller.")]


@app.command("list")
def list_(as_json: options.Json = False) -> None:
    """List the ready systems."""
    from lanewise import api

    systems = [api.load_system(name) for name in api.ready_systems()]
    if as_json:
        return terminal.out_json([{"name": s.name, "title": s.title, "parameters": _parameters(s)} for s in systems])
    rows = [
        (s.name, str(_count(s)), " ".join(f"{n}={p.default}" for n, p in s.parameters.items()), s.title)
        for s in systems
    ]
    terminal.out(terminal.table(("system", "GPUs", "parameters", "title"), rows, right=("GPUs",)))
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
    loaded = options.load(system, settings, parts)
    if yaml:
        from lanewise.topology.write import write_system

        return terminal.out(write_system(loaded).rstrip("\n"))
    if as_json:
        return terminal.out_json(_data(loaded))
    terminal.out(_text(loaded))
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


def _text(system: System) -> str:
    from lanewise.cli.route import speed

    lines = [f"{system.name}: {system.title}" if system.title else system.name]
    lines += [f"source: {system.source}"] if system.source else []
    for name, entry in system.parameters.items():
        allowed = ", ".join(map(str, entry.values)) if entry.values else f"{entry.minimum} to {entry.maximum}"
        lines.append(f"parameter {name} = {system.settings.get(name, entry.default)} ({allowed}): {entry.help}")
    devices = [(d.name, str(d.kind), d.part or "", d.host or "free", _numa(d)) for d in system.devices.values()]
    lines += ["", terminal.table(("device", "kind", "part", "host", "NUMA"), devices)]
    links = [(link.a, link.b, speed(link)) for link in system.links]
    lines += ["", terminal.table(("from", "to", "link"), links)]
    lines += ["", *(f"domain {d.name} at {d.root}: {', '.join(sorted(d.devices))}" for d in system.domains)]
    lines += [f"volume {v.name}: RAID {v.raid} over {', '.join(v.drives)}" for v in system.volumes.values()]
    lines += [f"assumed: {text}" for text in system.assumptions]
    return "\n".join(lines).rstrip()


def _numa(device: Device) -> str:
    return "" if device.numa is None else str(device.numa)


def _data(system: System) -> dict[str, Any]:
    from lanewise.cli.route import speed

    return {
        "system": system.name,
        "title": system.title,
        "source": system.source,
        "hosts": list(system.hosts),
        "settings": dict(system.settings),
        "parameters": _parameters(system),
        "devices": [
            {"name": d.name, "kind": str(d.kind), "part": d.part, "host": d.host, "numa": d.numa}
            for d in system.devices.values()
        ],
        "links": [
            {
                "from": link.a,
                "to": link.b,
                "kind": str(link.kind),
                "speed": speed(link),
                "port": link.port or None,
            }
            for link in system.links
        ],
        "domains": [{"name": d.name, "root": d.root, "devices": sorted(d.devices)} for d in system.domains],
        "volumes": [{"name": v.name, "raid": v.raid, "drives": list(v.drives)} for v in system.volumes.values()],
        "assumptions": list(system.assumptions),
    }


def _parameters(system: System) -> dict[str, Any]:
    return {
        name: {
            "default": p.default,
            "values": list(p.values) or None,
            "min": p.minimum,
            "max": p.maximum,
            "help": p.help,
        }
        for name, p in system.parameters.items()
    }


def _count(system: System) -> int:
    from lanewise.topology.model import Kind

    return len(system.of_kind(Kind.GPU))
