"""Who comes to a listener: greets any number of connections at once, and lets through those that prove themselves.

One selector loop holds every connection that has proven nothing yet. Each has a deadline from its first moment, a short
line, and a place among a bounded number: where all are occupied, the oldest is closed for the newest, so that a friend
gets in whatever the others do. Nothing else is kept for a stranger.
"""

from __future__ import annotations

import contextlib
import errno
import resource
import selectors
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from lanewise.control.handshake import SECRET_HINT, Handshake, new_nonce, same
from lanewise.control.service import ControlService
from lanewise.control.stream import (
    LONGEST_GREETING,
    SAME_VERSION,
    DataHello,
    Hello,
    Proof,
    Refusal,
    line_part,
    parse,
    parse_hello,
    send_now,
)
from lanewise.control.tls import LISTENER_HINT, RECORD, TlsSocket
from lanewise.errors import CannotMeasure, LanewiseError

GREETING_S = 5.0  # from the first moment of a connection until it has proven itself
MOST_STRANGERS = 256
_ACCEPT_PAUSE_S = 0.1  # after an accept that failed for want of descriptors or memory
_ACCEPTS_PER_ROUND = 16  # so that those who came are read while others come


@dataclass(frozen=True, slots=True)
class ProvenClient:
    """A control connection whose side knows the secret; it waits for the listener's proof, or a refusal."""

    connection: socket.socket
    name: str
    handshake: Handshake


@dataclass(frozen=True, slots=True)
class DataConnection:
    """A connection that says it belongs to a session; only the session can tell."""

    connection: socket.socket
    hello: DataHello


@dataclass(eq=False, slots=True)
class _Stranger:
    number: int  # the descriptor of its connection, which stays the same with TLS
    connection: socket.socket
    name: str
    deadline: float
    spoke: bool = False
    greets_tls: bool = False
    line: bytearray = field(default_factory=bytearray)
    handshake: Handshake | None = None

    @property
    def has_tls(self) -> bool:
        return isinstance(self.connection, TlsSocket)


class Reception:
    """The connections of a listening socket that have proven nothing yet; `poll` lets through those that have.

    `say` gets a line for refused connections, the 1st, 2nd, 4th, 8th... of them, so that a flood does not fill a log.
    """

    def __init__(
        self,
        listener: socket.socket,
        secret: str,
        service: ControlService,
        *,
        say: Callable[[str], None] = lambda _: None,
        most: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._listener, self._secret, self._service, self._tls = listener, secret, service, tls
        self._say, self._clock = say, clock
        self._most = most or _places()
        self._strangers: dict[int, _Stranger] = {}  # the oldest first
        self._notes: Counter[str] = Counter()
        self._accepts_again: float | None = None  # while accepting pauses
        listener.setblocking(False)
        try:
            self._selector = selectors.DefaultSelector()
            self._waker, self._wakeable = socket.socketpair()
        except OSError as error:
            raise CannotMeasure(f"this machine cannot listen: {error.strerror}", hint="ulimit -n raises it") from None
        self._wakeable.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._wakeable, selectors.EVENT_READ)
        self._selector.register(listener, selectors.EVENT_READ)

    def __enter__(self) -> Reception:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for stranger in list(self._strangers.values()):
            self._drop(stranger)
        self._selector.close()
        self._waker.close()
        self._wakeable.close()

    @property
    def strangers(self) -> int:
        """How many connections have proven nothing yet."""
        return len(self._strangers)

    def wake(self) -> None:
        """End a `poll` that waits, from another thread."""
        with contextlib.suppress(OSError):  # full: it wakes anyway; closed: nobody waits
            self._waker.send(b"\0")

    def poll(self, patience: float | None = None) -> list[ProvenClient | DataConnection]:
        """Those that have come through, after at most `patience` s (None: any time), maybe none."""
        through: list[ProvenClient | DataConnection] = []
        ready = {key.fd for key, _ in self._selector.select(self._timeout(patience))}
        if self._wakeable.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                self._wakeable.recv(4096)
        for stranger in [self._strangers[each] for each in ready if each in self._strangers]:
            arrival = self._read(stranger)
            if arrival is not None:
                through.append(arrival)
        self._expire()
        if self._listener.fileno() in ready:
            self._accept()
        return through

    def _timeout(self, patience: float | None) -> float | None:
        oldest = next(iter(self._strangers.values()), None)
        deadlines = [] if oldest is None else [oldest.deadline]
        if self._accepts_again is not None:
            deadlines.append(self._accepts_again)
        waits = [max(0.0, end - self._clock()) for end in deadlines]
        return min([*waits, *([] if patience is None else [patience])], default=None)

    def _expire(self) -> None:
        now = self._clock()
        for stranger in list(self._strangers.values()):
            if stranger.deadline > now:
                break
            self._refuse(stranger, "no proof came in time", SECRET_HINT)
        if self._accepts_again is not None and now >= self._accepts_again:
            self._accepts_again = None
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_PER_ROUND):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            if len(self._strangers) >= self._most:
                self._refuse_oldest()
            connection.setblocking(False)
            try:
                self._selector.register(connection, selectors.EVENT_READ)
            except OSError as error:  # ENOSPC: too many watched already
                connection.close()
                self._pause(error)
                return
            number = connection.fileno()
            self._strangers[number] = _Stranger(number, connection, f"client {address[0]}", self._clock() + GREETING_S)

    def _pause(self, error: OSError) -> None:
        """Accept no more for a moment: there is no descriptor or memory for another connection."""
        if error.errno in (errno.EBADF, errno.EINVAL, errno.ENOTSOCK):
            raise error
        self._note("connections wait", f"{error.strerror} (ulimit -n raises the number of open files)")
        self._refuse_oldest()
        self._selector.unregister(self._listener)
        self._accepts_again = self._clock() + _ACCEPT_PAUSE_S

    def _read(self, stranger: _Stranger) -> ProvenClient | DataConnection | None:
        """Take what a stranger says; what comes through if that proves it."""
        try:
            self._begin(stranger)
            piece = line_part(stranger.connection, LONGEST_GREETING - len(stranger.line))
        except BlockingIOError:
            return None
        except OSError:
            piece = b""
        except LanewiseError as error:
            self._refuse(stranger, error.cause, error.hint)
            return None
        stranger.line += piece
        if piece and not stranger.line.endswith(b"\n") and len(stranger.line) < LONGEST_GREETING:
            return None
        line = bytes(stranger.line)
        stranger.line.clear()
        try:
            if line:
                return self._answer(stranger, line)
            self._drop(stranger)
        except LanewiseError as error:
            self._refuse(stranger, error.cause, error.hint)
        except OSError:
            self._drop(stranger)
        return None

    def _begin(self, stranger: _Stranger) -> None:
        """The next step of a TLS handshake where the stranger begins with one; BlockingIOError while more must come."""
        if not stranger.spoke:
            first = stranger.connection.recv(1, socket.MSG_PEEK)
            stranger.spoke = True
            if first == RECORD:
                if self._tls is None:
                    raise CannotMeasure(f"{stranger.name} speaks TLS, this listener does not", hint=LISTENER_HINT)
                stranger.connection = self._tls.wrap_socket(
                    stranger.connection, server_side=True, do_handshake_on_connect=False
                )
                stranger.greets_tls = True
        if stranger.greets_tls:
            assert isinstance(stranger.connection, TlsSocket)
            try:
                stranger.connection.do_handshake()
            except ssl.SSLError as error:
                cause = f"{stranger.name} ended the TLS handshake ({error.reason or 'it hung up'})"
                raise CannotMeasure(cause, hint=LISTENER_HINT) from None
            stranger.greets_tls = False

    def _check_tls(self, stranger: _Stranger, is_data: bool) -> None:
        """CannotMeasure where TLS is required and missing, or is on a data connection, which has none."""
        if is_data and stranger.has_tls:
            raise CannotMeasure("data connections have no TLS", hint=SAME_VERSION)
        if self._tls is not None and not is_data and not stranger.has_tls:
            raise CannotMeasure("this listener asks for TLS", hint="--tls-ca FILE, with its certificate or its CA's")

    def _answer(self, stranger: _Stranger, line: bytes) -> ProvenClient | DataConnection | None:
        if stranger.handshake is not None:
            if not same(parse(Proof, line, stranger.name).proof, stranger.handshake.client_proof):
                raise CannotMeasure(f"{stranger.name} has another secret than this listener", hint=SECRET_HINT)
            return ProvenClient(self._release(stranger), stranger.name, stranger.handshake)
        is_data = line.startswith(b'{"data"')
        self._check_tls(stranger, is_data)
        if is_data:
            hello = parse(DataHello, line, stranger.name)
            return DataConnection(self._release(stranger), hello)
        greeting = Hello(nonce=new_nonce(), service=self._service.name)
        try:
            client_nonce = parse_hello(line, stranger.name, self._service).nonce
        except LanewiseError:
            send_now(stranger.connection, greeting)  # lets the other side say what differs
            raise
        stranger.handshake = Handshake(self._secret, self._service.name, client_nonce, greeting.nonce)
        send_now(stranger.connection, greeting)
        return None

    def _refuse_oldest(self) -> None:
        for oldest in list(self._strangers.values())[:1]:
            self._refuse(oldest, "too many connections at once", "try again", crowded=True)

    def _refuse(self, stranger: _Stranger, cause: str, hint: str = SAME_VERSION, crowded: bool = False) -> None:
        self._note("refused", cause)
        with contextlib.suppress(OSError):
            send_now(stranger.connection, Refusal(error=cause, hint=hint, crowded=crowded))
            stranger.connection.recv(1 << 16)  # what is unread would cut the answer off
        self._drop(stranger)

    def _note(self, event: str, cause: str) -> None:
        self._notes[event] += 1
        count = self._notes[event]
        if count & (count - 1) == 0:
            self._say(f"{event}: {cause}" if count == 1 else f"{event}: {cause} ({count} so far)")

    def _release(self, stranger: _Stranger) -> socket.socket:
        del self._strangers[stranger.number]
        self._selector.unregister(stranger.number)
        return stranger.connection

    def _drop(self, stranger: _Stranger) -> None:
        self._release(stranger).close()


def _places() -> int:
    """How many strangers may be there at once: at most a quarter of the files that this process may open."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_STRANGERS if files == resource.RLIM_INFINITY else max(1, min(MOST_STRANGERS, files // 4))
