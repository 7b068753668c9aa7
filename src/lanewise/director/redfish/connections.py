"""HTTP connections that cost a hostile client more than the service: too many, headers or readers that are too slow."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from lanewise.director.redfish.etags import json_text
from lanewise.director.redfish.messages import refusal

HANDSHAKE_SECONDS = 10.0


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 with deadlines for the headers of a request, and for an answer that is not read."""

    most = 512
    header_seconds = 10.0
    read_seconds = 30.0
    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
            return
        self._deadline = self.loop.call_later(self.header_seconds, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._read()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._unread or self.loop.call_later(self.read_seconds, self._late)

    def resume_writing(self) -> None:
        self._read()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        before = self.scope
        super().data_received(data)
        if self.scope is not before:
            self._stop()  # headers of a request are complete
        elif self._deadline is None and self.cycle is not None and self.cycle.response_complete:
            self._deadline = self.loop.call_later(self.header_seconds, self._late)

    def send_400_response(self, msg: str) -> None:
        body = json_text(refusal(400, "Base.HeaderInvalid", "the request", text="This is no HTTP.").as_json())
        if self.transport.is_closing():
            return
        head = (
            "HTTP/1.1 400 Bad Request\r\nOData-Version: 4.0\r\nContent-Type: application/json;charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _late(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            # Without this the kernel would keep what is unsent, and go on trying.
            connection = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None


def bounded_protocol(most: int, header_seconds: float, read_seconds: float) -> type[H11Protocol]:
    """A protocol class that refuses connections beyond `most`, and closes those that are too slow.

    Headers have `header_seconds`; a client that reads none of a long answer has `read_seconds`.
    """
    limits = {"most": most, "header_seconds": header_seconds, "read_seconds": read_seconds}
    return type("BoundedProtocol", (BoundedProtocol,), limits)


class ServiceLoop(asyncio.SelectorEventLoop):
    """An event loop whose TLS servers give a client seconds, not a minute, for its handshake."""

    async def create_server(self, *arguments: Any, **options: Any) -> asyncio.Server:
        """As the event loop's own."""
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", HANDSHAKE_SECONDS)
            options.setdefault("ssl_shutdown_timeout", 2.0)
        return await super().create_server(*arguments, **options)
