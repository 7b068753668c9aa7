"""The messages of query dispatch: what a Frontend requests of a node, what the node replies, and their limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeVar

from pydantic import Field

from lanewise.control.rdma import RdmaAddress, RdmaPort
from lanewise.control.service import ControlService
from lanewise.control.stream import Digest, Message, Words
from lanewise.errors import Contradiction

SERVICE = ControlService("query dispatch", port=7000, listen_command="lanewise serve --listen")
DISPATCH: Final = 2  # version of these messages, and of those that the native part sends over data connections
MOST_SAMPLE_BYTES, MOST_ANSWER_BYTES = 1 << 28, 1 << 24
MOST_CONNECTIONS, MOST_SLOTS = 64, 1 << 16
MOST_STRIDE = 16  # slots begin at multiples of it
MOST_SIZES = 1024  # sizes of batches that statistics tell apart

Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Seconds = Annotated[float, Field(ge=0.0, lt=1e9, allow_inf_nan=False)]
Name = Annotated[Words, Field(max_length=64)]
NodeName = Annotated[str, Field(pattern="^[A-Za-z0-9._:-]{1,64}$")]  # it is part of a list, of paths and of flows
Limit = Annotated[int, Field(ge=1, lt=1 << 63)]
_Item = TypeVar("_Item")
AnswerKind = Literal["", "outputs", "classes", "checksums"]  # as of lanewise.loadtest.engines.callback
TransportKind = Literal["shm", "verbs", "tcp"]
ChecksumKind = Literal["crc32", "sum64"]  # zlib's of what was read back, or the sum of lanewise.loadtest.audits
Few = Annotated[list[_Item], Field(max_length=64)]


@dataclass(frozen=True, slots=True)
class ConnectionShape:
    """What both sides of a connection agree on: queries in flight, bytes of a sample and of an answer."""

    slots: int
    sample_bytes: int
    answer_bytes: int

    @property
    def stride(self) -> int:
        """Bytes from a slot of samples to the next."""
        return -(-self.sample_bytes // MOST_STRIDE) * MOST_STRIDE


class SampleForm(Message):
    """One sample: shape and numpy type; `below` limits the integers of each row; `bytes` is what travels."""

    shape: Annotated[list[Annotated[int, Field(ge=1, le=MOST_SAMPLE_BYTES)]], Field(min_length=1, max_length=8)]
    dtype: Annotated[str, Field(pattern="^(u?int(8|16|32|64)|float(16|32|64))$")]
    below: Few[Limit] = Field(default_factory=list)
    bytes: Annotated[int, Field(ge=1, le=MOST_SAMPLE_BYTES)]


class NetworkCard(Message):
    """A network interface: its rate in bit/s and its NUMA node, where the kernel says them."""

    name: Name
    rate: Count | None = None
    node: Annotated[int, Field(ge=0, lt=1024)] | None = None


class HostFacts(Message):
    """The host of a node. `boot` tells whether two processes run on one, `process` is the node's own number there;
    `memory` is free, in bytes.

    `rdma`: the ports that verbs may use, or `no_rdma`, why there is none; `lockable`: bytes for them (None: no limit).
    """

    name: Name
    boot: Name
    memory: Count | None
    nodes: Annotated[int, Field(ge=1, le=1024)]
    cards: Few[NetworkCard]
    rdma: Few[RdmaPort]
    no_rdma: Words = ""
    lockable: Count | None = None
    process: Count = 0


class NodeFacts(Message):
    """What a node is. `setup` names engine and model with versions; without an engine the `sample` is any bytes.

    `socket` is the abstract Unix socket over which it passes shared memory.
    """

    name: NodeName
    host: HostFacts
    devices: Annotated[list[Annotated[str, Field(pattern="^(cpu|gpu[0-9]{1,4})$")]], Field(min_length=1, max_length=64)]
    batch: Annotated[int, Field(ge=1, le=65535)]
    synthetic: bool
    sample: SampleForm
    setup: Annotated[dict[Name, Words], Field(max_length=64)]
    socket: Name = ""


class OpenRequest(Message):
    """What the Frontend wants: how answers are made, and its connections, each with `slots` queries in flight.

    `ports`: of verbs, for each connection the index of a port of `HostFacts.rdma`.
    """

    answer: AnswerKind
    transport: TransportKind
    connections: Annotated[int, Field(ge=1, le=MOST_CONNECTIONS)]
    slots: Annotated[int, Field(ge=1, le=MOST_SLOTS)]
    sample_bytes: Annotated[int, Field(ge=1, le=MOST_SAMPLE_BYTES)]
    ports: Few[Annotated[int, Field(ge=0, lt=64)]] = Field(default_factory=list)


class NodeRequest(Message):
    """One request of the Frontend: describe, open, begin (its connections are there), beat, statistics.

    `addresses`: with begin over verbs, those of the Frontend's queue pairs.
    """

    do: Literal["describe", "open", "begin", "beat", "statistics"]
    dispatch: int | None = None
    open: OpenRequest | None = None
    addresses: Few[RdmaAddress] = Field(default_factory=list)


class OpenReply(Message):
    """What an opened session is: room for an answer, how checksums are made, the nonce of its connections' tokens.

    `addresses`: over verbs those of the node's queue pairs. `gpu_memory`: of a node that samples shall reach in its
    GPU's memory, whether they do.
    """

    answer_bytes: Annotated[int, Field(ge=1, le=MOST_ANSWER_BYTES)]
    checksum: ChecksumKind
    nonce: Digest
    addresses: Few[RdmaAddress] = Field(default_factory=list)
    gpu_memory: Words | None = None


class BeginReply(Message):
    """Queries may come."""

    begun: Literal[True] = True


class BeatReply(Message):
    """The node is alive."""

    beat: Literal[True] = True


class NodeStatistics(Message):
    """What the node's system did in its last run (lanewise.loadtest.system.SystemStatistics); times in s."""

    stages: Annotated[dict[Name, Annotated[dict[Name, Seconds], Field(max_length=16)]], Field(max_length=16)]
    sizes: Annotated[list[tuple[Count, Count]], Field(max_length=MOST_SIZES)]
    bytes: Count
    answered: Count
    failed: Count
    stalled: Seconds
    copies: Few[tuple[Name, Annotated[dict[Name, Seconds], Field(max_length=16)]]]


def check_samples(name: str, own: int, other: int) -> None:
    """Contradiction where the samples of the Frontend (`other` bytes) are not those of the node `name`."""
    if own != other:
        raise Contradiction(
            f"{name} takes samples of {own} B, the Frontend sends {other} B",
            hint="give all nodes the same --model, or --sample-bytes, and images of its layout",
        )
