"""Commands and events as lines of JSON over a Unix socket: QEMU's machine protocol (QMP), and the guest's agent.

Both sides speak `{"execute": ..., "arguments": ..., "id": ...}`, `{"return": ..., "id": ...}`,
`{"error": {"class": ..., "desc": ...}, "id": ...}` and `{"event": ..., "data": ...}`.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lanewise.director.drivers.base import DriverError, Gone, Unknown

Message = dict[str, Any]
_MOST = 16 * 2**20  # of one line, B
_EVENTS_KEPT = 1024


class CommandFailed(DriverError):
    """The other side refused a command; `kind` is the class of its error."""

    def __init__(self, peer: str, command: str, kind: str, description: str) -> None:
        super().__init__(f"{peer}: {command}: {description}")
        self.kind = kind
        self.description = description


class CommandChannel:
    """One connection; its methods may be called from several threads."""

    def __init__(self, path: Path, peer: str) -> None:
        """Connect; Gone if nobody listens at `path`. `peer` names the other side in errors."""
        self.peer = peer
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise Gone(f"{peer} does not answer: {error.strerror or error}") from None
        self._changed = threading.Condition()
        self._send_lock = threading.Lock()
        self._replies: dict[str, Message] = {}
        self._waiting: set[str] = set()
        self._events: list[Message] = []
        self._ended = False
        threading.Thread(target=self._receive, name=f"{peer} replies", daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether the connection is lost."""
        return self._ended

    def execute(self, command: str, arguments: Mapping[str, Any] | None = None, timeout: float = 60.0) -> Any:
        """What the other side returns; CommandFailed if it refuses, Unknown if no reply comes in `timeout` s."""
        name = secrets.token_hex(8)  # so that a reply to an earlier client is nobody's
        message = {"execute": command, "id": name} | ({"arguments": dict(arguments)} if arguments else {})
        with self._changed:
            self._waiting.add(name)
        try:
            with self._send_lock:
                self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self._end()
        with self._changed:
            self._changed.wait_for(lambda: name in self._replies or self._ended, timeout)
            self._waiting.discard(name)
            reply = self._replies.pop(name, None)
        if reply is None:
            cause = "the connection was lost" if self._ended else f"no reply within {timeout:g} s"
            raise Unknown(f"{self.peer}: {command}: {cause}", hint="the director observes the fabric before it goes on")
        if "error" in reply:
            error = reply["error"]
            raise CommandFailed(self.peer, command, str(error.get("class", "")), str(error.get("desc", "refused")))
        return reply.get("return")

    def wait_for_event(self, wanted: Callable[[Message], bool], timeout: float) -> Message | None:
        """The first event received that is `wanted`, taken off the list; None if none comes in `timeout` s."""

        def first() -> Message | None:
            return next((event for event in self._events if wanted(event)), None)

        with self._changed:
            self._changed.wait_for(lambda: first() is not None or self._ended, timeout)
            event = first()
            if event is not None:
                self._events.remove(event)
            return event

    def take_events(self) -> list[Message]:
        """The events nobody has waited for, oldest first."""
        with self._changed:
            events, self._events = self._events, []
            return events

    def close(self) -> None:
        """End the connection."""
        self._end()
        self._socket.close()

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _receive(self) -> None:
        with contextlib.suppress(OSError), self._socket.makefile("rb") as lines:
            while (line := lines.readline(_MOST)).endswith(b"\n"):
                with contextlib.suppress(ValueError):  # the rest of a line that was cut off is nobody's
                    self._sort(json.loads(line))
        self._end()

    def _sort(self, message: Any) -> None:
        if not isinstance(message, dict):
            return
        with self._changed:
            if "event" in message:
                self._events = [*self._events[1 - _EVENTS_KEPT :], message]
            elif message.get("id") in self._waiting:
                self._replies[message["id"]] = message
            self._changed.notify_all()
