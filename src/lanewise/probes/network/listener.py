"""The listener: one session with a proven client at a time, while strangers are kept at the reception.

As a program it serves one client in a second process of this machine, so that one command measures loopback.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from types import TracebackType

from lanewise.errors import CannotMeasure, InputError, LanewiseError
from lanewise.options.measure_network import NetworkSideOptions
from lanewise.probes.machine import native_errors
from lanewise.probes.network import messages
from lanewise.probes.network.endpoints import Endpoint, check_memory, stop_endpoints, tcp_endpoint, verbs_endpoint
from lanewise.probes.network.handshake import new_nonce, new_secret, same
from lanewise.probes.network.messages import SAME_VERSION, MessageStream, NetworkMeasurement, Request
from lanewise.probes.network.reception import MOST_STRANGERS, DataConnection, ProvenClient, Reception

DATA_S, IDLE_S = 5.0, 90.0
WAITING_S = 5.0  # of a client, for the end of a session whose client has left; less than it waits for an answer
_CLIENT_S, _EXIT_S = 20.0, 5.0
_BACKLOG = 2 * messages.MOST_CONNECTIONS + MOST_STRANGERS


def open_listener(address: str) -> socket.socket:
    """A listening socket at [ADDRESS][:PORT], loopback unless another address is named; CannotMeasure if it cannot."""
    host, port = messages.parse_address(address)
    try:
        family, kind, protocol, _, socket_address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (socket.gaierror, UnicodeError):
        raise CannotMeasure(f"{host} is no address of this machine", hint="ip addr lists them") from None
    except OSError as error:
        hint = "ulimit -n raises the number of open files"
        raise CannotMeasure(f"cannot listen: {error.strerror}", hint=hint) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(socket_address)
        listener.listen(_BACKLOG)
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
    secret: str,
    *,
    once: bool = False,
    patience: float | None = None,
    say: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Serve clients that know the secret until interrupted; with `once` a single one.

    It waits at most `patience` s for a client (None: any time). `say` gets a line for each client that came, and for
    what a client did wrong.
    """
    reception = Reception(listener, secret, say=say, clock=clock)
    with reception, _Sessions(side, reception, say, clock) as sessions:
        end = None if patience is None else clock() + patience
        while not (once and sessions.served):
            for arrival in reception.poll(sessions.patience(end)):
                sessions.add(arrival)
            sessions.step()
            if sessions.current is None and end is not None and clock() >= end:
                return


class _Sessions:
    """The session that runs, if any, and the client that waits for its end."""

    def __init__(
        self,
        side: NetworkSideOptions,
        reception: Reception,
        say: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self.current: _ClientSession | None = None
        self.served = 0
        self._side, self._reception, self._say, self._clock = side, reception, say, clock
        self._waiting: ProvenClient | None = None
        self._waits_until = 0.0

    def __enter__(self) -> _Sessions:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._waiting is not None:
            self._refuse(self._waiting)
        if self.current is not None:
            self.current.abandon()
            self.current.thread.join(_EXIT_S)

    def patience(self, end: float | None) -> float | None:
        """How long nothing needs to be done here, in s; `end` is when waiting for a client ends."""
        if self._waiting is not None:
            return max(0.0, self._waits_until - self._clock())
        if end is None or self.current is not None:
            return None
        return max(0.0, end - self._clock())

    def add(self, arrival: ProvenClient | DataConnection) -> None:
        """A client gets a session, or waits for the end of one whose client has left, or hears that it is busy."""
        if isinstance(arrival, DataConnection):
            if self.current is None or not self.current.add_connection(arrival):
                arrival.connection.close()
        elif self.current is None:
            self._begin(arrival)
        elif self._waiting is None and self.current.client_has_left():
            self._waiting, self._waits_until = arrival, self._clock() + WAITING_S
        else:
            self._refuse(arrival)

    def step(self) -> None:
        """Put an ended session away; the client that waits gets the next one, or hears that it takes too long."""
        if self.current is not None and self.current.ended:
            self.current.thread.join()
            self.current = None
            self.served += 1
        if self._waiting is None:
            return
        if self.current is None:
            waiting, self._waiting = self._waiting, None
            self._begin(waiting)
        elif self._clock() >= self._waits_until:
            waiting, self._waiting = self._waiting, None
            self._refuse(waiting)

    def _begin(self, client: ProvenClient) -> None:
        session = _ClientSession(client, self._side, self._say, self._reception.wake)
        try:
            session.thread.start()
        except RuntimeError:  # no more threads
            return self._refuse(client, "this machine has no thread for a session")
        self.current = session
        return None

    def _refuse(self, client: ProvenClient, cause: str = "this listener is serving another client") -> None:
        with suppress(OSError):
            messages.send_now(client.connection, messages.Refusal(error=cause, hint="try again when it is done"))
        client.connection.close()


class _ClientSession:
    """One client's requests, in a thread; each is answered at once, so that neither side waits without end."""

    def __init__(
        self, client: ProvenClient, side: NetworkSideOptions, say: Callable[[str], None], wake: Callable[[], None]
    ) -> None:
        self.thread = threading.Thread(target=self.run, name="session", daemon=True)
        self.ended = False
        self._stream = MessageStream(client.connection, client.name)
        self._handshake, self._side, self._say, self._wake = client.handshake, side, say, wake
        self._measurement: NetworkMeasurement | None = None
        self._endpoints: list[Endpoint] = []
        self._abandoned = False
        self._change = threading.Condition()  # of the fields below, which the reception's thread writes
        self._tokens: list[str] = []
        self._connections: dict[int, socket.socket] = {}

    def run(self) -> None:
        """Answer requests until the client leaves or does something wrong."""
        try:
            self._say(f"{self._stream.name} came")
            self._stream.send(messages.Proof(proof=self._handshake.listener_proof))
            self._answer_requests()
            self._say(f"{self._stream.name} is done")
        except LanewiseError as error:
            self._say(str(error))
            if not isinstance(error, messages.PeerLost):
                with suppress(LanewiseError):
                    self._stream.send(messages.Refusal(error=error.cause, hint=error.hint))
        finally:
            self._close()
            self._stream.close()
            self.ended = True
            self._wake()

    def client_has_left(self) -> bool:
        """Whether the client has ended its side of the control connection; asked from another thread."""
        poll = select.poll()
        try:
            poll.register(self._stream.connection, select.POLLRDHUP)
        except (OSError, ValueError):
            return True  # closed here already
        return bool(poll.poll(0))

    def add_connection(self, arrival: DataConnection) -> bool:
        """Take a data connection from another thread if it belongs to the measurement that is open."""
        index = arrival.hello.index
        with self._change:
            expected = index < len(self._tokens) and index not in self._connections
            if not expected or not same(self._tokens[index], arrival.hello.data):
                return False
            self._connections[index] = arrival.connection
            self._change.notify()
        return True

    def abandon(self) -> None:
        """End from another thread, soon."""
        with self._change:
            self._abandoned = True
            self._change.notify()
        with suppress(OSError):
            self._stream.connection.shutdown(socket.SHUT_RDWR)

    def _answer_requests(self) -> None:
        handlers: dict[str, Callable[[Request], messages.Message]] = {
            "open": self._open, "begin": self._begin, "ready": self._ready, "check": self._check, "go": self._go,
            "mark": self._marks, "stop": self._stop, "done": self._done, "close": self._finish,
        }  # fmt: skip
        while True:
            try:
                request = self._stream.receive(Request, IDLE_S)
            except messages.PeerLost:
                return  # the client has its results
            with native_errors():
                answer = handlers[request.do](request)
            self._stream.send(answer)

    def _open(self, request: Request) -> messages.DataEnds:
        self._close()
        if request.cell is None:
            raise InputError("the request names no measurement", hint=SAME_VERSION)
        check_memory(request.cell)
        self._measurement = measurement = request.cell
        if measurement.transport == "tcp":
            nonce = new_nonce()
            total = measurement.connections * len(measurement.directions)
            with self._change:
                self._tokens = [self._handshake.data_token(nonce, index) for index in range(total)]
            return messages.DataEnds(nonce=nonce)
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
                endpoint.queue_pairs.begin()
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
        self._close()
        return messages.Acknowledgement()

    def _close(self) -> None:
        """Free what a measurement holds."""
        for endpoint in self._endpoints:
            endpoint.close()
        self._endpoints, self._measurement = [], None
        with self._change:
            for connection in self._connections.values():
                connection.close()  # those that no endpoint holds
            self._tokens, self._connections = [], {}

    def _open_measurement(self) -> NetworkMeasurement:
        if self._measurement is None:
            raise InputError("nothing is open", hint=SAME_VERSION)
        return self._measurement

    def _data(self, measurement: NetworkMeasurement) -> list[list[socket.socket]]:
        """The client's data connections by direction and index, once all have come."""
        n, total = measurement.connections, len(self._tokens)
        with self._change:
            complete = self._change.wait_for(lambda: self._abandoned or len(self._connections) == total, DATA_S)
            if not complete or self._abandoned:
                raise CannotMeasure(
                    f"only {len(self._connections)} of {total} data connections came",
                    hint="they go to the same port: does a firewall limit their number, or ulimit -n?",
                )
            return [[self._connections[i + k] for k in range(n)] for i in range(0, total, n)]


@contextmanager
def listener_process(side: NetworkSideOptions) -> Iterator[tuple[tuple[str, int], str]]:
    """The address of a listener in its own process, and its secret; the process ends with its only client."""
    secret = new_secret()
    with open_listener(f"{messages.LOOPBACK}:0") as listener:
        address = listener.getsockname()[:2]
        options = {member.name: getattr(side, member.name) for member in fields(NetworkSideOptions)}
        task = json.dumps([listener.fileno(), {**options, "secret_file": None}, secret])
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
        serve(listener, NetworkSideOptions(**options), secret, once=True, patience=_CLIENT_S)


if __name__ == "__main__":
    main()
