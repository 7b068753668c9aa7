"""Queries within one host: memory without a name, passed as descriptors over an abstract Unix socket.

Nothing of it has a place in a file system, so nothing stays when a process is killed.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from lanewise.control.handshake import Handshake, new_nonce, same
from lanewise.control.rdma import RdmaAddress
from lanewise.dispatch.messages import ConnectionShape, OpenReply
from lanewise.dispatch.transport import JOIN_S, FrontendTransport, NodeTransport, native_failures
from lanewise.errors import CannotMeasure

if TYPE_CHECKING:
    from lanewise._native import NetworkSystem, NodeSession, SharedMemory

_TOKEN_BYTES = 64


class DescriptorSocket:
    """An abstract Unix socket (its name has no file) over which a node passes descriptors to one process of its user.

    `name` is new each time; '' where there are no such sockets.
    """

    def __init__(self) -> None:
        self._listener: socket.socket | None = None
        self.name = ""
        with suppress(OSError):
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            name = f"lanewise-{secrets.token_hex(8)}"
            self._listener.bind(f"\0{name}")
            self._listener.listen(16)
            self.name = name

    def accept(self, token: str, clock: Callable[[], float] = time.monotonic) -> socket.socket:
        """The connection of the process that knows the token; CannotMeasure where it does not come."""
        end = clock() + JOIN_S
        while self._listener is not None and (remaining := end - clock()) > 0:
            self._listener.settimeout(remaining)
            try:
                connection, _ = self._listener.accept()
            except OSError:
                break
            connection.settimeout(max(0.001, end - clock()))
            if _same_user(connection) and same(_received(connection), token):
                return connection
            connection.close()
        raise CannotMeasure("the Frontend did not come for the shared memory", hint="try --transport tcp")

    def close(self) -> None:
        """Close it; its name is gone."""
        if self._listener is not None:
            self._listener.close()


def reach(name: str) -> socket.socket | None:
    """A connection to a node's socket of that name; None on another host, in another network namespace, or of another
    user."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(JOIN_S)
        connection.connect(f"\0{name}")
        if name and _same_user(connection):
            return connection
    except (OSError, ValueError):
        pass
    connection.close()
    return None


class ShmAtNode(NodeTransport):
    """Makes the memory of each connection and passes it, with the slots, to the Frontend."""

    def __init__(
        self, descriptors: DescriptorSocket, handshake: Handshake, connections: int, slots: SharedMemory
    ) -> None:
        self._descriptors, self._connections, self._slots = descriptors, connections, slots
        self.nonce = new_nonce()
        self._token = handshake.data_token(self.nonce, 0)

    def join(self, session: NodeSession, shape: ConnectionShape, peers: Sequence[RdmaAddress]) -> None:
        """See NodeTransport."""
        from lanewise import _native as native

        with self._descriptors.accept(self._token) as connection, native_failures():
            memories = [native.SharedMemory(native.shm_bytes(shape)) for _ in range(self._connections)]
            for index, memory in enumerate(memories):
                session.add_shm(shape, memory, self._slots, index * shape.slots)
            socket.send_fds(connection, [b"m"], [self._slots.fd, *(memory.fd for memory in memories)])


class ShmAtFrontend(FrontendTransport):
    """Takes the node's memory over a connection to its socket."""

    name = "shm"
    within_host = True

    def __init__(self, connection: socket.socket, handshake: Handshake, connections: int) -> None:
        self._connection, self._handshake = connection, handshake
        self._count = connections

    def offer(self, reply: OpenReply, shape: ConnectionShape) -> list[RdmaAddress]:
        """See FrontendTransport."""
        with native_failures():
            self._connection.sendall(self._handshake.data_token(reply.nonce, 0).encode())
        return []

    def join(self, system: NetworkSystem, node: int, shape: ConnectionShape) -> None:
        """See FrontendTransport."""
        from lanewise import _native as native

        with native_failures():
            _, descriptors, _, _ = socket.recv_fds(self._connection, 1, self._count + 1)
        try:
            if len(descriptors) != self._count + 1:
                raise CannotMeasure("the node passed no shared memory", hint="try --transport tcp")
            with native_failures():
                slots = native.SharedMemory.map(descriptors[0], self._count * shape.slots * shape.stride)
                for index, descriptor in enumerate(descriptors[1:]):
                    memory = native.SharedMemory.map(descriptor, native.shm_bytes(shape))
                    system.add_shm(node, shape, memory, slots, index * shape.slots)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
            self.close()

    def close(self) -> None:
        """See FrontendTransport."""
        self._connection.close()


def _same_user(connection: socket.socket) -> bool:
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return bool(user == os.geteuid())


def _received(connection: socket.socket) -> str:
    """The token that a process sends, as much of it as comes."""
    token = b""
    with suppress(OSError):
        while len(token) < _TOKEN_BYTES and (piece := connection.recv(_TOKEN_BYTES - len(token))):
            token += piece
    return token.decode("ascii", "replace")
