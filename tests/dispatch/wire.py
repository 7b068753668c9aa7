"""A wire to a node that changes a byte of one sample on its way, as a broken NIC or switch does."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator

_MESSAGE = struct.Struct("<IIIIq")  # slot, tag, bytes, kind, time: lanewise::dispatch::Message
_QUERY = 0


class FlippingWire:
    """Passes every connection on to a port, and flips one bit of the first sample that a data connection carries."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.flipped = False
        self._change = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """No more connections; those that are there end with their sides."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                node = socket.create_connection(("127.0.0.1", self._port))
                for source, sink, change in ((client, node, self._flip), (node, client, _copy)):
                    threading.Thread(target=_pump, args=(source, sink, change), daemon=True).start()

    def _flip(self, source: socket.socket, sink: socket.socket) -> None:
        """A data connection begins with a line of its own; then there are messages, each with its data."""
        reader = source.makefile("rb")
        line = reader.readline()
        sink.sendall(line)
        while line.startswith(b'{"data"') and (head := reader.read(_MESSAGE.size)):
            _, _, size, kind, _ = _MESSAGE.unpack(head)
            data = bytearray(reader.read(size))
            with self._change:
                if kind == _QUERY and size and not self.flipped:
                    data[size // 2] ^= 1
                    self.flipped = True
            sink.sendall(head + data)
        while line and (line := reader.readline()):
            sink.sendall(line)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    while piece := source.recv(1 << 16):
        sink.sendall(piece)


def _pump(source: socket.socket, sink: socket.socket, change: Callable[[socket.socket, socket.socket], None]) -> None:
    with contextlib.suppress(OSError, struct.error):
        change(source, sink)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def flipping_wire(port: int) -> Iterator[FlippingWire]:
    """A wire that ends with the block."""
    wire = FlippingWire(port)
    try:
        yield wire
    finally:
        wire.close()
