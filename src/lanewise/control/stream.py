"""The control protocol: one JSON object a line over TCP, each request answered by one line, everything with a limit.

A session begins with the greeting of lanewise.control.handshake. A line with "error" says what stopped the other side.
Connections that carry data open with {"data": TOKEN, "index": N} and then carry no more lines of this protocol. Every
line is checked by shape and range before anything in it is used, on both sides. What a session asks and answers is a
Message of its service.
"""

from __future__ import annotations

import socket
import time
from typing import Annotated, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lanewise.control.service import ControlService
from lanewise.errors import CannotMeasure

PROTOCOL: Final = 3
MOST_DATA_CONNECTIONS = 512  # of one session
LONGEST, LONGEST_GREETING = 1 << 16, 512  # bytes of a line, and of one from a side that has proven nothing yet
ANSWER_S = 10.0
PEER_LOST_HINT = "look whether it still runs and what it says, then start again"
SAME_VERSION = "use the same version of Lanewise on both sides"
_LONGEST_TEXT = 300


class PeerLost(CannotMeasure):
    """The other side closed the connection or was lost."""


class PeerReset(PeerLost):
    """The connection was cut off, as by a listener under a flood."""


class PeerCrowded(CannotMeasure):
    """The listener had too many connections to greet this one; another attempt may succeed."""


def _plain(text: str) -> str:
    """The other side's words without what a terminal would obey, and not too many."""
    return "".join(char if char.isprintable() else "?" for char in text[:_LONGEST_TEXT])


Words = Annotated[str, AfterValidator(_plain)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Message(BaseModel):
    """One line of the protocol. Nothing is converted, and no field is added."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Hello(Message):
    """The first line of either side: the number that it uses once, and the service that it wants or offers."""

    lanewise: Literal[3] = PROTOCOL
    nonce: Digest
    service: Annotated[str, Field(pattern="^[a-z ]{1,40}$")]


class Proof(Message):
    """That a side knows the secret."""

    proof: Digest


class DataHello(Message):
    """The only line of a data connection: that it belongs to the session, and which one it is."""

    data: Digest
    index: Annotated[int, Field(ge=0, lt=MOST_DATA_CONNECTIONS)]


class Refusal(Message):
    """What stopped a side, in its words; `crowded` where another attempt may succeed."""

    error: Words
    hint: Words = ""
    crowded: bool = False


class _AnyVersion(BaseModel):
    """The first line of a side whose version is another one."""

    model_config = ConfigDict(extra="ignore")

    lanewise: int | float | str | bool


_Kind = TypeVar("_Kind", bound=Message)


def parse(kind: type[_Kind], line: bytes, name: str) -> _Kind:
    """A line of the side `name` as that kind of message; CannotMeasure with its words where it says what stopped it."""
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        unreadable = CannotMeasure(f"{name} sends an unreadable message: {_fault(error)}", hint=SAME_VERSION)
    raise _refusal(line, name) or unreadable


def parse_hello(line: bytes, name: str, service: ControlService) -> Hello:
    """The first line of the side `name`; CannotMeasure for another version or service, or where that is no Lanewise."""
    try:
        hello = Hello.model_validate_json(line)
    except ValidationError as error:
        raise _no_hello(line, name, service, _fault(error)) from None
    if hello.service != service.name:
        raise CannotMeasure(f"{name} is for {hello.service}, this side for {service.name}", hint=service.listen_hint)
    return hello


def _no_hello(line: bytes, name: str, service: ControlService, fault: str) -> CannotMeasure:
    """What is wrong with a first line that is no greeting of this version."""
    try:
        version = _AnyVersion.model_validate_json(line).lanewise
    except ValidationError:
        cause = f"{name} is no lanewise: it said {line[:40].decode('ascii', 'replace')!r}"
        return _refusal(line, name) or CannotMeasure(cause, hint=service.listen_hint)
    if version == PROTOCOL:
        return CannotMeasure(f"{name} sends an unreadable greeting: {fault}", hint=SAME_VERSION)
    return CannotMeasure(
        f"{name} speaks version {_plain(str(version))[:20]} of the protocol, this side {PROTOCOL}",
        hint="install the same version of Lanewise on both sides",
    )


def _refusal(line: bytes, name: str) -> CannotMeasure | None:
    """The error for a line that says what stopped the other side; None for any other line."""
    try:
        refusal = Refusal.model_validate_json(line)
    except ValidationError:
        return None
    kind = PeerCrowded if refusal.crowded else CannotMeasure
    return kind(f"{name} says: {refusal.error}", hint=refusal.hint)


def _fault(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return _plain(f"{place}: {first['msg']}" if place else first["msg"])[:120]


def line_part(connection: socket.socket, room: int) -> bytes:
    """What has come of a line, up to its end and never past it; b'' at the end of the connection."""
    ahead = connection.recv(room, socket.MSG_PEEK)
    return connection.recv(ahead.find(b"\n") + 1 or len(ahead)) if ahead else b""


class MessageStream:
    """The messages of one connection, a line each; every wait has an end. It never reads past a line's end."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self.connection = connection
        self.name = name

    def send(self, message: Message) -> None:
        """Send one message; PeerLost if nobody takes all of it in time."""
        self.connection.settimeout(ANSWER_S)
        try:
            self.connection.sendall(encode(message))
        except OSError as error:
            raise self._lost(error) from None

    def receive(self, kind: type[_Kind], patience: float = ANSWER_S, longest: int = LONGEST) -> _Kind:
        """The next message within `patience` s; PeerLost, or CannotMeasure for what is none of that kind."""
        return parse(kind, self.line(patience, longest), self.name)

    def request(self, request: Message, kind: type[_Kind], patience: float = ANSWER_S) -> _Kind:
        """A request and its answer; CannotMeasure with the other side's words if it refuses."""
        self.send(request)
        return self.receive(kind, patience)

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

    def line(self, patience: float, longest: int) -> bytes:
        """The next line within `patience` s in all, cut off after `longest` bytes; PeerLost or CannotMeasure."""
        end = time.monotonic() + patience
        raw = bytearray()
        while not raw.endswith(b"\n") and len(raw) < longest:
            remaining = end - time.monotonic()
            if remaining <= 0:
                raise self._silent(patience)
            self.connection.settimeout(remaining)
            try:
                piece = line_part(self.connection, min(4096, longest - len(raw)))
            except TimeoutError:
                raise self._silent(patience) from None
            except OSError as error:
                raise self._lost(error) from None
            if not piece:
                if raw:
                    break
                raise self._lost(None)
            raw += piece
        return bytes(raw)

    def _silent(self, patience: float) -> CannotMeasure:
        return CannotMeasure(
            f"no answer from {self.name} in {patience:g} s",
            hint="it may be serving another client, be lost, or be no lanewise",
        )

    def _lost(self, error: OSError | None) -> PeerLost:
        reason = f" ({error.strerror})" if error is not None and error.strerror else ""
        kind = PeerReset if isinstance(error, ConnectionError) else PeerLost
        return kind(f"{self.name} has left{reason}", hint=PEER_LOST_HINT)


def encode(message: Message) -> bytes:
    """The line of a message."""
    return message.model_dump_json(exclude_none=True).encode() + b"\n"


def send_now(connection: socket.socket, message: Message) -> None:
    """Send a short message over a connection that does not block; OSError where it does not go at once."""
    line = encode(message)
    if connection.send(line) != len(line):
        raise BlockingIOError
