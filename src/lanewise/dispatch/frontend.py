"""The Frontend's side of a session with several Accelerator nodes: connects them, watches them, connects them again."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from lanewise.control.interfaces import interface_of
from lanewise.control.rdma import usable_ports
from lanewise.control.service import parse_address
from lanewise.control.stream import PeerLost
from lanewise.control.tls import client_tls
from lanewise.dispatch import messages
from lanewise.dispatch.counters import ADDED, ConnectionCounters
from lanewise.dispatch.host import available_memory, boot_id, check_slots, lockable_memory
from lanewise.dispatch.link import NodeLink, NodeWatch
from lanewise.dispatch.messages import (
    AnswerKind,
    ConnectionShape,
    NodeFacts,
    NodeRequest,
    NodeStatistics,
    OpenReply,
    OpenRequest,
)
from lanewise.dispatch.shm import ShmAtFrontend, reach
from lanewise.dispatch.tcp import TcpAtFrontend
from lanewise.dispatch.transport import JOIN_S, FrontendTransport
from lanewise.dispatch.verbs import VerbsAtFrontend, check_locked, choose_ports
from lanewise.errors import CannotMeasure, Contradiction, InputError
from lanewise.options.loadtest import AUTO, SHM, VERBS, LoadOptions

if TYPE_CHECKING:
    from lanewise._native import NetworkSystem

DEPTH = 1024  # queries in flight on a connection, where the node has the memory
SHARE = 4  # of the free memory of a node slots take so much at most, unless --depth says more


@dataclass(slots=True)
class FrontendNode:
    """A node as the Frontend has it: its address, what it is, and of its open session the transport and the shape.

    `within_host`: its queries cross no fabric. `nic` is the interface of this host whose address its connections come
    from; within a host the transport. Over verbs `rdma` are the devices of its connections. `refused`: why --transport
    auto did not take a faster transport.
    """

    number: int
    link: NodeLink
    facts: NodeFacts
    transport: str = ""
    within_host: bool = False
    shape: ConnectionShape | None = None
    reply: OpenReply | None = None
    nic: str = ""
    rdma: Sequence[str] = ()
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """HOST:PORT as the user wrote it."""
        return self.link.address


@dataclass(frozen=True, slots=True)
class NodeLoss:
    """A node that was lost: how, how many queries it answered in that run, and how many it left unanswered."""

    node: FrontendNode
    reason: str
    answered: int
    queries: int

    def __str__(self) -> str:
        return f"{self.reason}; {self.queries:,} queries unanswered"


class Frontend:
    """Sessions with all nodes; as a context it closes them.

    First `connect`, then `attach` the native system that the queries go to.
    """

    def __init__(self, options: LoadOptions, secret: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.nodes: list[FrontendNode] = []
        self.system: NetworkSystem | None = None
        self._options, self._secret, self._clock = options, secret, clock
        self._tls = None if options.child_node else client_tls(options.tls_ca)
        self._answer: AnswerKind = ""
        self._changing = threading.Lock()  # the system's connections
        self._watch = NodeWatch(self._lost, self._look)

    def __enter__(self) -> Frontend:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Leave all nodes; they free what they hold for this Frontend."""
        self._watch.close()
        if self.system is not None:
            for node in self.nodes:
                with suppress(RuntimeError), self._changing:
                    self.system.forget(node.number)

    def connect(self, addresses: Sequence[str]) -> None:
        """Greet each node and have it describe itself; CannotMeasure, or InputError for addresses that do not fit."""
        places = [parse_address(address, messages.SERVICE.port) for address in addresses]
        for host, port in places:
            if places.count((host, port)) > 1:
                raise InputError(f"--nodes names {host}:{port} twice", hint="name each node once")
        for number, address in enumerate(addresses):
            self.nodes.append(FrontendNode(number, *self._describe(address)))
        names = [node.facts.name for node in self.nodes]
        for node in self.nodes:
            if names.count(node.facts.name) > 1:
                raise InputError(f"two nodes have the name {node.facts.name}", hint="lanewise serve --name NAME")

    def attach(self, system: NetworkSystem, sample_bytes: int, answer: AnswerKind) -> None:
        """Open the nodes' sessions and give their connections to the system.

        `sample_bytes` is what the Frontend sends, `answer` what the nodes shall answer. CannotMeasure, Contradiction.
        """
        self.system, self._answer = system, answer
        for node in self.nodes:
            self._open(node, sample_bytes)
        sums = {node.reply.checksum for node in self.nodes if node.reply is not None}
        if answer == "checksums" and len(sums) > 1:
            hint = "audit the nodes with GPUs, then those without"
            raise Contradiction("nodes with a GPU and nodes without sum samples differently", hint=hint)

    def restore(self) -> None:
        """Connect lost nodes again, before a run; CannotMeasure where one does not come back as it was."""
        for node in self.nodes:
            if not node.link.reason:
                continue
            assert self.system is not None
            assert node.shape is not None
            before, lost = node.facts, node.link.reason
            with self._changing:
                self.system.forget(node.number)
            try:
                link, facts = self._describe(node.address)
            except CannotMeasure as error:
                cause = f"node {node.address} was lost ({lost}) and cannot be connected again: {error}"
                raise CannotMeasure(cause, hint="start the node again with the same options") from None
            node.link, node.facts = link, facts
            if (facts.setup, facts.sample, facts.devices) != (before.setup, before.sample, before.devices):
                raise Contradiction(f"node {node.address} came back as another one",
                                    hint="serve the same model in the same way, or begin a new load test")  # fmt: skip
            self._open(node, node.shape.sample_bytes)

    def losses(self) -> list[NodeLoss]:
        """The nodes that were lost since the last `restore`."""
        if self.system is None:
            return []
        self._look()
        answered, queries = Counter[int](), Counter[int]()
        for connection in self.counters():
            answered[connection["node"]] += connection["answered"]
            queries[connection["node"]] += connection["lost"]
        return [
            NodeLoss(node, self._reason(node), answered[node.number], queries[node.number])
            for node in self.nodes if node.link.reason
        ]  # fmt: skip

    def statistics(self) -> list[tuple[FrontendNode, NodeStatistics]]:
        """What each node that is there did in its last run."""
        every = []
        for node in self.nodes:
            with suppress(PeerLost):
                if not node.link.reason:
                    every.append((node, node.link.request(NodeRequest(do="statistics"), NodeStatistics)))
        return every

    def counters(self) -> list[dict[str, Any]]:
        """What each connection has sent and received, with the number of its node; see the system's counters()."""
        if self.system is None:
            return []
        with self._changing:
            return self.system.counters()

    def connection_counters(self) -> tuple[ConnectionCounters, ...]:
        """The same with the names of node and NIC, connections numbered from 1 at each node."""
        numbers: Counter[int] = Counter()
        every = []
        for values in self.counters():
            node = self.nodes[values["node"]]
            numbers[node.number] += 1
            counts = {name: values[name] for name in (*ADDED, "outstanding")}
            number = numbers[node.number]
            nic = node.rdma[number - 1] if number <= len(node.rdma) else node.nic
            every.append(ConnectionCounters(node.facts.name, number, nic, **counts))
        return tuple(every)

    def _describe(self, address: str) -> tuple[NodeLink, NodeFacts]:
        link = NodeLink(address, self._secret, self._clock, self._tls)
        self._watch.add(link)
        try:
            return link, link.describe()
        except BaseException:
            self._watch.remove(link)
            raise

    def _open(self, node: FrontendNode, sample_bytes: int) -> None:
        assert self.system is not None
        messages.check_samples(f"node {node.address}", node.facts.sample.bytes, sample_bytes)
        transport = self._transport(node, sample_bytes)
        try:
            connections = self._options.connections
            request = OpenRequest(
                answer=self._answer, transport=transport.name, connections=connections,
                slots=self.depth(node), sample_bytes=sample_bytes, ports=list(transport.node_ports),
            )  # fmt: skip
            reply = node.link.open(request)
            shape = ConnectionShape(request.slots, sample_bytes, reply.answer_bytes)
            check_slots(connections * request.slots * reply.answer_bytes, available_memory())
            begin = NodeRequest(do="begin", addresses=transport.offer(reply, shape))
            node.link.request(begin, messages.BeginReply, 2 * JOIN_S)
            with self._changing:
                transport.join(self.system, node.number, shape)
        except BaseException:
            self._watch.remove(node.link)
            node.link.lose("it could not be connected")
            raise
        finally:
            transport.close()
        node.transport, node.within_host, node.shape, node.reply = transport.name, transport.within_host, shape, reply
        node.rdma = transport.devices
        own = node.link.control.stream.connection.getsockname()[0]
        node.nic = SHM if node.transport == SHM else interface_of(own) or node.transport

    def depth(self, node: FrontendNode) -> int:
        """Queries in flight on each connection of a node; of its memory a power of two, so that a search resumes."""
        memory, depth = node.facts.host.memory, self._options.depth
        if depth or memory is None:
            return depth or DEPTH
        stride = ConnectionShape(1, node.facts.sample.bytes, 1).stride
        fitting = memory // SHARE // (self._options.connections * stride)
        return min(DEPTH, 1 << max(0, fitting.bit_length() - 1))

    def _transport(self, node: FrontendNode, sample_bytes: int) -> FrontendTransport:
        choice, node.refused = self._options.transport, {}
        for kind in (SHM, VERBS) if choice == AUTO else (choice,):
            try:
                if kind == SHM:
                    return self._shm(node)
                if kind == VERBS:
                    return self._verbs(node, sample_bytes)
            except CannotMeasure as error:
                if choice != AUTO:
                    raise
                node.refused[kind] = str(error)
        return TcpAtFrontend(node.link.control, self._options.connections)

    def _shm(self, node: FrontendNode) -> ShmAtFrontend:
        shm_required = self._options.transport == SHM
        connection = reach(node.facts.socket) if shm_required or node.facts.host.boot == boot_id() else None
        if connection is None:
            raise CannotMeasure(
                f"node {node.address} shares no memory with this process",
                hint="shm is for one host, one network namespace and one user; choose --transport tcp",
            )
        return ShmAtFrontend(connection, node.link.control.handshake, self._options.connections)

    def _verbs(self, node: FrontendNode, sample_bytes: int) -> VerbsAtFrontend:
        options, host = self._options, node.facts.host
        if not host.rdma:
            raise CannotMeasure(f"node {node.address}: {host.no_rdma}", hint="use --transport tcp")
        local = usable_ports(options.device, options.gid_index)
        ports = choose_ports(node.address, local, host.rdma, options.connections)
        slots = ConnectionShape(self.depth(node), sample_bytes, 1)
        devices = len({port.device for port, _ in ports})  # each registers the library once
        check_locked("this side", devices * options.library * sample_bytes, lockable_memory())
        check_locked(f"node {node.address}", options.connections * slots.slots * slots.stride, host.lockable)
        return VerbsAtFrontend(ports, within_host=host.boot == boot_id())

    def _reason(self, node: FrontendNode) -> str:
        reason = node.link.reason
        return reason if reason.startswith("node ") else f"node {node.address} was lost: {reason}"

    def _lost(self, link: NodeLink) -> None:
        for node in self.nodes:
            if node.link is link and self.system is not None:
                with self._changing:
                    self.system.lose(node.number, self._reason(node))

    def _look(self) -> None:
        """A node of which a connection ended is lost as a whole."""
        for connection in self.counters():
            node = self.nodes[connection["node"]]
            if connection["reason"] and not node.link.reason:
                node.link.lose(connection["reason"])
                self._watch.remove(node.link)
                self._lost(node.link)


def connect(options: LoadOptions, secret: str, clock: Callable[[], float] = time.monotonic) -> Frontend:
    """A Frontend that has greeted the nodes of `options`; CannotMeasure where one is not there, InputError."""
    frontend = Frontend(options, secret, clock)
    try:
        frontend.connect(options.nodes)
    except BaseException:
        frontend.close()
        raise
    return frontend
