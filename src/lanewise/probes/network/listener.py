"""The listener's side: answers the requests of one client after the other.

As a program it serves one client in a second process of this machine, so that one command measures loopback.
"""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields

from lanewise.control.handshake import new_secret
from lanewise.control.listener import open_listener, serve
from lanewise.control.reception import ProvenClient
from lanewise.control.service import LOOPBACK
from lanewise.control.session import ClientSession
from lanewise.control.stream import SAME_VERSION, Message, PeerLost
from lanewise.errors import CannotMeasure, InputError
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
from lanewise.probes.network.messages import NIXL, SERVICE, NetworkMeasurement, Request

IDLE_S = 90.0
_CLIENT_S, _EXIT_S = 20.0, 5.0
_FILES = ("secret_file", "tls_certificate", "tls_key", "tls_ca")  # of which a listener of this process's own has none


def serve_measurements(
    listener: socket.socket,
    side: NetworkSideOptions,
    secret: str,
    *,
    once: bool = False,
    patience: float | None = None,
    say: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
    tls: ssl.SSLContext | None = None,
) -> None:
    """Measure with clients that know the secret until interrupted, as `lanewise.control.listener.serve` does."""
    serve(
        listener, secret, SERVICE, lambda client: MeasurementSession(client, side),
        once=once, patience=patience, say=say, clock=clock, tls=tls,
    )  # fmt: skip


class MeasurementSession(ClientSession):
    """One client's requests; each is answered at once, so that neither side waits without end."""

    def __init__(self, client: ProvenClient, side: NetworkSideOptions) -> None:
        super().__init__(client)
        self._side = side
        self._measurement: NetworkMeasurement | None = None
        self._endpoints: list[Endpoint] = []

    def answer(self) -> None:
        """Answer requests until the client leaves or does something wrong."""
        handlers: dict[str, Callable[[Request], Message]] = {
            "open": self._open, "begin": self._begin, "ready": self._ready, "check": self._check, "go": self._go,
            "mark": self._marks, "stop": self._stop, "done": self._done, "close": self._finish,
        }  # fmt: skip
        while True:
            try:
                request = self.stream.receive(Request, IDLE_S)
            except PeerLost:
                return  # the client has its results
            with native_errors():
                answer = handlers[request.do](request)
            self.stream.send(answer)

    def _open(self, request: Request) -> messages.DataEnds:
        self.release()
        if request.cell is None:
            raise InputError("the request names no measurement", hint=SAME_VERSION)
        check_memory(request.cell)
        self._measurement = measurement = request.cell
        if measurement.transport == "tcp":
            total = measurement.connections * len(measurement.directions)
            return messages.DataEnds(nonce=self.expect_data(total))
        if measurement.transport == NIXL:
            self._endpoints.append(endpoint := nixl_endpoint(measurement, sends=False, side=self._side))
            metadata, memory = endpoint.agent.address()
            return messages.DataEnds(agent=messages.NixlAgent(metadata=metadata, memory=memory))
        if request.ends is None or len(request.ends) != len(measurement.directions):
            raise InputError("verbs need an address for each direction", hint=SAME_VERSION)
        for i, (name, address) in enumerate(zip(measurement.directions, request.ends, strict=True)):
            endpoint = verbs_endpoint(measurement, i, name == "from", self._side)
            self._endpoints.append(endpoint)
            endpoint.connect(address)
        return messages.DataEnds(ends=[endpoint.queue_pairs.address() for endpoint in self._endpoints])

    def _begin(self, request: Request) -> messages.EndpointFacts:
        measurement = self._open_measurement()
        if measurement.transport == "tcp":
            if self._endpoints:
                raise InputError("a measurement that runs cannot begin", hint=SAME_VERSION)
            for i, (name, sockets) in enumerate(zip(measurement.directions, self._data(measurement), strict=True)):
                self._endpoints.append(tcp_endpoint(measurement, sockets, i, name == "from", self._side))
        else:
            for endpoint in self._endpoints:
                endpoint.begin()
        return messages.EndpointFacts(about=[endpoint.describe() for endpoint in self._endpoints])

    def _ready(self, request: Request) -> messages.Readiness:
        return messages.Readiness(reached=all(endpoint.native.ready() for endpoint in self._endpoints))

    def _check(self, request: Request) -> messages.Acknowledgement:
        for endpoint in self._endpoints:
            endpoint.native.check()
        return messages.Acknowledgement()

    def _go(self, request: Request) -> messages.Acknowledgement:
        for endpoint in self._endpoints:
            endpoint.native.go()
        return messages.Acknowledgement()

    def _marks(self, request: Request) -> messages.Marks:
        return messages.Marks(marks=[endpoint.counters() for endpoint in self._endpoints])

    def _stop(self, request: Request) -> messages.Acknowledgement:
        """Stop those that drive; with `all` the others as well."""
        stop_endpoints(self._endpoints, everyone=request.all)
        return messages.Acknowledgement()

    def _done(self, request: Request) -> messages.Readiness:
        self._open_measurement()
        stopped = [endpoint for endpoint in self._endpoints if request.all or endpoint.drives]
        return messages.Readiness(reached=all(endpoint.native.done() for endpoint in stopped))

    def _finish(self, request: Request) -> messages.Acknowledgement:
        self.release()
        return messages.Acknowledgement()

    def release(self) -> None:
        """Free what a measurement holds."""
        for endpoint in self._endpoints:
            endpoint.close()
        self._endpoints, self._measurement = [], None
        self.close_data()  # those that no endpoint holds

    def _open_measurement(self) -> NetworkMeasurement:
        if self._measurement is None:
            raise InputError("nothing is open", hint=SAME_VERSION)
        return self._measurement

    def _data(self, measurement: NetworkMeasurement) -> list[list[socket.socket]]:
        """The client's data connections by direction and index, once all have come."""
        sockets, n = self.data(), measurement.connections
        return [sockets[i : i + n] for i in range(0, len(sockets), n)]


@contextmanager
def listener_process(side: NetworkSideOptions) -> Iterator[tuple[tuple[str, int], str]]:
    """The address of a listener in its own process, and its secret; the process ends with its only client."""
    secret = new_secret()
    with open_listener(f"{LOOPBACK}:0", SERVICE) as listener:
        address = listener.getsockname()[:2]
        options = {member.name: getattr(side, member.name) for member in fields(NetworkSideOptions)}
        task = json.dumps([listener.fileno(), {**options, **dict.fromkeys(_FILES)}, secret])
        try:
            # -P: no module of the current folder runs. The secret goes through a pipe, where nobody else can read it.
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "lanewise.probes.network.listener"],
                pass_fds=[listener.fileno()], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                start_new_session=True,  # a Ctrl-C is for the client; this process ends with it
            )  # fmt: skip
        except OSError as error:
            hint = "ulimit -n and ulimit -u limit open files and processes"
            raise CannotMeasure(f"cannot start a second process: {error.strerror}", hint=hint) from None
    try:
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:  # it has ended: nothing will answer at its address
            process.stdin.write(task)
        yield address, secret
    finally:
        try:
            process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    """Serve one client on the listening socket that was handed over; the task is the first line of stdin."""
    number, options, secret = json.loads(sys.stdin.readline())
    with socket.socket(fileno=number) as listener:
        serve_measurements(listener, NetworkSideOptions(**options), secret, once=True, patience=_CLIENT_S)


if __name__ == "__main__":
    main()
