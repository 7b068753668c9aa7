"""The client's side: opens a measurement with the listener, starts both sides, reads byte counters, stops both."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from lanewise.errors import CannotMeasure
from lanewise.options.measure_network import NetworkSideOptions
from lanewise.probes.machine import native_errors
from lanewise.probes.network import messages
from lanewise.probes.network.endpoints import Endpoint, stop_endpoints, tcp_endpoint, verbs_endpoint
from lanewise.probes.network.messages import MessageStream, NetworkMeasurement

CONNECT_S, READY_S, DONE_S, CLOSE_S = 5.0, 20.0, 10.0, 2.0
STEP_S = 0.1  # a Ctrl-C, and a listener that has left, are noticed this often
_SAME_VERSION = "use the same version on both sides"
Counters = tuple[float, list[int]]  # seconds of the counting machine's clock, bytes of each connection


@dataclass
class NetworkSession:
    """A listener that has answered: its address, the control connection to it, and the settings of this side."""

    address: tuple[str, int]
    stream: MessageStream
    side: NetworkSideOptions


@contextmanager
def connect_session(address: tuple[str, int], side: NetworkSideOptions) -> Iterator[NetworkSession]:
    """A control connection to the listener at HOST, PORT; CannotMeasure where there is none or none of this kind."""
    stream = MessageStream(_connect(address), f"{address[0]} port {address[1]}")
    try:
        stream.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            stream.send(messages.HELLO)
            answer = stream.receive()
        except messages.PeerLost:
            raise CannotMeasure(
                f"{stream.name} closed the connection at once: it is no lanewise",
                hint="start `lanewise measure network --listen` there, or name its port",
            ) from None
        if "error" in answer and "lanewise" not in answer:
            raise CannotMeasure(f"{stream.name} says: {str(answer['error'])[:300]}", hint=str(answer.get("hint", "")))
        messages.check_hello(answer, stream.name)
        yield NetworkSession(address, stream, side)
    finally:
        stream.close()


def _connect(address: tuple[str, int]) -> socket.socket:
    host, port = address
    try:
        return socket.create_connection(address, timeout=CONNECT_S)
    except (socket.gaierror, UnicodeError):
        raise CannotMeasure(f"there is no host {host}", hint="check the name, or give its address") from None
    except TimeoutError:
        hint = "check the address, and that no firewall drops it"
        raise CannotMeasure(f"{host} port {port} does not answer in {CONNECT_S:g} s", hint=hint) from None
    except ConnectionRefusedError:
        raise CannotMeasure(
            f"nothing listens at {host} port {port}",
            hint=f"start it there: lanewise measure network --listen {host}:{port}",
        ) from None
    except OSError as error:
        hint = "check the address and the route: ip route get"
        raise CannotMeasure(f"{host} port {port} cannot be reached: {error.strerror}", hint=hint) from None


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
        request = {"do": "open", "cell": asdict(self.measurement)}
        if self.measurement.transport == "tcp":
            self._connect_sockets(str(self._request(request).get("token", "")))
        else:
            self._connect_queue_pairs(request)
        self._wait_until(READY_S, "the first data", lambda: self._both("ready"))
        for endpoint in self.endpoints:
            with native_errors():
                endpoint.native.check()
        self._request({"do": "check"})
        self._request({"do": "go"})
        for endpoint in self.endpoints:
            endpoint.native.go()

    def counters(self) -> list[Counters]:
        """Per direction, the bytes of each connection on the side that counts them, and the time on its clock."""
        with native_errors():
            local = [endpoint.counters() for endpoint in self.endpoints]
        return self._counters(local, self._request({"do": "mark"}))

    def wait(self, seconds: float) -> None:
        """Let a window pass; CannotMeasure if the other side leaves meanwhile, or this side's data stops."""
        end = time.monotonic() + seconds
        while (remaining := end - time.monotonic()) > 0:
            if self.session.stream.closed():
                raise messages.PeerLost(f"{self.session.stream.name} has left", hint=messages.PEER_LOST_HINT)
            with native_errors():
                for endpoint in self.endpoints:
                    endpoint.native.ready()
            time.sleep(min(remaining, STEP_S))

    def stop(self) -> tuple[list[Counters], list[Counters]]:
        """Stop and drain the endpoints that drive, then the others; the bytes that each direction sent and received.

        Of verbs only the side that counts knows the bytes; the two are the same then.
        """
        self._request({"do": "stop"})
        stop_endpoints(self.endpoints, everyone=False)
        self._wait_until(DONE_S, "the end of what is under way", lambda: self._both("done", all=False))
        if self.measurement.transport == "verbs":
            self._request({"do": "stop", "all": True})
            stop_endpoints(self.endpoints, everyone=True)
        self._wait_until(DONE_S, "the end of the other side", lambda: self._both("done", all=True))
        if self.measurement.transport == "tcp" and self.measurement.kind == "latency":
            return [], []
        local, answer = [endpoint.counters() for endpoint in self.endpoints], self._request({"do": "mark"})
        return self._counters(local, answer, sent=True), self._counters(local, answer)

    def close(self) -> None:
        """Free both sides; a listener that has left has nothing to free."""
        for endpoint in self.endpoints:
            endpoint.close()
        self.endpoints = []
        try:
            self._request({"do": "close"}, CLOSE_S)
        except CannotMeasure:
            return

    def _connect_sockets(self, token: str) -> None:
        sockets: list[socket.socket] = []
        n, directions = self.measurement.connections, self.measurement.directions
        try:
            for index in range(n * len(directions)):
                connection = _connect(self.session.address)
                sockets.append(connection)
                MessageStream(connection, self.session.stream.name).send({"data": token, "index": index})
            answer = self._request({"do": "begin"})
        except BaseException:
            for connection in sockets:
                connection.close()
            raise
        for i, name in enumerate(directions):
            part = sockets[i * n : (i + 1) * n]
            self.endpoints.append(tcp_endpoint(self.measurement, part, i, name == "to", self.session.side))
        self._add_facts(answer)

    def _connect_queue_pairs(self, request: dict[str, Any]) -> None:
        for i, name in enumerate(self.measurement.directions):
            self.endpoints.append(verbs_endpoint(self.measurement, i, name == "to", self.session.side))
        answer = self._request({**request, "ends": [endpoint.queue_pairs.address() for endpoint in self.endpoints]})
        addresses = answer.get("ends")
        if not isinstance(addresses, list) or len(addresses) != len(self.endpoints):
            raise CannotMeasure(f"{self.session.stream.name} gives no queue pairs", hint=_SAME_VERSION)
        for endpoint, address in zip(self.endpoints, addresses, strict=True):
            endpoint.connect(address)
        self._add_facts(self._request({"do": "begin"}))
        for endpoint in self.endpoints:
            endpoint.queue_pairs.begin()

    def _add_facts(self, answer: dict[str, Any]) -> None:
        about = answer.get("about")
        remote = about if isinstance(about, list) and about else [{}] * len(self.endpoints)
        for endpoint, facts in zip(self.endpoints, remote, strict=False):
            other_side = {f"{key} there": str(value)[:100] for key, value in dict(facts).items()}
            self.facts.append({**endpoint.describe(), **other_side})

    def _both(self, stage: str, **more: Any) -> bool:
        """Whether both sides have reached `stage`: ready or done."""
        endpoints = [endpoint for endpoint in self.endpoints if stage != "done" or more["all"] or endpoint.drives]
        with native_errors():
            local = all(end.native.ready() if stage == "ready" else end.native.done() for end in endpoints)
        return bool(self._request({"do": stage, **more}).get(stage)) and local

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

    def _counters(self, local: list[dict[str, Any]], answer: dict[str, Any], sent: bool = False) -> list[Counters]:
        remote = answer.get("marks")
        if not isinstance(remote, list) or len(remote) != len(local):
            raise CannotMeasure(f"{self.session.stream.name} sends no byte counters", hint=_SAME_VERSION)
        counters: list[Counters] = []
        for endpoint, mine, theirs in zip(self.endpoints, local, remote, strict=True):
            at_source = self.measurement.counted_at_sender or (sent and self.measurement.transport == "tcp")
            values = mine if endpoint.sends == at_source else theirs
            try:
                counters.append((float(values["seconds"]), [int(count) for count in values["bytes"]]))
            except (KeyError, TypeError, ValueError):
                cause = f"{self.session.stream.name} sends unreadable byte counters"
                raise CannotMeasure(cause, hint=_SAME_VERSION) from None
        return counters
