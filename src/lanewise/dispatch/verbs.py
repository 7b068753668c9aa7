"""Queries over RDMA: queue pairs of both sides' devices, whose addresses travel over the control channel."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.control.handshake import new_nonce
from lanewise.control.rdma import RdmaAddress, RdmaPort, connect_pairs, same_network
from lanewise.control.stream import SAME_VERSION
from lanewise.control.sysfs import SYS, cpus_of
from lanewise.dispatch.messages import ConnectionShape, OpenReply
from lanewise.dispatch.transport import FrontendTransport, NodeTransport, native_failures
from lanewise.errors import CannotMeasure, InputError

if TYPE_CHECKING:
    from lanewise._native import NetworkSystem, NodeSession, SlotMemory, VerbsEndpoint


class VerbsAtNode(NodeTransport):
    """Makes a queue pair for each connection, on the port that the Frontend chose for it."""

    def __init__(self, ports: Sequence[RdmaPort], shape: ConnectionShape, slots: SlotMemory) -> None:
        from lanewise import _native as native

        self.nonce = new_nonce()
        self._ports = ports
        self._endpoints: list[VerbsEndpoint] = []
        for index, port in enumerate(ports):
            with native_failures():
                self._endpoints.append(native.VerbsEndpoint.of_node(
                    shape, slots, index * shape.slots, port.device, port.port, port.gid_index, node_number(port.node)
                ))  # fmt: skip

    def addresses(self) -> list[RdmaAddress]:
        """See NodeTransport."""
        return [endpoint.address() for endpoint in self._endpoints]

    def join(self, session: NodeSession, shape: ConnectionShape, peers: Sequence[RdmaAddress]) -> None:
        """See NodeTransport."""
        if len(peers) != len(self._endpoints):
            raise InputError("verbs need the address of each queue pair", hint=SAME_VERSION)
        for endpoint, port, peer in zip(self._endpoints, self._ports, peers, strict=True):
            connect_pairs(endpoint, peer)
            with native_failures():
                session.add_verbs(endpoint, cpus_near(port.node))

    def close(self) -> None:
        """See NodeTransport."""
        self._endpoints = []


class VerbsAtFrontend(FrontendTransport):
    """Makes a queue pair for each connection, on the ports of `choose_ports`."""

    name = "verbs"

    def __init__(self, ports: Sequence[tuple[RdmaPort, int]], within_host: bool) -> None:
        self._ports = [port for port, _ in ports]
        self.devices = [port.device for port in self._ports]
        self.node_ports = [index for _, index in ports]
        self.within_host = within_host
        self._endpoints: list[VerbsEndpoint] = []

    def offer(self, reply: OpenReply, shape: ConnectionShape) -> list[RdmaAddress]:
        """See FrontendTransport."""
        from lanewise import _native as native

        if len(reply.addresses) != len(self._ports):
            raise CannotMeasure("the node gives no queue pairs", hint=SAME_VERSION)
        for port, address in zip(self._ports, reply.addresses, strict=True):
            with native_failures():
                endpoint = native.VerbsEndpoint.of_frontend(
                    shape, port.device, port.port, port.gid_index, node_number(port.node)
                )
            connect_pairs(endpoint, address)
            self._endpoints.append(endpoint)
        return [endpoint.address() for endpoint in self._endpoints]

    def join(self, system: NetworkSystem, node: int, shape: ConnectionShape) -> None:
        """See FrontendTransport."""
        for endpoint, port in zip(self._endpoints, self._ports, strict=True):
            with native_failures():
                system.add_verbs(node, endpoint, node_number(port.node), cpus_near(port.node))

    def close(self) -> None:
        """See FrontendTransport."""
        self._endpoints = []


def choose_ports(
    name: str, local: Sequence[RdmaPort], remote: Sequence[RdmaPort], connections: int
) -> list[tuple[RdmaPort, int]]:
    """For each connection a port of this side and the index of one of node `name`, spread over all that fit.

    They are of one kind; if there are pairs of one network, only those are taken. CannotMeasure where none fits.
    """
    fitting = [(i, j) for i, one in enumerate(local) for j, other in enumerate(remote) if one.kind == other.kind]
    if not fitting:
        raise CannotMeasure(
            f"no RDMA port of this side ({_kinds(local)}) is of the kind of one of node {name} ({_kinds(remote)})",
            hint="--device and --gid-index choose others, on both sides; or use --transport tcp",
        )
    pairs = [(i, j) for i, j in fitting if same_network(local[i], remote[j])] or fitting
    here, there = Counter[int](), Counter[int]()
    chosen = []
    for _ in range(connections):
        i, j = min(pairs, key=lambda pair: (here[pair[0]], there[pair[1]]))
        here[i] += 1
        there[j] += 1
        chosen.append((local[i], j))
    return chosen


def check_locked(side: str, needed: int, limit: int | None) -> None:
    """CannotMeasure where `needed` bytes are more than a side may lock (None: no limit)."""
    if limit is not None and needed > limit:
        raise CannotMeasure(
            f"RDMA needs {units.size(needed)} of locked memory at {side}, the limit is {units.size(limit)}",
            hint="ulimit -l unlimited there; or fewer --connections, a smaller --depth, --transport tcp",
        )


def common_node(ports: Sequence[RdmaPort]) -> int:
    """The NUMA node that all ports share, -1 (any) without one: where slots are."""
    nodes = {port.node for port in ports}
    return node_number(nodes.pop()) if len(nodes) == 1 else -1


def node_number(node: int | None) -> int:
    """A NUMA node as the native part takes it: -1 for any."""
    return -1 if node is None else node


def cpus_near(node: int | None) -> tuple[int, ...]:
    """The CPUs of a NUMA node that this process may use; empty where there are none, or the node is unknown."""
    return () if node is None else tuple(sorted(cpus_of(node, SYS) & os.sched_getaffinity(0)))


def _kinds(ports: Sequence[RdmaPort]) -> str:
    return ", ".join(dict.fromkeys(f"{port.device}: {port.kind}" for port in ports)) or "none"
