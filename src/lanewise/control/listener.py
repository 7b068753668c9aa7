"""The listener: one session with a proven client at a time, while strangers are kept at the reception."""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from lanewise.control.reception import MOST_STRANGERS, DataConnection, ProvenClient, Reception
from lanewise.control.service import ControlService, parse_address
from lanewise.control.session import ClientSession
from lanewise.control.stream import MOST_DATA_CONNECTIONS, Refusal, send_now
from lanewise.errors import CannotMeasure

WAITING_S = 5.0  # of a client, for the end of a session whose client has left; less than it waits for an answer
_EXIT_S = 5.0
_BACKLOG = MOST_DATA_CONNECTIONS + MOST_STRANGERS


def open_listener(address: str, service: ControlService) -> socket.socket:
    """A listening socket at [ADDRESS][:PORT], loopback unless another address is named; CannotMeasure if it cannot."""
    host, port = parse_address(address, service.port)
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
        hint = "choose another address or port"
        if error.errno == errno.EADDRINUSE:
            hint = f"is another listener running? choose another port: {service.listen_command} ADDRESS:PORT"
        raise CannotMeasure(f"cannot listen on {host} port {port}: {error.strerror}", hint=hint) from None
    return listener


def serve(
    listener: socket.socket,
    secret: str,
    service: ControlService,
    session: Callable[[ProvenClient], ClientSession],
    *,
    once: bool = False,
    patience: float | None = None,
    say: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
    tls: ssl.SSLContext | None = None,
) -> None:
    """Serve clients that know the secret until interrupted; with `once` a single one. With `tls` they must speak TLS.

    `session` makes a client's session. One runs at a time, and other clients hear that the listener is busy. It waits
    at most `patience` s for a client (None: any time). `say` gets a line for each client that came, and for what a
    client did wrong.
    """
    reception = Reception(listener, secret, service, say=say, clock=clock, tls=tls)
    with reception, _Sessions(session, reception, say, clock) as sessions:
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
        session: Callable[[ProvenClient], ClientSession],
        reception: Reception,
        say: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self.current: ClientSession | None = None
        self.served = 0
        self._session, self._reception, self._say, self._clock = session, reception, say, clock
        self._waiting: ProvenClient | None = None
        self._waits_until = 0.0

    def __enter__(self) -> _Sessions:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._waiting is not None:
            self._refuse(self._waiting)
        if self.current is not None:
            self.current.abandon()
            self.current.join(_EXIT_S)

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
            self.current.join()
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
        session = self._session(client)
        try:
            session.start(self._say, self._reception.wake)
        except RuntimeError:  # no more threads
            return self._refuse(client, "this machine has no thread for a session")
        self.current = session
        return None

    def _refuse(self, client: ProvenClient, cause: str = "this listener is serving another client") -> None:
        self._say(f"{client.name} was refused: {cause}")
        with suppress(OSError):
            send_now(client.connection, Refusal(error=cause, hint="try again when it is done"))
        client.connection.close()
