"""`lanewise measure network`: bandwidth and latency between processes."""

from __future__ import annotations

from typing import Annotated

import typer

from lanewise.cli import terminal
from lanewise.cli.measure import recorder
from lanewise.cli.option_group import option_group
from lanewise.cli.shared import Json
from lanewise.options.measure_network import MeasureNetworkOptions
from lanewise.options.record import RecordOptions


@option_group
def network(
    options: MeasureNetworkOptions,
    record_options: RecordOptions,
    listen: Annotated[
        bool, typer.Option("--listen", help="Answer clients here, on loopback unless an address is named.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="With --listen: end after one client.")] = False,
    json: Json = None,
) -> None:
    """Measure bandwidth or latency between two processes or hosts over TCP or RDMA verbs.

    One side runs with --listen, the other names it; without an address two processes measure loopback.
    """
    if listen:
        from lanewise.api.network import listen_network

        return listen_network(options.address or "", side=options, once=once, say=terminal.note)
    from lanewise.probes.network.probe import NetworkProbe

    recorder.record(NetworkProbe().run(options), record_options, json)
    return None
