"""`lanewise route`: the route between two devices, or all classes and who can be peers."""

from __future__ import annotations

from lanewise.cli import terminal
from lanewise.cli.command import Json, option_group
from lanewise.cli.terminal import json_of
from lanewise.errors import InputError
from lanewise.options.system import RouteOptions, SystemOptions


@option_group
def route(system_options: SystemOptions, options: RouteOptions, json: Json = None) -> None:
    """Show the route between two devices and its class, or the classes of all pairs and who can be peers."""
    from lanewise import api
    from lanewise.report.text import route as text

    system = api.system_of_options(system_options)
    source, destination = options.source, options.destination
    if source is None:
        classes, pairs = api.class_matrix(system), api.peers(system)
        return terminal.show(json, json_of("classes"), text.render_overview, system, classes, pairs)
    if destination is None:
        hint = f"lanewise route {system_options.system} {source} TO"
        raise InputError(f"a route from {source} needs an end", hint=hint)
    if options.all:
        routes = api.all_routes(system, source, destination)
        return terminal.show(
            json, lambda: json_of("routes")(system, routes), lambda screen: text.render_routes(routes, screen)
        )
    direct = api.route(system, source, destination, not options.no_p2p)
    return terminal.show(
        json, lambda: json_of("routes")(system, (direct,)), lambda screen: text.render_route(system, direct, screen)
    )
