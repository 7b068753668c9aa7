"""The control protocol: one JSON object a line over TCP, each request answered by one line, everything with a limit.

A session begins with the greeting of lanewise.probes.network.handshake. A line with "error" says what stopped the other
side. Connections that carry data open with {"data": TOKEN, "index": N} and then carry no more lines. Every line is
checked by shape and range before anything in it is used, on both sides.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lanewise.errors import CannotMeasure, InputError
from lanewise.options.measure_network import DIRECTIONS, OPERATIONS, READ, TRANSPORTS, VERBS, WRITE

PROTOCOL: Final = 2
PORT = 7531
LOOPBACK = "127.0.0.1"
MOST_BYTES, MOST_CONNECTIONS, MOST_MEMORY = 1 << 28, 256, 1 << 32
LONGEST, LONGEST_GREETING = 1 << 16, 512  # bytes of a line, and of one from a side that has proven nothing yet
ANSWER_S = 10.0
PEER_LOST_HINT = "look whether it still runs and what it says, then start again"
SAME_VERSION = "use the same version of Lanewise on both sides"
LISTEN_HINT = "start `lanewise measure network --listen` there, or name its port"
_LONGEST_TEXT = 300


class PeerLost(CannotMeasure):
    """The other side closed the connection or was lost."""


class PeerReset(PeerLost):
    """The connection was cut off, as by a listener under a flood."""


class PeerCrowded(CannotMeasure):
    """The listener had too many connections to greet this one; another attempt may succeed."""


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


@dataclass(frozen=True, slots=True)
class NetworkMeasurement:
    """One size with one number of connections; its fields travel in the request that opens it on the other side.

    InputError names the field without meaning, whoever sent it.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

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
        _check_range("B in all buffers", self.memory, 1, MOST_MEMORY)
        if self.kind == "latency" and self.operation == READ and self.transport == VERBS:
            raise InputError("round trips go by write or send, not by read", hint="--operation write, or send")
        if self.kind == "latency" and self.events and self.operation == WRITE and self.transport == VERBS:
            raise InputError("an RDMA write raises no event at its target", hint="--events with --operation send")

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions as seen from the client; round trips have one."""
        return ("to",) if self.kind == "latency" else DIRECTIONS[self.direction]

    @property
    def memory(self) -> int:
        """The bytes of all buffers of one side."""
        return self.bytes * self.connections * len(self.directions)

    @property
    def counted_at_sender(self) -> bool:
        """Whether bytes are counted where they are sent: the target of an RDMA write does not notice them."""
        return self.transport == VERBS and self.operation == WRITE


def _check_word(name: str, value: object, words: tuple[str, ...]) -> None:
    if value not in words:
        raise InputError(f"'{str(value)[:40]}' is no {name} of a network", hint=f"known: {', '.join(words)}")


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InputError(f"a {name} cannot be {str(value)[:40]}", hint=f"choose {low} to {high}")


def _plain(text: str) -> str:
    """The other side's words without what a terminal would obey, and not too many."""
    return "".join(char if char.isprintable() else "?" for char in text[:_LONGEST_TEXT])


Words = Annotated[str, AfterValidator(_plain)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Count = Annotated[int, Field(ge=0, lt=1 << 63)]
_Number = Annotated[int, Field(ge=0, lt=1 << 64)]
_QueuePairs = Annotated[list[_Number], Field(max_length=MOST_CONNECTIONS)]
# Of queue pairs: the native side checks each field's range and that none is missing.
_RdmaAddress = Annotated[dict[str, _Number | Annotated[str, Field(max_length=64)] | _QueuePairs], Field(max_length=16)]


class Message(BaseModel):
    """One line of the protocol. Nothing is converted, and no field is added."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Hello(Message):
    """The first line of either side."""

    lanewise: Literal[2] = PROTOCOL
    nonce: Digest


class Proof(Message):
    """That a side knows the secret."""

    proof: Digest


class DataHello(Message):
    """The only line of a data connection: that it belongs to the session, and which one it is."""

    data: Digest
    index: Annotated[int, Field(ge=0, lt=2 * MOST_CONNECTIONS)]


class Refusal(Message):
    """What stopped a side, in its words; `crowded` where another attempt may succeed."""

    error: Words
    hint: Words = ""
    crowded: bool = False


class Request(Message):
    """What the client wants next."""

    do: Literal["open", "begin", "ready", "check", "go", "mark", "stop", "done", "close"]
    cell: NetworkMeasurement | None = None
    ends: Annotated[list[_RdmaAddress], Field(max_length=2)] | None = None
    all: bool = False


class Acknowledgement(Message):
    """Yes, to a request that asks for nothing more."""


class DataEnds(Message):
    """Where the data goes: a nonce for the tokens of TCP connections, or the addresses of queue pairs."""

    nonce: Digest | None = None
    ends: Annotated[list[_RdmaAddress], Field(max_length=2)] = []


class EndpointFacts(Message):
    """Where the buffers of each direction lie, in words."""

    about: Annotated[list[Annotated[dict[Words, Words], Field(max_length=8)]], Field(max_length=2)]


class Readiness(Message):
    """Whether the first data has come, or whether everything has ended."""

    reached: bool


class ByteCounters(Message):
    """Bytes of each connection of a direction at one moment of the counting machine's clock; none for round trips."""

    seconds: Annotated[float, Field(ge=0, lt=1e12, allow_inf_nan=False)]
    bytes: Annotated[list[_Count], Field(max_length=MOST_CONNECTIONS)]


class Marks(Message):
    """The byte counters of each direction."""

    marks: Annotated[list[ByteCounters], Field(max_length=2)]


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


def parse_hello(line: bytes, name: str) -> Hello:
    """The first line of the side `name`; CannotMeasure for another version, or where that is no Lanewise."""
    try:
        return Hello.model_validate_json(line)
    except ValidationError as error:
        fault = _fault(error)
    try:
        version = _AnyVersion.model_validate_json(line).lanewise
    except ValidationError:
        cause = f"{name} is no lanewise: it said {line[:40].decode('ascii', 'replace')!r}"
        raise _refusal(line, name) or CannotMeasure(cause, hint=LISTEN_HINT) from None
    if version == PROTOCOL:
        raise CannotMeasure(f"{name} sends an unreadable greeting: {fault}", hint=SAME_VERSION)
    raise CannotMeasure(
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

    def request(self, request: Request, kind: type[_Kind], patience: float = ANSWER_S) -> _Kind:
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
