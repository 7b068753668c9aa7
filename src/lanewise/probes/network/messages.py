"""The control protocol: one JSON object a line over TCP, each request answered by one line, everything with a limit.

The client opens with {"lanewise": 1}; the listener answers alike. A line with "error" says what stopped the other side.
Connections that carry data open with {"data": TOKEN, "index": N} and then carry no more lines.
"""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass
from typing import Any

from lanewise.errors import CannotMeasure, InputError
from lanewise.options.measure_network import DIRECTIONS, OPERATIONS, READ, TRANSPORTS, VERBS, WRITE

PROTOCOL = 1
HELLO = {"lanewise": PROTOCOL}  # the first message of either side
PORT = 7531
LOOPBACK = "127.0.0.1"
MOST_BYTES, MOST_CONNECTIONS, MOST_MEMORY = 1 << 28, 256, 1 << 32
LONGEST = 1 << 16
ANSWER_S = 10.0
PEER_LOST_HINT = "look whether it still runs and what it says, then start again"


class PeerLost(CannotMeasure):
    """The other side closed the connection or was lost."""


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
        """The next message within `patience` s; PeerLost, or CannotMeasure for what is no JSON object."""
        raw = self._line(time.monotonic() + patience, patience)
        try:
            message = json.loads(raw)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise CannotMeasure(
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


def check_hello(message: dict[str, Any], name: str) -> None:
    """CannotMeasure where the other side speaks another protocol or another version of it."""
    if "lanewise" not in message:
        raise CannotMeasure(f"{name} is no lanewise", hint="start `lanewise measure network --listen` there")
    if message["lanewise"] != PROTOCOL:
        raise CannotMeasure(
            f"{name} speaks version {str(message['lanewise'])[:20]} of the protocol, this side {PROTOCOL}",
            hint="install the same version of Lanewise on both sides",
        )


@dataclass(frozen=True, slots=True)
class NetworkMeasurement:
    """One size with one number of connections; its fields travel in the request that opens it on the other side.

    InputError names the field without meaning, whoever sent it.
    """

    transport: str
    kind: str
    bytes: int
    connections: int
    direction: str = "to"
    operation: str = WRITE
    depth: int = 64
    inline_bytes: int = 0
    events: bool = False
    zero_copy: bool = False

    def __post_init__(self) -> None:
        _check_word("transport", self.transport, TRANSPORTS)
        _check_word("kind", self.kind, ("bandwidth", "latency"))
        _check_word("direction", self.direction, tuple(DIRECTIONS))
        _check_word("operation", self.operation, OPERATIONS)
        _check_range("message of B", self.bytes, 1, MOST_BYTES)
        _check_range("number of connections", self.connections, 1, MOST_CONNECTIONS)
        _check_range("depth", self.depth, 1, 4096)
        _check_range("number of inline bytes", self.inline_bytes, 0, 4096)
        _check_range("B in all buffers", self.bytes * self.connections, 1, MOST_MEMORY)
        if self.kind == "latency" and self.operation == READ and self.transport == VERBS:
            raise InputError("round trips go by write or send, not by read", hint="--operation write, or send")
        if self.kind == "latency" and self.events and self.operation == WRITE and self.transport == VERBS:
            raise InputError("an RDMA write raises no event at its target", hint="--events with --operation send")

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions as seen from the client; round trips have one."""
        return ("to",) if self.kind == "latency" else DIRECTIONS[self.direction]

    @property
    def counted_at_sender(self) -> bool:
        """Whether bytes are counted where they are sent: the target of an RDMA write does not notice them."""
        return self.transport == VERBS and self.operation == WRITE


def _check_word(name: str, value: object, words: tuple[str, ...]) -> None:
    if value not in words:
        raise InputError(f"'{str(value)[:40]}' is no {name} of a network", hint=f"known: {', '.join(words)}")


def _check_range(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InputError(f"a {name} cannot be {str(value)[:40]}", hint=f"choose {low} to {high}")
