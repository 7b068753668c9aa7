"""The messages of `measure network`: what the client requests, what the listener answers, and their limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from lanewise.control.rdma import RdmaAddress
from lanewise.control.service import ControlService
from lanewise.control.stream import MOST_DATA_CONNECTIONS, SAME_VERSION, Digest, Message, Words
from lanewise.errors import InputError
from lanewise.options.measure_network import DIRECTIONS, OPERATIONS, READ, TCP, TRANSPORTS, VERBS, WRITE

SERVICE = ControlService("measure network", port=7531, listen_command="lanewise measure network --listen")
MOST_BYTES, MOST_CONNECTIONS, MOST_MEMORY = 1 << 28, MOST_DATA_CONNECTIONS // 2, 1 << 32
BLOCKS, MOST_BLOCKS = "blocks", 1 << 24
NIXL = "nixl"  # carries blocks alone


@dataclass(frozen=True, slots=True)
class NetworkMeasurement:
    """One size with one number of connections, or one of blocks, of which a call posts `list_length`.

    Its fields travel in the request that opens it on the other side.

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
    blocks: int = 0
    list_length: int = 64

    def __post_init__(self) -> None:
        _check_word("transport", self.transport, (*TRANSPORTS, NIXL) if self.kind == BLOCKS else TRANSPORTS)
        _check_word("kind", self.kind, ("bandwidth", "latency", BLOCKS))
        _check_word("direction", self.direction, tuple(DIRECTIONS))
        _check_word("operation", self.operation, OPERATIONS)
        _check_range("message of B", self.bytes, 1, MOST_BYTES)
        _check_range("number of connections", self.connections, 1, MOST_CONNECTIONS)
        _check_range("depth", self.depth, 1, 4096)
        _check_range("number of inline bytes", self.inline_bytes, 0, 4096)
        _check_range("number of blocks", self.blocks, 1 if self.kind == BLOCKS else 0, MOST_BLOCKS)
        _check_range("number of blocks in a list", self.list_length, 1, 1024)
        _check_range("B in all buffers", self.memory, 1, MOST_MEMORY)
        if self.kind == BLOCKS and (self.connections, self.direction, self.operation) != (1, "to", WRITE):
            raise InputError("blocks go to the listener, over one connection", hint=SAME_VERSION)
        if self.kind == "latency" and self.operation == READ and self.transport == VERBS:
            raise InputError("round trips go by write or send, not by read", hint="--operation write, or send")
        if self.kind == "latency" and self.events and self.operation == WRITE and self.transport == VERBS:
            raise InputError("an RDMA write raises no event at its target", hint="--events with --operation send")

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions as seen from the client; round trips have one."""
        return ("to",) if self.kind == "latency" else DIRECTIONS[self.direction]

    @property
    def is_counted(self) -> bool:
        """Whether the endpoints count bytes while they move: not of round trips over sockets, nor of blocks."""
        return self.kind != BLOCKS and (self.kind, self.transport) != ("latency", TCP)

    @property
    def memory(self) -> int:
        """The bytes of all buffers of one side."""
        stride = -(-self.bytes // 64) * 64 if self.kind == BLOCKS else self.bytes
        return stride * max(1, self.blocks) * self.connections * len(self.directions)

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


_Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class Request(Message):
    """What the client wants next."""

    do: Literal["open", "begin", "ready", "check", "go", "mark", "stop", "done", "close"]
    cell: NetworkMeasurement | None = None
    ends: Annotated[list[RdmaAddress], Field(max_length=2)] | None = None
    all: bool = False


class Acknowledgement(Message):
    """Yes, to a request that asks for nothing more."""


class NixlAgent(Message):
    """Where blocks go over NIXL: the metadata of an agent in hexadecimal digits, and where its memory begins."""

    metadata: Annotated[str, Field(pattern="^([0-9a-f]{2})+$", max_length=1 << 15)]
    memory: Annotated[int, Field(ge=0, lt=1 << 63)]


class DataEnds(Message):
    """Where the data goes: a nonce for the tokens of TCP connections, the addresses of queue pairs, or an agent."""

    nonce: Digest | None = None
    agent: NixlAgent | None = None
    ends: list[RdmaAddress] = Field(default_factory=list, max_length=2)


class EndpointFacts(Message):
    """Where the buffers of each direction are, in words."""

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
