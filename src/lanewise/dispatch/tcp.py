"""Queries over TCP: data connections that join a session by token, and then belong to the native part."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lanewise.control.client import ControlConnection
from lanewise.control.rdma import RdmaAddress
from lanewise.control.session import ClientSession
from lanewise.dispatch.messages import ConnectionShape, OpenReply
from lanewise.dispatch.transport import JOIN_S, FrontendTransport, NodeTransport, native_failures

if TYPE_CHECKING:
    from lanewise._native import NetworkSystem, NodeSession, SharedMemory


class TcpAtNode(NodeTransport):
    """Waits for the session's data connections."""

    def __init__(self, session: ClientSession, connections: int, slots: SharedMemory) -> None:
        self._session, self._slots = session, slots
        self.nonce = session.expect_data(connections)

    def join(self, session: NodeSession, shape: ConnectionShape, peers: Sequence[RdmaAddress]) -> None:
        """See NodeTransport."""
        for index, connection in enumerate(self._session.data()):
            with native_failures():
                session.add_tcp(shape, connection.detach(), self._slots, index * shape.slots)


class TcpAtFrontend(FrontendTransport):
    """Opens data connections to the port of the control connection."""

    name = "tcp"

    def __init__(self, control: ControlConnection, connections: int) -> None:
        self._control, self._count = control, connections
        self._connections: list[socket.socket] = []

    def offer(self, reply: OpenReply, shape: ConnectionShape) -> list[RdmaAddress]:
        """See FrontendTransport."""
        self._connections = self._control.open_data(reply.nonce, self._count, JOIN_S)
        return []

    def join(self, system: NetworkSystem, node: int, shape: ConnectionShape) -> None:
        """See FrontendTransport."""
        for connection in self._connections:
            self.within_host = _is_loopback(connection)  # where the kernel copies whatever it was told
            with native_failures():
                system.add_tcp(node, shape, connection.detach(), zero_copy=not self.within_host)
        self._connections = []

    def close(self) -> None:
        """See FrontendTransport."""
        for connection in self._connections:
            connection.close()
        self._connections = []


def _is_loopback(connection: socket.socket) -> bool:
    address = str(connection.getpeername()[0]).partition("%")[0]
    return ipaddress.ip_address(address.removeprefix("::ffff:")).is_loopback
