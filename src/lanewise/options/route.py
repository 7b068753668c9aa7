"""Options of `lanewise route`."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.options.option import Options, argument, option


@dataclass(frozen=True, slots=True)
class RouteOptions(Options):
    """The ends of a route; without them all pairs."""

    source: str | None = argument("FROM", "Device, host, or host:NUMA; leave it out for all pairs.", None)
    destination: str | None = argument("TO", "Device, host, or host:NUMA.", None)
    all: bool = option(False, "Show every sensible route, including those that policy forbids.")
    no_p2p: bool = option(False, "Copy between two GPUs through host memory.")
