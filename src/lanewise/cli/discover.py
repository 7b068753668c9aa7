"""`lanewise discover`: read a machine into a description, from its dumps or from /sys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise import files
from lanewise.cli import options, terminal
from lanewise.errors import InputError

if TYPE_CHECKING:
    from lanewise.catalog import Catalog
    from lanewise.discovery.build import Discovery


def discover(
    dumps: Annotated[list[Path] | None, typer.Argument(metavar="FILE", help="Further dumps, as --from.")] = None,
    from_: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="A capture or a dump: hwloc XML, NCCL XML, nvidia-smi topo -m, topo -p2p, nvlink -s, lspci -tv, "
            "lspci -vvv, ibstat, a tar or folder of /sys.",
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="The name of the system in the description.")] = "",
    table: Annotated[bool, typer.Option("--table", help="Show devices and links instead of the description.")] = False,
    capture: Annotated[
        Path | None,
        typer.Option(metavar="FILE.tar.zst", help="Write all that is read of this machine, to replay anywhere."),
    ] = None,
    under_load: Annotated[
        bool, typer.Option("--under-load", help="The links are busy: a capture whose links are as fast as they get.")
    ] = False,
    drawing: Annotated[
        Path | None, typer.Option("--draw", metavar="FILE.svg", help="Draw the machine to this file.")
    ] = None,
    parts: options.Parts = None,
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Read this machine, or the one that dumps describe together, into a description to keep and edit."""
    from lanewise.report import json
    from lanewise.report.text.system import render_discovery

    files_ = [*(from_ or ()), *(dumps or ())]
    _check(capture, under_load, files_, [path for path in (output, drawing, capture) if path is not None])
    found = _found(files_, capture, under_load, options.catalog(parts), name)
    for text in found.contradictions:
        terminal.note(f"contradiction: {text}")
    if capture is not None:
        terminal.note(f"wrote {capture}: read it anywhere with lanewise discover --from {capture}")
    if drawing is not None:
        from lanewise import api

        files.write_file(drawing, api.draw(found.system))
        terminal.note(f"wrote {drawing}")
    if output is not None:
        files.write_file(output, found.text())
        terminal.note(f"wrote {output}")
    if as_json:
        return terminal.out_json(json.discovery(found.system, found))
    if table:
        names = {device: _called(found, device) for device in found.system.devices}
        return terminal.print_text(render_discovery, found.system, names)
    if output is None and capture is None and drawing is None:
        terminal.out(found.text().rstrip("\n"))
    return None


def _check(capture: Path | None, under_load: bool, dumps: list[Path], written: list[Path]) -> None:
    """What cannot be is refused before the machine is read."""
    if dumps and capture is not None:
        hint = "leave out --capture, or run it on the machine itself"
        raise InputError("--capture is of this machine, --from reads another", hint=hint)
    if under_load and capture is None:
        hint = "lanewise discover --capture machine.tar.zst --under-load, while copies run"
        raise InputError("--under-load says how a capture was made, and none is asked for", hint=hint)
    for path in written:
        files.check_writable(path)


def _found(dumps: list[Path], capture: Path | None, under_load: bool, catalog: Catalog, name: str) -> Discovery:
    from lanewise import api

    if capture is None:
        return api.discover(dumps, catalog, name)
    return api.capture(capture, under_load or None, catalog, name)


def _called(found: Discovery, name: str) -> str:
    return " ".join(dict.fromkeys([*found.dump_names[name], found.labels.get(name, "")])).strip()
