"""The listener: serves one client after the other, does what it asks within limits, survives any request.

As a program it serves one client in a second process of this machine, so that one command measures loopback.
"""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from lanewise.errors import CannotMeasure, InputError, LanewiseError
from lanewise.options.measure_network import NetworkSideOptions
from lanewise.probes.machine import native_errors
from lanewise.probes.network import messages
from lanewise.probes.network.endpoints import Endpoint, stop_endpoints, tcp_endpoint, verbs_endpoint
from lanewise.probes.network.messages import MessageStream, NetworkMeasurement

HELLO_S, DATA_S, IDLE_S = 2.0, 5.0, 90.0
_CLIENT_S, _EXIT_S = 20.0, 5.0
_SAME_VERSION = "use the same version of Lanewise on both sides"


def open_listener(address: str) -> socket.socket:
    """A listening socket at [ADDRESS][:PORT], loopback unless another address is named; CannotMeasure if it cannot."""
    host, port = messages.parse_address(address)
    try:
        family, kind, protocol, _, socket_address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError):
        raise CannotMeasure(f"{host} is no address of this machine", hint="ip addr lists them") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(socket_address)
        listener.listen(2 * 256 + 8)
    except OSError as error:
        listener.close()
        hint = "is another listener running? choose another: --listen ADDRESS:PORT" if error.errno == 98 else ""
        raise CannotMeasure(
            f"cannot listen on {host} port {port}: {error.strerror}", hint=hint or "choose another address or port"
        ) from None
    return listener


def serve(
    listener: socket.socket,
    side: NetworkSideOptions,
    *,
    once: bool = False,
    patience: float | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve clients until interrupted; with `once` a single one, waiting at most `patience` s (None: any time).

    `say` gets a line for each client that came, and for what a client did wrong.
    """
    listener.settimeout(patience)
    while True:
        try:
            connection, address = listener.accept()
        except TimeoutError:
            return
        stream = MessageStream(connection, f"client {address[0]}")
        client = _ClientSession(listener, stream, side)
        try:
            if _greet(stream):
                say(f"{stream.name} came")
                client.run()
                say(f"{stream.name} is done")
        except LanewiseError as error:
            say(str(error))
            _report(stream, error)
        finally:
            client.close()
            stream.close()
        if once and client.greeted:
            return


def _greet(stream: MessageStream) -> bool:
    message = stream.receive(HELLO_S)
    if "data" in message:
        return False  # a connection of a measurement that is over
    if message.get("lanewise") != messages.PROTOCOL:
        stream.send(messages.HELLO)  # lets the other side say what differs
    messages.check_hello(message, stream.name)
    stream.send(messages.HELLO)
    return True


def _report(stream: MessageStream, error: LanewiseError) -> None:
    if isinstance(error, messages.PeerLost):
        return
    try:
        stream.send({"error": error.cause, "hint": error.hint})
    except LanewiseError:
        return


@dataclass
class _ClientSession:
    """One client's requests; each is answered at once, so that neither side waits without end."""

    listener: socket.socket
    stream: MessageStream
    side: NetworkSideOptions
    greeted: bool = False
    measurement: NetworkMeasurement | None = None
    token: str = ""
    endpoints: list[Endpoint] = field(default_factory=list)

    def run(self) -> None:
        self.greeted = True
        handlers = {
            "open": self.open, "begin": self.begin, "ready": self.ready, "check": self.check, "go": self.go,
            "mark": self.counters, "stop": self.stop, "done": self.done, "close": self.finish,
        }  # fmt: skip
        while True:
            try:
                request = self.stream.receive(IDLE_S)
            except messages.PeerLost:
                return  # the client has its results
            handler = handlers.get(str(request.get("do")))
            if handler is None:
                raise InputError(f"no such request: {str(request.get('do'))[:40]}", hint=_SAME_VERSION)
            with native_errors():
                self.stream.send(handler(request))

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        self.close()
        self.measurement = measurement = _requested_measurement(request)
        if measurement.transport == "tcp":
            self.token = secrets.token_hex(8)
            return {"token": self.token}
        addresses = request.get("ends")
        if not isinstance(addresses, list) or len(addresses) != len(measurement.directions):
            raise InputError("verbs need an address for each direction", hint=_SAME_VERSION)
        for i, (name, address) in enumerate(zip(measurement.directions, addresses, strict=True)):
            endpoint = verbs_endpoint(measurement, i, name == "from", self.side)
            self.endpoints.append(endpoint)
            endpoint.connect(address)
        return {"ends": [endpoint.queue_pairs.address() for endpoint in self.endpoints]}

    def begin(self, request: dict[str, Any]) -> dict[str, Any]:
        measurement = self._open_measurement()
        if measurement.transport == "tcp":
            if self.endpoints:
                raise InputError("a measurement that runs cannot begin", hint=_SAME_VERSION)
            for i, (name, sockets) in enumerate(zip(measurement.directions, self._accept(measurement), strict=True)):
                self.endpoints.append(tcp_endpoint(measurement, sockets, i, name == "from", self.side))
        else:
            for endpoint in self.endpoints:
                endpoint.queue_pairs.begin()
        return {"about": [endpoint.describe() for endpoint in self.endpoints]}

    def ready(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"ready": all(endpoint.native.ready() for endpoint in self.endpoints)}

    def check(self, request: dict[str, Any]) -> dict[str, Any]:
        for endpoint in self.endpoints:
            endpoint.native.check()
        return {}

    def go(self, request: dict[str, Any]) -> dict[str, Any]:
        for endpoint in self.endpoints:
            endpoint.native.go()
        return {}

    def counters(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"marks": [endpoint.counters() for endpoint in self.endpoints]}

    def stop(self, request: dict[str, Any]) -> dict[str, Any]:
        """Stop those that drive; with `all` the others as well."""
        stop_endpoints(self.endpoints, everyone=bool(request.get("all")))
        return {}

    def done(self, request: dict[str, Any]) -> dict[str, Any]:
        self._open_measurement()
        stopped = [endpoint for endpoint in self.endpoints if request.get("all") or endpoint.drives]
        return {"done": all(endpoint.native.done() for endpoint in stopped), **self.counters(request)}

    def finish(self, request: dict[str, Any]) -> dict[str, Any]:
        self.close()
        return {}

    def close(self) -> None:
        """Free the endpoints of a measurement."""
        for endpoint in self.endpoints:
            endpoint.close()
        self.endpoints, self.measurement, self.token = [], None, ""

    def _open_measurement(self) -> NetworkMeasurement:
        if self.measurement is None:
            raise InputError("nothing is open", hint=_SAME_VERSION)
        return self.measurement

    def _accept(self, measurement: NetworkMeasurement) -> list[list[socket.socket]]:
        """The client's data connections by direction and index; other clients meanwhile are told to wait."""
        n, directions = measurement.connections, len(measurement.directions)
        total = directions * n
        connections: dict[int, socket.socket] = {}
        end = time.monotonic() + DATA_S
        try:
            while len(connections) < total:
                self.listener.settimeout(max(end - time.monotonic(), 0.001))
                connection, address = self.listener.accept()
                index = self._index(MessageStream(connection, f"client {address[0]}"), total, connections)
                if index is None:
                    connection.close()
                else:
                    connections[index] = connection
        except TimeoutError:
            for connection in connections.values():
                connection.close()
            raise CannotMeasure(
                f"only {len(connections)} of {total} data connections came",
                hint="they go to the same port: is there a firewall that limits their number?",
            ) from None
        finally:
            self.listener.settimeout(None)
        return [[connections[i * n + k] for k in range(n)] for i in range(directions)]

    def _index(self, stream: MessageStream, total: int, connections: dict[int, socket.socket]) -> int | None:
        try:
            message = stream.receive(1.0)
            index = message.get("index")
            valid = isinstance(index, int) and 0 <= index < total and index not in connections
            if message.get("data") == self.token and valid:
                return int(str(index))
            stream.send({"error": "this listener is serving another client", "hint": "try again when it is done"})
        except LanewiseError:
            return None
        return None


def _requested_measurement(request: dict[str, Any]) -> NetworkMeasurement:
    values = request.get("cell")
    names = {member.name for member in fields(NetworkMeasurement)}
    if not isinstance(values, dict) or not {"transport", "kind", "bytes", "connections"} <= set(values) <= names:
        raise InputError("the request names no measurement", hint=_SAME_VERSION)
    for name in ("events", "zero_copy"):
        if not isinstance(values.get(name, False), bool):
            raise InputError(f"{name} is true or false", hint=_SAME_VERSION)
    for name in ("transport", "kind", "direction", "operation"):
        if not isinstance(values.get(name, ""), str):
            raise InputError(f"{name} is a word", hint=_SAME_VERSION)
    return NetworkMeasurement(**values)


@contextmanager
def listener_process(side: NetworkSideOptions) -> Iterator[tuple[str, int]]:
    """The address of a listener in its own process, which ends with its only client."""
    with open_listener(f"{messages.LOOPBACK}:0") as listener:
        address = listener.getsockname()[:2]
        options = {member.name: getattr(side, member.name) for member in fields(NetworkSideOptions)}
        argument = json.dumps([listener.fileno(), options])
        process = subprocess.Popen(
            [sys.executable, "-m", "lanewise.probes.network.listener", argument],
            pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is for the client; this process ends with it
        )  # fmt: skip
    try:
        yield address
    finally:
        try:
            process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    """Serve one client on the listening socket that was handed over."""
    number, options = json.loads(sys.argv[1])
    with socket.socket(fileno=number) as listener:
        serve(listener, NetworkSideOptions(**options), once=True, patience=_CLIENT_S)


if __name__ == "__main__":
    main()
