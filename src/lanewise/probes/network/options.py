"""What is asked of a network: which transport, which messages, over how many connections, in which directions."""

from __future__ import annotations

from dataclasses import dataclass, field

from lanewise.errors import InputError

TRANSPORTS = (TCP, VERBS) = ("tcp", "verbs")
OPERATIONS = (WRITE, READ, SEND) = ("write", "read", "send")
DIRECTIONS = {"to": ("to",), "from": ("from",), "both": ("to", "from")}
MOST_BYTES, MOST_CONNECTIONS, MOST_MEMORY = 1 << 28, 256, 1 << 32


@dataclass(frozen=True, slots=True)
class Binding:
    """Where this side's threads and buffers stay: `node` None follows the card that carries the route."""

    bind: bool = True
    node: int | None = None


@dataclass(frozen=True, slots=True)
class Rdma:
    """How verbs are used: `device` and `gid_index` of this side (None: found), what is the same on both sides else."""

    device: str | None = None
    gid_index: int | None = None
    operation: str = WRITE
    depth: int = 64
    inline_bytes: int = 0
    events: bool = False


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """A sweep: every size (bytes) with every number of connections; `direction` is to, from or both.

    `latency` measures round trips instead of bandwidth, over one connection. `seconds` is the length of one sample.
    """

    transport: str = TCP
    sizes: tuple[int, ...] = ()
    connections: tuple[int, ...] = (1, 4)
    direction: str = "to"
    latency: bool = False
    seconds: float = 0.25
    zero_copy: bool = False
    binding: Binding = field(default_factory=Binding)
    rdma: Rdma = field(default_factory=Rdma)

    def cells(self) -> tuple[Cell, ...]:
        """Each combination, checked; InputError for one without meaning."""
        if not 0.001 <= self.seconds <= 60:
            raise InputError(f"a sample of {self.seconds:g} s has no use", hint="choose 0.001 to 60 s")
        sizes = self.sizes or ((64, 4096) if self.latency else (4096, 131072))
        counts = (1,) if self.latency else self.connections
        return tuple(self._cell(size, count).checked() for size in sizes for count in counts)

    def _cell(self, size: int, count: int) -> Cell:
        rdma = self.rdma
        return Cell(
            self.transport, "latency" if self.latency else "bandwidth", size, count, self.direction,
            rdma.operation, rdma.depth, rdma.inline_bytes, rdma.events, self.zero_copy,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination, as both sides must know it: its fields travel in the request that opens a measurement."""

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

    @property
    def ways(self) -> tuple[str, ...]:
        """The directions as seen from the side that asks; round trips have one."""
        return ("to",) if self.kind == "latency" else DIRECTIONS[self.direction]

    def checked(self) -> Cell:
        """Itself; InputError names the field without meaning, whoever sent it."""
        _known("transport", self.transport, TRANSPORTS)
        _known("kind", self.kind, ("bandwidth", "latency"))
        _known("direction", self.direction, tuple(DIRECTIONS))
        _known("operation", self.operation, OPERATIONS)
        _within("message of B", self.bytes, 1, MOST_BYTES)
        _within("number of connections", self.connections, 1, MOST_CONNECTIONS)
        _within("depth", self.depth, 1, 4096)
        _within("number of inline bytes", self.inline_bytes, 0, 4096)
        _within("B in all buffers", self.bytes * self.connections, 1, MOST_MEMORY)
        if self.kind == "latency" and self.operation == READ and self.transport == VERBS:
            raise InputError("round trips go by write or send, not by read", hint="--operation write, or send")
        if self.kind == "latency" and self.events and self.operation == WRITE and self.transport == VERBS:
            raise InputError("an RDMA write raises no event at its target", hint="--events with --operation send")
        return self


def _known(what: str, given: object, known: tuple[str, ...]) -> None:
    if given not in known:
        raise InputError(f"'{str(given)[:40]}' is no {what} of a network", hint=f"known: {', '.join(known)}")


def _within(what: str, given: object, low: int, high: int) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or not low <= given <= high:
        raise InputError(f"a {what} cannot be {str(given)[:40]}", hint=f"choose {low} to {high}")


__all__ = ["Binding", "Cell", "NetworkPlan", "Rdma"]
