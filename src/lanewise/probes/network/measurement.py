"""One measurement of a network, as both sides must know it."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.errors import InputError
from lanewise.options.measure_network import (
    DIRECTIONS,
    OPERATIONS,
    READ,
    TRANSPORTS,
    VERBS,
    WRITE,
    MeasureNetworkOptions,
)

MOST_BYTES, MOST_CONNECTIONS, MOST_MEMORY = 1 << 28, 256, 1 << 32


def network_measurements(options: MeasureNetworkOptions) -> tuple[NetworkMeasurement, ...]:
    """Each size with each number of connections; InputError for one without meaning."""
    sizes = options.sizes or ((64, 4096) if options.latency else (4096, 131072))
    counts = (1,) if options.latency else options.connections
    return tuple(
        NetworkMeasurement(
            options.transport, "latency" if options.latency else "bandwidth", size, count, options.direction,
            options.operation, options.depth, options.inline_bytes, options.events, options.zero_copy,
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
