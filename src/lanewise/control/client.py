"""The client's side of a control channel: connects to a listener, greets it, opens data connections."""

from __future__ import annotations

import errno
import socket
import ssl
import time
from dataclasses import dataclass
from types import TracebackType

from lanewise.control.handshake import SECRET_HINT, Handshake, new_nonce, same
from lanewise.control.service import ControlService
from lanewise.control.stream import (
    ANSWER_S,
    LONGEST_GREETING,
    DataHello,
    Hello,
    MessageStream,
    PeerCrowded,
    PeerLost,
    PeerReset,
    Proof,
    parse_hello,
)
from lanewise.control.tls import secured
from lanewise.errors import CannotMeasure, InputError

CONNECT_S = 5.0
_ATTEMPTS = 20  # at a listener that is crowded by strangers


@dataclass(frozen=True, slots=True)
class ControlConnection:
    """A connection to a listener that knows the secret; as a context it closes itself."""

    address: tuple[str, int]
    service: ControlService
    stream: MessageStream
    handshake: Handshake

    def __enter__(self) -> ControlConnection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the control connection; data connections are closed by those who hold them."""
        self.stream.close()

    def open_data(self, nonce: str, count: int, patience: float) -> list[socket.socket]:
        """As many data connections with the tokens of `nonce`, which the listener's session made, in `patience` s.

        CannotMeasure where one cannot be opened; then none is left open.
        """
        sockets: list[socket.socket] = []
        end = time.monotonic() + patience
        try:
            for index in range(count):
                limit = max(0.001, min(CONNECT_S, end - time.monotonic()))
                sockets.append(_connect(self.address, self.service, limit))
                hello = DataHello(data=self.handshake.data_token(nonce, index), index=index)
                MessageStream(sockets[-1], self.stream.name).send(hello)
        except BaseException:
            for connection in sockets:
                connection.close()
            raise
        return sockets


def connect(
    address: tuple[str, int], secret: str, service: ControlService, tls: ssl.SSLContext | None = None
) -> ControlConnection:
    """A connection to the listener at HOST, PORT, after each side has proven that it knows the `secret`.

    With `tls` it has a certificate that this trusts. CannotMeasure where nothing listens, something else does, or it
    offers another service, has another secret, serves another client or has no such certificate; InputError without a
    secret.
    """
    stream, handshake = _greet_crowded(address, secret, service, tls)
    return ControlConnection(address, service, stream, handshake)


def _greet_crowded(
    address: tuple[str, int], secret: str, service: ControlService, tls: ssl.SSLContext | None
) -> tuple[MessageStream, Handshake]:
    """Greet a listener; again at once where strangers crowd it. The first failure is the one that counts."""
    failure: CannotMeasure | None = None
    name = f"{address[0]} port {address[1]}"
    for attempt in range(_ATTEMPTS):
        connection = _connect(address, service)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = connection if tls is None else secured(connection, tls, address[0], name)
            stream = MessageStream(connection, name)
            return stream, _greet(stream, secret, service)
        except (PeerCrowded, PeerReset) as error:
            failure = failure or error
            connection.close()
        except BaseException as error:
            connection.close()
            if failure is not None and isinstance(error, CannotMeasure):
                break
            raise
        time.sleep(0.005 * attempt)
    assert failure is not None
    raise failure


def _greet(stream: MessageStream, secret: str, service: ControlService) -> Handshake:
    nonce = new_nonce()
    try:
        stream.send(Hello(nonce=nonce, service=service.name))
        line = stream.line(ANSWER_S, LONGEST_GREETING)
    except PeerReset:
        raise
    except PeerLost:
        cause = f"{stream.name} closed the connection at once: it is no lanewise"
        raise CannotMeasure(cause, hint=service.listen_hint) from None
    hello = parse_hello(line, stream.name, service)
    if not secret:
        raise InputError(f"{stream.name} asks for its secret", hint=f"{SECRET_HINT}; a listener shows it at its start")
    handshake = Handshake(secret, service.name, nonce, hello.nonce)
    stream.send(Proof(proof=handshake.client_proof))
    if not same(stream.receive(Proof, longest=LONGEST_GREETING).proof, handshake.listener_proof):
        raise CannotMeasure(f"{stream.name} does not know the secret: do not trust it", hint=SECRET_HINT)
    return handshake


def _connect(address: tuple[str, int], service: ControlService, patience: float = CONNECT_S) -> socket.socket:
    host, port = address
    try:
        return socket.create_connection(address, timeout=patience)
    except (socket.gaierror, UnicodeError):
        raise CannotMeasure(f"there is no host {host}", hint="check the name, or give its address") from None
    except TimeoutError:
        hint = "check the address, and that no firewall drops it"
        raise CannotMeasure(f"{host} port {port} does not answer in {patience:g} s", hint=hint) from None
    except ConnectionRefusedError:
        raise CannotMeasure(
            f"nothing listens at {host} port {port}",
            hint=f"start it there: {service.listen_command} {host}:{port}",
        ) from None
    except OSError as error:
        hint = "check the address and the route: ip route get"
        if error.errno in (errno.EMFILE, errno.ENFILE):
            hint = "ulimit -n raises the number of open files"
        raise CannotMeasure(f"{host} port {port} cannot be reached: {error.strerror}", hint=hint) from None
