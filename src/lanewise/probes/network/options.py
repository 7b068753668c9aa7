"""What `measure network` measures: one type for the command line and for Python."""

from __future__ import annotations

from dataclasses import dataclass, field

from lanewise.errors import InputError
from lanewise.results.estimate import Rule

TRANSPORTS = (TCP, VERBS) = ("tcp", "verbs")
OPERATIONS = (WRITE, READ, SEND) = ("write", "read", "send")
DIRECTIONS = {"to": ("to",), "from": ("from",), "both": ("to", "from")}
MOST_BYTES, MOST_CONNECTIONS, MOST_MEMORY = 1 << 28, 256, 1 << 32


@dataclass(frozen=True, slots=True)
class Binding:
    """Whether this side's threads and buffers are bound, and to which NUMA `node` (None: that of the network card)."""

    bind: bool = True
    node: int | None = None


@dataclass(frozen=True, slots=True)
class RdmaOptions:
    """How verbs are used: `device` and `gid_index` of this side (None: chosen here); both sides share the others."""

    device: str | None = None
    gid_index: int | None = None
    operation: str = WRITE
    depth: int = 64
    inline_bytes: int = 0
    events: bool = False


@dataclass(frozen=True, slots=True)
class MeasureNetworkOptions:
    """A sweep: every size (bytes) with every number of connections, to the listener at `address` (None: loopback).

    `direction` is to, from or both. `latency` measures round trips instead of bandwidth, over one connection. `seconds`
    is the length of one sample; `rule` says when a measurement has enough. InputError for a wrong value.
    """

    address: str | None = None
    transport: str = TCP
    sizes: tuple[int, ...] = ()
    connections: tuple[int, ...] = (1, 4)
    direction: str = "to"
    latency: bool = False
    seconds: float = 0.25
    zero_copy: bool = False
    binding: Binding = field(default_factory=Binding)
    rdma: RdmaOptions = field(default_factory=RdmaOptions)
    rule: Rule = field(default_factory=lambda: Rule(least=5, most=15))

    def __post_init__(self) -> None:
        if not 0.001 <= self.seconds <= 60:
            raise InputError(f"a sample of {self.seconds:g} s has no use", hint="choose 0.001 to 60 s")
        self.measurements()

    def measurements(self) -> tuple[NetworkMeasurement, ...]:
        """Each size with each number of connections."""
        sizes = self.sizes or ((64, 4096) if self.latency else (4096, 131072))
        counts = (1,) if self.latency else self.connections
        kind, rdma = "latency" if self.latency else "bandwidth", self.rdma
        return tuple(
            NetworkMeasurement(
                self.transport, kind, size, count, self.direction, rdma.operation, rdma.depth, rdma.inline_bytes,
                rdma.events, self.zero_copy,
            )
            for size in sizes
            for count in counts
        )  # fmt: skip


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
