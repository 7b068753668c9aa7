"""The control protocol: one JSON object a line over TCP, each request answered by one line, everything with a limit.

The side that asks opens with {"lanewise": 1}; the listener answers alike. A line that holds "error" says what stopped
the other side. Connections that carry data open with {"data": TOKEN, "index": N} and then hold no more lines.
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
LEFT = "look whether it still runs and what it says, then start again"


class Gone(CannotMeasure):
    """The other side closed the connection or was lost."""


class Foreign(CannotMeasure):
    """What the other side says is not this protocol."""


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


class Lines:
    """One connection's lines, in both directions; every wait has an end. It never reads past a line's end."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self.connection = connection
        self.name = name

    def send(self, line: dict[str, Any]) -> None:
        """One line; Gone if nobody takes it."""
        self.connection.settimeout(ANSWER_S)
        try:
            self.connection.sendall(json.dumps(line, allow_nan=False).encode() + b"\n")
        except OSError as error:
            raise self._gone(error) from None

    def receive(self, patience: float = ANSWER_S) -> dict[str, Any]:
        """The next line within `patience` s; Gone, or Foreign for what is no JSON object."""
        raw = self._raw(time.monotonic() + patience, patience)
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict):
            raise Foreign(
                f"{self.name} is no lanewise: it said {raw[:40].decode('ascii', 'replace')!r}",
                hint="start `lanewise measure network --listen` there, or name its port",
            )
        return line

    def ask(self, line: dict[str, Any], patience: float = ANSWER_S) -> dict[str, Any]:
        """A request and its answer; CannotMeasure with the other side's words if it refuses."""
        self.send(line)
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
        """Nothing more is said."""
        self.connection.close()

    def _raw(self, end: float, patience: float) -> bytes:
        raw = bytearray()
        while not raw.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or len(raw) > LONGEST:
                break
            self.connection.settimeout(left)
            try:
                seen = self.connection.recv(4096, socket.MSG_PEEK)
                piece = self.connection.recv(seen.find(b"\n") + 1 or len(seen)) if seen else b""
            except TimeoutError:
                break
            except OSError as error:
                raise self._gone(error) from None
            if not piece:
                if raw:
                    return bytes(raw)
                raise self._gone(None)
            raw += piece
        if raw.endswith(b"\n") or len(raw) > LONGEST:
            return bytes(raw)
        raise CannotMeasure(
            f"no answer from {self.name} in {patience:g} s",
            hint="it may be serving another client, be lost, or be no lanewise",
        )

    def _gone(self, error: OSError | None) -> Gone:
        why = f" ({error.strerror})" if error is not None and error.strerror else ""
        return Gone(f"{self.name} has left{why}", hint=LEFT)


def hello() -> dict[str, Any]:
    """What either side opens with."""
    return {"lanewise": PROTOCOL}


def check_hello(line: dict[str, Any], name: str) -> None:
    """CannotMeasure where the other side speaks another protocol or another version of it."""
    if "lanewise" not in line:
        raise Foreign(f"{name} is no lanewise", hint="start `lanewise measure network --listen` there")
    if line["lanewise"] != PROTOCOL:
        raise CannotMeasure(
            f"{name} speaks version {str(line['lanewise'])[:20]} of the protocol, this side {PROTOCOL}",
            hint="install the same version of Lanewise on both sides",
        )


__all__ = ["Foreign", "Gone", "Lines", "check_hello", "hello", "parse_address"]
