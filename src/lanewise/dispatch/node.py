"""An Accelerator node: serves one Frontend after the other with the same system, which stays loaded between them."""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lanewise.control.listener import serve
from lanewise.control.rdma import RdmaPort
from lanewise.control.reception import ProvenClient
from lanewise.control.session import ClientSession
from lanewise.control.stream import SAME_VERSION, Message, PeerLost
from lanewise.dispatch import messages
from lanewise.dispatch.host import available_memory, check_slots
from lanewise.dispatch.messages import DISPATCH, SERVICE, ConnectionShape, NodeFacts, NodeRequest, OpenRequest
from lanewise.dispatch.pulse import DEADLINE_S, Pulse
from lanewise.dispatch.shm import DescriptorSocket, ShmAtNode
from lanewise.dispatch.tcp import TcpAtNode
from lanewise.dispatch.transport import NodeTransport, native_failures
from lanewise.dispatch.verbs import VerbsAtNode, common_node
from lanewise.errors import CannotMeasure, InputError
from lanewise.options.loadtest import SHM, VERBS
from lanewise.options.serve import OFF, ON

if TYPE_CHECKING:
    from lanewise._native import GpuMemory, NodeSession, SlotMemory, SystemUnderTest

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SlotSystem:
    """A system whose samples lie in slots, and what says how its last run was."""

    system: SystemUnderTest
    statistics: Callable[[], messages.NodeStatistics]


class AcceleratorSystems(Protocol):
    """Makes the systems of a node's sessions, on engines that stay loaded. `gpu_memory` as of `lanewise serve`."""

    @property
    def gpu_memory(self) -> str: ...

    def facts(self) -> NodeFacts:
        """What the node is, without its socket."""

    def answer_form(self, answer: messages.AnswerKind) -> tuple[int, messages.ChecksumKind]:
        """Bytes of such an answer at most, and how checksums are made; InputError where there is no such answer."""

    def gpu_slots(self, size: int) -> GpuMemory:
        """So many bytes of the GPU's memory that RDMA devices write to; CannotMeasure where something is missing."""

    def open(self, answer: str, slots: SlotMemory, count: int) -> SlotSystem:
        """A system on `count` slots; CannotMeasure where it cannot be made."""


def serve_queries(
    listener: socket.socket, secret: str, systems: AcceleratorSystems, *, once: bool = False, say: Say = lambda _: None,
    clock: Callable[[], float] = time.monotonic, tls: ssl.SSLContext | None = None,
) -> None:  # fmt: skip
    """Serve Frontends as `lanewise.control.listener.serve` does."""
    serve(
        listener, secret, SERVICE, lambda client: DispatchSession(client, systems, clock), once=once, say=say,
        clock=clock, tls=tls,
    )  # fmt: skip


class DispatchSession(ClientSession):
    """One Frontend's session: its slots, its connections, and the system that answers its queries."""

    def __init__(
        self, client: ProvenClient, systems: AcceleratorSystems, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(client)
        self._systems = systems
        self._pulse = Pulse(clock)
        self._facts: NodeFacts | None = None
        self._descriptors = DescriptorSocket()
        self._shape: ConnectionShape | None = None
        self._gpu_memory: str | None = None
        self._transport: NodeTransport | None = None
        self._system: SlotSystem | None = None
        self._session: NodeSession | None = None
        self._end, self._about, self._queries = "left", "", 0

    def answer(self) -> None:
        """Answer the Frontend's requests until it leaves, or its heartbeat stops."""
        handlers: dict[str, Callable[[NodeRequest], Message]] = {
            "describe": self._describe, "open": self._open, "begin": self._begin, "statistics": self._statistics,
            "beat": self._beat,
        }  # fmt: skip
        try:
            while self._wait():
                request = self.stream.receive(NodeRequest)
                self._pulse.heard()
                with native_failures():
                    answer = handlers[request.do](request)
                self.stream.send(answer)
        except PeerLost as error:
            self._end = "left" if str(error).endswith("has left") else "was lost"

    def summary(self) -> str:
        """How many queries came, and how it ended."""
        return f"{self._end} after {self._queries:,} queries{self._about}"

    def release(self) -> None:
        """End the Frontend's connections and free its slots; the engines stay loaded."""
        if self._session is not None:
            self._session.close()
            self._queries = self._session.received
        if self._transport is not None:
            self._transport.close()
        self._forget()
        self._descriptors.close()

    def _forget(self) -> None:
        self._session = self._system = self._transport = None

    def _wait(self) -> bool:
        """Wait for a request; False where the Frontend is silent for too long."""
        poll = select.poll()
        poll.register(self.stream.connection, select.POLLIN)
        while not poll.poll(1e3 * self._pulse.wait()):
            if not self._pulse.due():
                continue
            if self._pulse.look():
                self._end = f"was silent for {DEADLINE_S:g} s"
                return False
        return True

    def _describe(self, request: NodeRequest) -> NodeFacts:
        if request.dispatch != DISPATCH:
            raise InputError(
                f"this node speaks version {DISPATCH} of query dispatch, the Frontend {request.dispatch}",
                hint="install the same version of Lanewise on both sides",
            )
        self._facts = self._systems.facts().model_copy(update={"socket": self._descriptors.name})
        return self._facts

    def _open(self, request: NodeRequest) -> messages.OpenReply:
        opening = request.open
        if opening is None or self._shape is not None:
            raise InputError("a session is opened once, with its connections", hint=SAME_VERSION)
        facts = self._facts or self._systems.facts()
        messages.check_samples(f"node {facts.name}", facts.sample.bytes, opening.sample_bytes)
        answer_bytes, checksum = self._systems.answer_form(opening.answer)
        shape = ConnectionShape(opening.slots, opening.sample_bytes, answer_bytes)
        count = opening.connections * opening.slots
        check_slots(count * (shape.stride + 2 * answer_bytes), available_memory())
        if any(index >= len(facts.host.rdma) for index in opening.ports):
            raise InputError("this node has no such RDMA port", hint=SAME_VERSION)
        self._allocate(opening, shape, count, [facts.host.rdma[index] for index in opening.ports])
        gpu_memory = f"; GPU memory {self._gpu_memory}" if self._gpu_memory else ""
        self._about = f" over {opening.connections} connections ({opening.transport}{gpu_memory})"
        assert self._transport is not None
        return messages.OpenReply(answer_bytes=answer_bytes, checksum=checksum, nonce=self._transport.nonce,
                                  addresses=self._transport.addresses(), gpu_memory=self._gpu_memory)  # fmt: skip

    def _allocate(self, opening: OpenRequest, shape: ConnectionShape, count: int, ports: list[RdmaPort]) -> None:
        """Make slots, system and connections: in the GPU's memory if that is wanted and works, else in the host's."""
        from lanewise import _native as native

        choice, size, self._shape = self._systems.gpu_memory, count * shape.stride, shape
        if opening.transport == VERBS and len(ports) != opening.connections:
            raise InputError("verbs need an RDMA port for each connection", hint=SAME_VERSION)
        if choice == ON and opening.transport != VERBS:
            raise InputError(f"{opening.transport} does not reach GPU memory, where this node's samples arrive",
                             hint="--transport verbs; or lanewise serve --gpu-memory auto")  # fmt: skip
        if choice != OFF and opening.transport == VERBS:
            try:
                self._make(opening, count, ports, self._systems.gpu_slots(size))
                self._gpu_memory = "used (never run on RDMA hardware)"
                return
            except CannotMeasure as error:
                if choice == ON:
                    raise
                self._gpu_memory = f"not used: {error}"
            self._forget()
        self._make(opening, count, ports, native.SharedMemory(size, common_node(ports)))

    def _make(self, opening: OpenRequest, count: int, ports: list[RdmaPort], slots: SlotMemory) -> None:
        from lanewise import _native as native

        assert self._shape is not None
        self._system = self._systems.open(opening.answer, slots, count)
        self._session = native.NodeSession(self._system.system, self._systems.facts().name)
        if opening.transport == VERBS:
            self._transport = VerbsAtNode(ports, self._shape, slots)
            return
        assert isinstance(slots, native.SharedMemory)
        if opening.transport == SHM:
            self._transport = ShmAtNode(self._descriptors, self._handshake, opening.connections, slots)
        else:
            self._transport = TcpAtNode(self, opening.connections, slots)

    def _begin(self, request: NodeRequest) -> messages.BeginReply:
        if self._session is None or self._transport is None or self._shape is None:
            raise InputError("nothing is open", hint=SAME_VERSION)
        transport, self._transport = self._transport, None  # it joins once
        try:
            transport.join(self._session, self._shape, request.addresses)
        finally:
            transport.close()
        return messages.BeginReply()

    def _beat(self, request: NodeRequest) -> messages.BeatReply:
        """A beat for a beat; CannotMeasure where a connection failed, which only this side may have noticed."""
        if self._session is not None and self._session.reason:
            raise CannotMeasure(self._session.reason, hint="start the load test again")
        return messages.BeatReply()

    def _statistics(self, request: NodeRequest) -> messages.NodeStatistics:
        if self._system is None:
            raise InputError("nothing is open", hint=SAME_VERSION)
        return self._system.statistics()
