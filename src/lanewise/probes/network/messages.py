"""The control protocol: one JSON object a line over TCP, each request answered by one line, everything with a limit.

The client opens with {"lanewise": 1}; the listener answers alike. A line with "error" says what stopped the other side.
Connections that carry data open with {"data": TOKEN, "index": N} and then carry no more lines.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any

from lanewise.errors import CannotMeasure, InputError

PROTOCOL = 1
PORT = 7531
LOOPBACK = "127.0.0.1"
LONGEST = 1 << 16
ANSWER_S = 10.0
PEER_LOST_HINT = "look whether it still runs and what it says, then start again"


class PeerLost(CannotMeasure):
    """The other side closed the connection or was lost."""


class OtherProtocol(CannotMeasure):
    """The other side does not speak this protocol."""


def parse_address(text: str, port: int = PORT) -> tuple[str, int]:
    """'HOST', 'HOST:PORT', ':PORT', '[V6]:PORT' or a bare IPv6 address; InputError for anything else."""
    hint = "write HOST, HOST:PORT or [ADDRESS]:PORT"
    host, tail = text.strip(), ""
    if host.startswith("["):
        host, closing, tail = host[1:].partition("]")
        if not closing or (tail and not tail.startswith(":")):
            raise InputError(f"'{text}' is no address", hint=hint)
        tail = tail[1:]
    elif host.count(":") == 1:
        host, _, tail = host.partition(":")
    if tail:
        if not tail.isascii() or not tail.isdigit() or int(tail) > 65535:
            raise InputError(f"'{tail}' is no port", hint=f"choose 1 to 65535, or leave it out for {port}")
        port = int(tail)
    if any(c.isspace() or c in "/\\@" for c in host):
        raise InputError(f"'{text}' is no address", hint=hint)
    return host or LOOPBACK, port


class MessageStream:
    """The messages of one connection, a line each; every wait has an end. It never reads past a line's end."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self.connection = connection
        self.name = name

    def send(self, message: dict[str, Any]) -> None:
        """Send one message; PeerLost if nobody takes it."""
        self.connection.settimeout(ANSWER_S)
        try:
            self.connection.sendall(json.dumps(message, allow_nan=False).encode() + b"\n")
        except OSError as error:
            raise self._lost(error) from None

    def receive(self, patience: float = ANSWER_S) -> dict[str, Any]:
        """The next message within `patience` s; PeerLost, or OtherProtocol for what is no JSON object."""
        raw = self._line(time.monotonic() + patience, patience)
        try:
            message = json.loads(raw)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise OtherProtocol(
                f"{self.name} is no lanewise: it said {raw[:40].decode('ascii', 'replace')!r}",
                hint="start `lanewise measure network --listen` there, or name its port",
            )
        return message

    def request(self, message: dict[str, Any], patience: float = ANSWER_S) -> dict[str, Any]:
        """A request and its answer; CannotMeasure with the other side's words if it refuses."""
        self.send(message)
        answer = self.receive(patience)
        if "error" in answer:
            hint = str(answer.get("hint", ""))[:300]
            raise CannotMeasure(f"{self.name} says: {str(answer['error'])[:300]}", hint=hint)
        return answer

    def closed(self) -> bool:
        """Whether the other side has ended the connection, without waiting."""
        self.connection.settimeout(0)
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def _line(self, end: float, patience: float) -> bytes:
        raw = bytearray()
        while not raw.endswith(b"\n"):
            remaining = end - time.monotonic()
            if remaining <= 0 or len(raw) > LONGEST:
                break
            self.connection.settimeout(remaining)
            try:
                ahead = self.connection.recv(4096, socket.MSG_PEEK)
                piece = self.connection.recv(ahead.find(b"\n") + 1 or len(ahead)) if ahead else b""
            except TimeoutError:
                break
            except OSError as error:
                raise self._lost(error) from None
            if not piece:
                if raw:
                    return bytes(raw)
                raise self._lost(None)
            raw += piece
        if raw.endswith(b"\n") or len(raw) > LONGEST:
            return bytes(raw)
        raise CannotMeasure(
            f"no answer from {self.name} in {patience:g} s",
            hint="it may be serving another client, be lost, or be no lanewise",
        )

    def _lost(self, error: OSError | None) -> PeerLost:
        reason = f" ({error.strerror})" if error is not None and error.strerror else ""
        return PeerLost(f"{self.name} has left{reason}", hint=PEER_LOST_HINT)


def hello() -> dict[str, Any]:
    """The first message of either side."""
    return {"lanewise": PROTOCOL}


def check_hello(message: dict[str, Any], name: str) -> None:
    """CannotMeasure where the other side speaks another protocol or another version of it."""
    if "lanewise" not in message:
        raise OtherProtocol(f"{name} is no lanewise", hint="start `lanewise measure network --listen` there")
    if message["lanewise"] != PROTOCOL:
        raise CannotMeasure(
            f"{name} speaks version {str(message['lanewise'])[:20]} of the protocol, this side {PROTOCOL}",
            hint="install the same version of Lanewise on both sides",
        )
