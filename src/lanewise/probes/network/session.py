"""The client's side: opens a measurement with the listener, starts both sides, reads byte counters, stops both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from lanewise.control.client import ControlConnection, connect
from lanewise.control.stream import PEER_LOST_HINT, SAME_VERSION, MessageStream, PeerLost
from lanewise.control.tls import client_tls
from lanewise.errors import CannotMeasure
from lanewise.options.measure_network import NetworkSideOptions
from lanewise.probes.machine import native_errors
from lanewise.probes.network import messages
from lanewise.probes.network.endpoints import (
    Endpoint,
    check_memory,
    nixl_endpoint,
    stop_endpoints,
    tcp_endpoint,
    verbs_endpoint,
)
from lanewise.probes.network.messages import NIXL, SERVICE, ByteCounters, NetworkMeasurement, Request

READY_S, DONE_S, CLOSE_S = 20.0, 10.0, 2.0
STEP_S = 0.1  # a Ctrl-C, and a listener that has left, are noticed this often
Counters = tuple[float, list[int]]  # seconds of the counting machine's clock, bytes of each connection


@dataclass(frozen=True, slots=True)
class NetworkSession:
    """A listener that knows the secret, and the settings of this side."""

    control: ControlConnection
    side: NetworkSideOptions

    @property
    def stream(self) -> MessageStream:
        """The messages to and from the listener."""
        return self.control.stream


@contextmanager
def connect_session(address: tuple[str, int], side: NetworkSideOptions, secret: str) -> Iterator[NetworkSession]:
    """A session with the listener at HOST, PORT; errors as of `lanewise.control.client.connect`."""
    with connect(address, secret, SERVICE, client_tls(side.tls_ca)) as control:
        yield NetworkSession(control, side)


class NetworkRun:
    """A measurement in progress on both sides: `endpoints` are this side's, `facts` the words of both, by direction."""

    def __init__(self, session: NetworkSession, measurement: NetworkMeasurement) -> None:
        self.session = session
        self.measurement = measurement
        self.endpoints: list[Endpoint] = []
        self.facts: list[dict[str, str]] = []
        self._request = session.stream.request

    def start(self) -> None:
        """Connect, send the pattern, compare it on both sides, then start the data on both."""
        check_memory(self.measurement)
        if self.measurement.transport == "tcp":
            self._connect_sockets()
        elif self.measurement.transport == NIXL:
            self._connect_agents()
        else:
            self._connect_queue_pairs()
        for endpoint in self.endpoints:
            endpoint.begin()
        self._wait_until(READY_S, "the first data", lambda: self._both("ready"))
        for endpoint in self.endpoints:
            with native_errors():
                endpoint.native.check()
        self._request(Request(do="check"), messages.Acknowledgement)
        self._request(Request(do="go"), messages.Acknowledgement)
        for endpoint in self.endpoints:
            endpoint.native.go()

    def counters(self) -> list[Counters]:
        """Per direction, the bytes of each connection on the side that counts them, and the time on its clock."""
        with native_errors():
            local = [endpoint.counters() for endpoint in self.endpoints]
        return self._counters(local, self._request(Request(do="mark"), messages.Marks))

    def wait(self, seconds: float) -> None:
        """Let a window pass; CannotMeasure if the other side leaves meanwhile, or this side's data stops."""
        end = time.monotonic() + seconds
        while (remaining := end - time.monotonic()) > 0:
            if self.session.stream.closed():
                raise PeerLost(f"{self.session.stream.name} has left", hint=PEER_LOST_HINT)
            with native_errors():
                for endpoint in self.endpoints:
                    endpoint.native.ready()
            time.sleep(min(remaining, STEP_S))

    def stop(self) -> tuple[list[Counters], list[Counters]]:
        """Stop and drain the endpoints that drive, then the others; the bytes that each direction sent and received.

        Of verbs only the side that counts knows the bytes; the two are the same then.
        """
        self._request(Request(do="stop"), messages.Acknowledgement)
        stop_endpoints(self.endpoints, everyone=False)
        self._wait_until(DONE_S, "the end of what is under way", lambda: self._both("done"))
        if self.measurement.transport == "verbs":
            self._request(Request(do="stop", all=True), messages.Acknowledgement)
            stop_endpoints(self.endpoints, everyone=True)
        self._wait_until(DONE_S, "the end of the other side", lambda: self._both("done", everyone=True))
        if not self.measurement.is_counted:
            return [], []
        local = [endpoint.counters() for endpoint in self.endpoints]
        answer = self._request(Request(do="mark"), messages.Marks)
        return self._counters(local, answer, sent=True), self._counters(local, answer)

    def close(self) -> None:
        """Free both sides; a listener that has left has nothing to free."""
        for endpoint in self.endpoints:
            endpoint.close()
        self.endpoints = []
        try:
            self._request(Request(do="close"), messages.Acknowledgement, CLOSE_S)
        except CannotMeasure:
            return

    def _connect_sockets(self) -> None:
        nonce = self._request(Request(do="open", cell=self.measurement), messages.DataEnds).nonce
        if nonce is None:
            raise CannotMeasure(f"{self.session.stream.name} takes no data connections", hint=SAME_VERSION)
        n, directions = self.measurement.connections, self.measurement.directions
        sockets = self.session.control.open_data(nonce, n * len(directions), READY_S)
        try:
            answer = self._request(Request(do="begin"), messages.EndpointFacts)
        except BaseException:
            for connection in sockets:
                connection.close()
            raise
        for i, name in enumerate(directions):
            part = sockets[i * n : (i + 1) * n]
            self.endpoints.append(tcp_endpoint(self.measurement, part, i, name == "to", self.session.side))
        self._add_facts(answer)

    def _connect_agents(self) -> None:
        self.endpoints.append(endpoint := nixl_endpoint(self.measurement, sends=True, side=self.session.side))
        agent = self._request(Request(do="open", cell=self.measurement), messages.DataEnds, READY_S).agent
        if agent is None:
            raise CannotMeasure(f"{self.session.stream.name} has no agent of NIXL", hint=SAME_VERSION)
        endpoint.agent.connect(agent.metadata, agent.memory)
        self._add_facts(self._request(Request(do="begin"), messages.EndpointFacts))

    def _connect_queue_pairs(self) -> None:
        for i, name in enumerate(self.measurement.directions):
            self.endpoints.append(verbs_endpoint(self.measurement, i, name == "to", self.session.side))
        addresses = [endpoint.queue_pairs.address() for endpoint in self.endpoints]
        request = Request(do="open", cell=self.measurement, ends=addresses)
        answer = self._request(request, messages.DataEnds)
        if len(answer.ends) != len(self.endpoints):
            raise CannotMeasure(f"{self.session.stream.name} gives no queue pairs", hint=SAME_VERSION)
        for endpoint, address in zip(self.endpoints, answer.ends, strict=True):
            endpoint.connect(address)
        self._add_facts(self._request(Request(do="begin"), messages.EndpointFacts))

    def _add_facts(self, answer: messages.EndpointFacts) -> None:
        remote = answer.about or [{}] * len(self.endpoints)
        for endpoint, facts in zip(self.endpoints, remote, strict=False):
            other_side = {f"{key} there": value for key, value in facts.items()}
            self.facts.append({**endpoint.describe(), **other_side})

    def _both(self, stage: Literal["ready", "done"], everyone: bool = False) -> bool:
        """Whether both sides have reached `stage`; `done` concerns the endpoints that drive, or all with `everyone`."""
        endpoints = [endpoint for endpoint in self.endpoints if stage == "ready" or everyone or endpoint.drives]
        with native_errors():
            local = all(end.native.ready() if stage == "ready" else end.native.done() for end in endpoints)
        return self._request(Request(do=stage, all=everyone), messages.Readiness).reached and local

    def _wait_until(self, patience: float, event: str, reached: Callable[[], bool]) -> None:
        end, pause = time.monotonic() + patience, 0.001
        while not reached():
            if time.monotonic() > end:
                raise CannotMeasure(
                    f"{self.session.stream.name}: {event} did not come in {patience:g} s",
                    hint="is data let through between the two sides? look at the network and both sides' logs",
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def _counters(self, local: list[ByteCounters], answer: messages.Marks, sent: bool = False) -> list[Counters]:
        remote, connections = answer.marks, self.measurement.connections
        if len(remote) != len(local) or any(len(counters.bytes) != connections for counters in remote):
            raise CannotMeasure(f"{self.session.stream.name} sends too few byte counters", hint=SAME_VERSION)
        counters: list[Counters] = []
        for endpoint, mine, theirs in zip(self.endpoints, local, remote, strict=True):
            at_source = self.measurement.counted_at_sender or (sent and self.measurement.transport == "tcp")
            values = mine if endpoint.sends == at_source else theirs
            counters.append((values.seconds, values.bytes))
        return counters
