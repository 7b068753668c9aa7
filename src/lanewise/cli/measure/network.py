"""`lanewise measure network`: bandwidth and latency between processes."""

from __future__ import annotations

from typing import Annotated

import typer

from lanewise.cli import options, terminal
from lanewise.cli.measure import recorder
from lanewise.errors import InputError

_VERBS = "verbs only: "


def network(
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="[HOST][:PORT]", help="The listener to measure to (or where to listen); none: loopback."
        ),
    ] = None,
    listen: Annotated[bool, typer.Option("--listen", help="Answer clients here, on loopback unless told.")] = False,
    once: Annotated[bool, typer.Option("--once", help="With --listen: end after one client.")] = False,
    transport: Annotated[str, typer.Option(metavar="tcp|verbs", help="What carries the data.")] = "tcp",
    sizes: Annotated[str | None, typer.Option(metavar="SIZE,...", help="Message sizes, such as 4KiB,128KiB.")] = None,
    connections: Annotated[
        str, typer.Option(metavar="N,...", help="Connections, or queue pairs, that run at once.")
    ] = "1,4",
    seconds: Annotated[float, typer.Option(metavar="S", help="Length of one sample.")] = 0.25,
    latency: Annotated[bool, typer.Option("--latency", help="Round trips instead of bandwidth.")] = False,
    both_ways: Annotated[bool, typer.Option("--both-ways", help="Send and receive at once.")] = False,
    receive: Annotated[bool, typer.Option("--receive", help="The listener sends.")] = False,
    node: Annotated[int | None, typer.Option(metavar="N", help="Stay on this NUMA node, not on the card's.")] = None,
    no_bind: Annotated[bool, typer.Option("--no-bind", help="Leave threads and buffers where they fall.")] = False,
    zero_copy: Annotated[bool, typer.Option("--zero-copy", help="Send with MSG_ZEROCOPY (tcp).")] = False,
    device: Annotated[str | None, typer.Option(metavar="NAME", help=_VERBS + "this side's RDMA device.")] = None,
    gid_index: Annotated[int | None, typer.Option(metavar="N", help=_VERBS + "this side's GID.")] = None,
    operation: Annotated[str, typer.Option(metavar="write|read|send", help=_VERBS + "what moves data.")] = "write",
    depth: Annotated[int, typer.Option(metavar="N", help=_VERBS + "requests outstanding on a queue pair.")] = 64,
    inline: Annotated[int, typer.Option(metavar="BYTES", help=_VERBS + "messages up to this go inline.")] = 0,
    events: Annotated[bool, typer.Option("--events", help=_VERBS + "sleep until a completion arrives.")] = False,
    output: recorder.RunFile = None,
    samples: recorder.SampleFile = None,
    as_json: options.Json = False,
) -> None:
    """Measure bandwidth or latency between two processes or hosts over TCP or RDMA verbs.

    One side runs with --listen, the other names it; without an address two processes measure loopback.
    """
    from lanewise.probes.network.options import Binding, MeasureNetworkOptions, RdmaOptions
    from lanewise.probes.network.probe import NetworkProbe

    binding = Binding(not no_bind, node)
    rdma = RdmaOptions(device, gid_index, operation, depth, inline, events)
    if listen:
        from lanewise.api.network import listen_network

        listen_network(address or "", binding=binding, rdma=rdma, once=once, say=terminal.note)
        return
    if both_ways and receive:
        raise InputError("--both-ways includes --receive", hint="choose one")
    direction = "both" if both_ways else "from" if receive else "to"
    plan = MeasureNetworkOptions(
        address, transport, _sizes(sizes), _counts(connections), direction, latency, seconds, zero_copy, binding, rdma
    )
    recorder.record(NetworkProbe().run(plan), output, samples, as_json)


def _sizes(text: str | None) -> tuple[int, ...]:
    from lanewise import units

    return tuple(int(units.parse(piece, "B")) for piece in (text or "").split(",") if piece.strip())


def _counts(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(piece) for piece in text.split(","))
    except ValueError:
        raise InputError(f"'{text}' is no list of whole numbers", hint="such as --connections 1,2,4") from None
