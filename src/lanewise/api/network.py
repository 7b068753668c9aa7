"""Measures the network between two processes or hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lanewise.options.measure_network import NetworkSideOptions
    from lanewise.results.sample import Sample


def measure_network(address: str | None = None, **options: Any) -> Iterator[Sample]:
    """Samples of bandwidth or latency to the listener at HOST[:PORT]; without one over this machine's loopback.

    `options` are the fields of MeasureNetworkOptions: transport="verbs", sizes=(4096,), connections=(1, 4),
    latency=True. CannotMeasure where nothing listens, something else does, or the listener leaves; the samples up to
    then stay valid.
    """
    from lanewise.options.measure_network import MeasureNetworkOptions
    from lanewise.probes.network.probe import NetworkProbe

    return NetworkProbe().run(MeasureNetworkOptions(address=address, **options))


def listen_network(
    address: str = "",
    *,
    side: NetworkSideOptions | None = None,
    once: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Answer one client after the other at [ADDRESS][:PORT] until interrupted; with `once` a single one.

    Loopback unless another address is named. Whoever reaches the port can make this machine send and receive.
    """
    from lanewise.options.measure_network import NetworkSideOptions
    from lanewise.probes.network import numa
    from lanewise.probes.network.listener import open_listener, serve

    side = side or NetworkSideOptions()
    numa.check(side)
    with open_listener(address) as listener:
        host, port = listener.getsockname()[:2]
        say(f"listening on {host} port {port}; Ctrl-C ends it")
        serve(listener, side, once=once, say=say)
