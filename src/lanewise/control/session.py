"""One client of a listener: the thread that answers it, and the data connections that join it by token."""

from __future__ import annotations

import select
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress

from lanewise.control.handshake import new_nonce, same
from lanewise.control.reception import DataConnection, ProvenClient
from lanewise.control.stream import MOST_DATA_CONNECTIONS, MessageStream, PeerLost, Proof, Refusal
from lanewise.errors import CannotMeasure, InputError, LanewiseError

DATA_S = 5.0


class ClientSession(ABC):
    """A session with one proven client, in a thread of its own; a service says in `answer` what it does for the client.

    `stream` is the control connection. `answer` and `release` run in the session's thread, all else is for the
    listener's.
    """

    def __init__(self, client: ProvenClient) -> None:
        self.stream = MessageStream(client.connection, client.name)
        self.ended = False
        self._handshake = client.handshake
        self._thread: threading.Thread | None = None
        self._abandoned = False
        self._change = threading.Condition()  # of the fields below, which both threads use
        self._tokens: list[str] = []
        self._connections: dict[int, socket.socket] = {}

    @abstractmethod
    def answer(self) -> None:
        """Answer the client's requests until it leaves; a LanewiseError ends the session and is told to the client."""

    @abstractmethod
    def release(self) -> None:
        """Free what the session holds, whatever ended it."""

    def summary(self) -> str:
        """How the session ended, as said after the client's name, when all is released."""
        return "is done"

    def expect_data(self, count: int) -> str:
        """Let `count` data connections join; the nonce of their tokens. Those of an earlier nonce no longer join."""
        assert count <= MOST_DATA_CONNECTIONS
        nonce = new_nonce()
        self.close_data()
        with self._change:
            self._tokens = [self._handshake.data_token(nonce, index) for index in range(count)]
        return nonce

    def data(self, patience: float | None = None) -> list[socket.socket]:
        """The expected data connections by index, once all have joined; CannotMeasure if they do not in `patience` s.

        The session closes them (`close_data`).
        """
        total, limit = len(self._tokens), DATA_S if patience is None else patience
        with self._change:
            complete = self._change.wait_for(lambda: self._abandoned or len(self._connections) == total, limit)
            if not complete or self._abandoned:
                raise CannotMeasure(
                    f"only {len(self._connections)} of {total} data connections came",
                    hint="they go to the same port: does a firewall limit their number, or ulimit -n?",
                )
            return [self._connections[index] for index in range(total)]

    def close_data(self) -> None:
        """Close the data connections and let no more join."""
        with self._change:
            for connection in self._connections.values():
                connection.close()
            self._tokens, self._connections = [], {}

    def start(self, say: Callable[[str], None], on_end: Callable[[], None]) -> None:
        """Begin in a new thread, which calls `on_end` last; RuntimeError where there is none."""
        self._thread = threading.Thread(target=self._run, args=[say, on_end], name="session", daemon=True)
        self._thread.start()

    def join(self, patience: float | None = None) -> None:
        """Wait for the end of the thread, at most `patience` s."""
        if self._thread is not None:
            self._thread.join(patience)

    def client_has_left(self) -> bool:
        """Whether the client has ended its side of the control connection."""
        poll = select.poll()
        try:
            poll.register(self.stream.connection, select.POLLRDHUP)
        except (OSError, ValueError):
            return True  # closed here already
        return bool(poll.poll(0))

    def add_connection(self, arrival: DataConnection) -> bool:
        """Take a data connection if it is an expected one."""
        index = arrival.hello.index
        with self._change:
            expected = index < len(self._tokens) and index not in self._connections
            if not expected or not same(self._tokens[index], arrival.hello.data):
                return False
            self._connections[index] = arrival.connection
            self._change.notify()
        return True

    def abandon(self) -> None:
        """End soon."""
        with self._change:
            self._abandoned = True
            self._change.notify()
        with suppress(OSError):
            self.stream.connection.shutdown(socket.SHUT_RDWR)

    def _run(self, say: Callable[[str], None], on_end: Callable[[], None]) -> None:
        failure = ""
        try:
            say(f"{self.stream.name} came")
            self.stream.send(Proof(proof=self._handshake.listener_proof))
            self.answer()
        except LanewiseError as error:
            refused = "was refused: " if isinstance(error, InputError) else ""
            failure = f"{self.stream.name} {refused}{error}" if refused else str(error)
            if not isinstance(error, PeerLost):
                with suppress(LanewiseError):
                    self.stream.send(Refusal(error=error.cause, hint=error.hint))
        finally:
            try:
                self.release()
            finally:
                self.close_data()
                self.stream.close()
                say(failure or f"{self.stream.name} {self.summary()}")
                self.ended = True
                on_end()
