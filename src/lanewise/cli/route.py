"""`lanewise route`: the way data takes between two devices, or all classes and who can be peers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import options, terminal

if TYPE_CHECKING:
    from lanewise.topology.model import System


def route(
    system: options.SystemName,
    src: Annotated[
        str | None, typer.Argument(metavar="FROM", help="Device, host, or host:NUMA; none for all pairs.")
    ] = None,
    dst: Annotated[str | None, typer.Argument(metavar="TO", help="Device, host, or host:NUMA.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every sensible route, also those that policy forbids.")] = False,
    no_p2p: options.NoP2p = False,
    settings: options.Settings = None,
    parts: options.Parts = None,
    as_json: options.Json = False,
) -> None:
    """Show the route between two devices and its class, or the classes of all pairs and who can be peers."""
    from lanewise import api
    from lanewise.report import json
    from lanewise.report.text.route import render_route, render_routes

    loaded = options.load(system, settings, parts)
    if src is None:
        return _overview(loaded, as_json)
    if dst is None:
        from lanewise.errors import InputError

        raise InputError(f"a route from {src} needs an end", hint=f"lanewise route {system} {src} TO")
    found = api.all_routes(loaded, src, dst) if every else (api.route(loaded, src, dst, not no_p2p),)
    if as_json:
        return terminal.out_json(json.routes(loaded, found))
    terminal.print_text(render_routes, found) if every else terminal.print_text(render_route, loaded, found[0])
    return None


def _overview(system: System, as_json: bool) -> None:
    from lanewise import api
    from lanewise.report import json
    from lanewise.report.text.route import render_overview

    classes, pairs = api.class_matrix(system), api.peers(system)
    if as_json:
        return terminal.out_json(json.classes(system, classes, pairs))
    return terminal.print_text(render_overview, system, classes, pairs)
