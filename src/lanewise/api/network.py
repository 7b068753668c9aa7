"""Measures the network between two processes or hosts."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lanewise.probes.network.options import Binding, NetworkPlan, Rdma
    from lanewise.results.estimate import Rule
    from lanewise.results.sample import Sample


def measure_network(
    peer: str | None = None, rule: Rule | None = None, plan: NetworkPlan | None = None
) -> Iterator[Sample]:
    """Samples of bandwidth (GB/s) or latency (us) to the listener at HOST[:PORT]; without one over this loopback.

    CannotMeasure where nothing listens, something else does, or the peer leaves in mid-run; what was yielded stands.
    """
    from lanewise.probes.network import listener_process, messages, numa
    from lanewise.probes.network.options import NetworkPlan
    from lanewise.probes.network.probe import NetworkProbe
    from lanewise.probes.network.session import peer_at

    plan = plan or NetworkPlan()
    plan.cells()  # what has no meaning is refused before anything starts
    binding, rdma = plan.binding, plan.rdma
    numa.check(binding)
    where = (
        listener_process.second_process(binding, rdma) if peer is None else nullcontext(messages.parse_address(peer))
    )
    with where as address, peer_at(address, binding, rdma) as other:
        yield from (NetworkProbe(other, rule) if rule else NetworkProbe(other)).samples(plan)


def listen_network(
    address: str = "",
    *,
    binding: Binding | None = None,
    rdma: Rdma | None = None,
    once: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Answer one client after the other at [ADDRESS][:PORT] until interrupted; with `once` a single one.

    Loopback unless another address is named. Whoever reaches the port can make this machine send and receive.
    """
    from lanewise.probes.network import numa
    from lanewise.probes.network.listener import open_listener, serve
    from lanewise.probes.network.options import Binding, Rdma

    numa.check(binding or Binding())
    with open_listener(address) as listener:
        host, port = listener.getsockname()[:2]
        say(f"listening on {host} port {port}; Ctrl-C ends it")
        serve(listener, binding or Binding(), rdma or Rdma(), once=once, say=say)


__all__ = ["listen_network", "measure_network"]
