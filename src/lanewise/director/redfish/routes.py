"""Every resource type of the service."""

from __future__ import annotations

from functools import cache

from lanewise.director.redfish.resource import RouteTable
from lanewise.director.redfish.resources import (
    accounts,
    blocks,
    chassis,
    composition,
    drawing,
    events,
    fabrics,
    managers,
    root,
    systems,
    tasks,
    telemetry,
)


@cache
def route_table() -> RouteTable:
    """The routes of the service; they hold no state."""
    modules = (
        root, managers, accounts, events, tasks, chassis, systems, fabrics, blocks, composition, telemetry, drawing,
    )  # fmt: skip
    return RouteTable(tuple(kind for module in modules for kind in module.TYPES))
