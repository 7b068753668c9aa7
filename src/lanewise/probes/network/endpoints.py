"""The endpoints of one direction's data on this side: the native object, its sockets, its place on the machine."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lanewise import _native, units
from lanewise.control import rdma
from lanewise.control.interfaces import interface_of
from lanewise.control.sysfs import node_in
from lanewise.errors import CannotMeasure
from lanewise.options.measure_network import READ, SEND, VERBS, NetworkSideOptions
from lanewise.probes import machine
from lanewise.probes.machine import native_errors, numa_nodes
from lanewise.probes.network import numa
from lanewise.probes.network.messages import BLOCKS, ByteCounters, NetworkMeasurement
from lanewise.probes.network.nixl import NixlBlocks

BlockEndpoint = _native.TcpBlocks | _native.VerbsBlocks | NixlBlocks
NativeEndpoint = _native.TcpStream | _native.TcpPing | _native.VerbsEnd | BlockEndpoint
_WORK = _native.VerbsWork


class Endpoint:
    """One direction as this side sees it: whether it `sends`, where it runs, what it has moved."""

    def __init__(
        self, native: NativeEndpoint, measurement: NetworkMeasurement, sends: bool, placement: numa.NumaPlacement,
        sockets: Sequence[socket.socket] = (),
    ) -> None:  # fmt: skip
        self.native = native
        self.sends = sends
        self._measurement = measurement
        self._placement = placement
        self._sockets = sockets

    @property
    def drives(self) -> bool:
        """Whether it moves the data: the source, but a read's destination; it is stopped before the other one."""
        pulls = self._measurement.transport == VERBS and self._measurement.operation == READ
        return self.sends != pulls

    def describe(self) -> dict[str, str]:
        """Where its buffers' pages are and which card carries the route, in words."""
        placement = self._placement
        card_node = "none" if placement.card_node is None else str(placement.card_node)
        return {
            "NUMA node": numa_nodes(self.native.nodes()),
            "card": f"{placement.card or 'unknown'}, NUMA node {card_node}",
            "threads": f"NUMA node {placement.node}" if placement.cpus else "not bound",
        }

    def counters(self) -> ByteCounters:
        """The bytes that each connection has moved, and when, by this machine's clock; none for round trips."""
        if isinstance(self.native, _native.TcpPing | BlockEndpoint):
            return ByteCounters(seconds=0.0, bytes=[])
        counters = self.native.counters()
        return ByteCounters(seconds=counters.seconds, bytes=counters.bytes)

    def connect(self, address: Mapping[str, object]) -> None:
        """Connect the queue pairs to those at the other side's `address`; InputError if it is none."""
        rdma.connect_pairs(self.queue_pairs, dict(address))

    def close(self) -> None:
        """Threads end, sockets close."""
        self.native.stop()
        del self.native
        for connection in self._sockets:
            connection.close()

    @property
    def queue_pairs(self) -> _native.VerbsEnd | _native.VerbsBlocks:
        """The native object of verbs: its `address` for the other side."""
        assert isinstance(self.native, _native.VerbsEnd | _native.VerbsBlocks)
        return self.native

    @property
    def agent(self) -> NixlBlocks:
        """The agent of blocks over NIXL."""
        assert isinstance(self.native, NixlBlocks)
        return self.native

    @property
    def blocks(self) -> BlockEndpoint:
        """The native object of blocks: its `transfer` moves all of them, from the side that sends."""
        assert isinstance(self.native, BlockEndpoint)
        return self.native

    def begin(self) -> None:
        """Send the pattern, once both sides are connected: over queue pairs, and all blocks once."""
        if isinstance(self.native, _native.VerbsEnd):
            self.native.begin()
        elif isinstance(self.native, BlockEndpoint) and self.sends:
            with native_errors():
                self.native.transfer()


def check_memory(measurement: NetworkMeasurement) -> None:
    """CannotMeasure if the buffers of this side would take more than half of the memory that is free here."""
    free = machine.available()
    if free is not None and measurement.memory > free // 2:
        raise CannotMeasure(
            f"{units.size(measurement.memory)} of buffers, but only {units.size(free)} of memory is free",
            hint="at most half of it is used: send smaller messages, or over fewer connections",
        )


def stop_endpoints(endpoints: Iterable[Endpoint], everyone: bool) -> None:
    """Stop those that drive, or everyone."""
    for endpoint in endpoints:
        if everyone or endpoint.drives:
            endpoint.native.stop()


def tcp_endpoint(
    measurement: NetworkMeasurement,
    sockets: Sequence[socket.socket],
    direction: int,
    sends: bool,
    side: NetworkSideOptions,
) -> Endpoint:
    """An endpoint over connected sockets; its threads begin with the pattern at once."""
    card = interface_of(sockets[0].getsockname()[0])  # that carries the route; loopback has none
    placement = numa.placement_near(card, numa.node_of_interface(card), side)
    setup = _setup(measurement, placement, direction)
    for connection in sockets:
        connection.settimeout(None)
    numbers = [connection.fileno() for connection in sockets]
    native: NativeEndpoint
    with native_errors():
        if measurement.kind == BLOCKS:
            native = _native.TcpBlocks(numbers[0], sends, setup, measurement.blocks, measurement.list_length)
        elif measurement.kind == "latency":
            native = _native.TcpPing(numbers[0], sends, setup)
        else:
            native = _native.TcpStream(numbers, sends, setup, measurement.zero_copy)
    return Endpoint(native, measurement, sends, placement, sockets)


def verbs_endpoint(measurement: NetworkMeasurement, direction: int, sends: bool, side: NetworkSideOptions) -> Endpoint:
    """An endpoint over queue pairs, not connected yet; `sends` says whether the data comes from here."""
    device = rdma.rdma_device(side.device)
    placement = numa.placement_near(device, node_in(rdma.RDMA / device), side)
    setup = _native.VerbsSetup(_setup(measurement, placement, direction))
    setup.device = device
    setup.gid_index = side.gid_index if side.gid_index is not None else rdma.gid_of(device)
    setup.is_source = sends
    setup.pairs, setup.depth = measurement.connections, measurement.depth
    setup.inline_bytes, setup.events = measurement.inline_bytes, measurement.events
    setup.work = _work(measurement, sends)
    with native_errors():
        if measurement.kind == BLOCKS:
            blocks = _native.VerbsBlocks(setup, measurement.blocks, measurement.list_length)
            return Endpoint(blocks, measurement, sends, placement)
        return Endpoint(_native.VerbsEnd(setup), measurement, sends, placement)


def nixl_endpoint(measurement: NetworkMeasurement, sends: bool, side: NetworkSideOptions) -> Endpoint:
    """An endpoint with an agent of NIXL, not connected yet."""
    name = f"lanewise-{'source' if sends else 'destination'}-{os.getpid()}-{secrets.token_hex(4)}"
    placement = numa.placement_near("", None, side)
    blocks = NixlBlocks(name, sends, measurement.bytes, measurement.blocks)
    return Endpoint(blocks, measurement, sends, placement)


def _work(measurement: NetworkMeasurement, sends: bool) -> Any:
    """What this side's thread does: a write and a send go out from the source, a read is posted by the destination."""
    if measurement.kind == "latency":
        if measurement.operation == SEND:
            return _WORK.ASK_SEND if sends else _WORK.ANSWER_SEND
        return _WORK.ASK_WRITE if sends else _WORK.ANSWER_WRITE
    if measurement.operation == SEND:
        return _WORK.SEND if sends else _WORK.RECEIVE
    if measurement.operation == READ:
        return _WORK.NOTHING if sends else _WORK.READ
    return _WORK.WRITE if sends else _WORK.NOTHING


def _setup(measurement: NetworkMeasurement, placement: numa.NumaPlacement, direction: int) -> _native.EndSetup:
    node = -1 if placement.node is None else placement.node
    return _native.EndSetup(measurement.bytes, node, placement.cpus, 1000 * (direction + 1))
