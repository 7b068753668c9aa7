"""Listeners and clients of the protocol in this process, honest ones and others."""

from __future__ import annotations

import contextlib
import errno
import json
import socket
import threading
from typing import Any

from lanewise.options.measure_network import NetworkSideOptions
from lanewise.probes.network import listener
from lanewise.probes.network.handshake import Handshake, new_nonce
from lanewise.probes.network.messages import Acknowledgement, Request
from lanewise.probes.network.session import connect_session

SECRET = "a secret of the tests"
CELL: dict[str, Any] = {"transport": "tcp", "kind": "bandwidth", "bytes": 10, "connections": 1}
HANGS = 300.0


class Server:
    """A listener in a thread: its address, what it said, what ended it."""

    def __init__(self, opened, **options):
        self.address = opened.getsockname()[:2]
        self.said = []
        self.failure = None
        self._arguments = (opened, NetworkSideOptions(), SECRET)
        self._options = options
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        try:
            listener.serve(*self._arguments, say=self.said.append, **self._options)
        except OSError as error:
            self.failure = None if error.errno == errno.EINVAL else error  # the test has shut the socket down
        except BaseException as error:
            self.failure = error
            raise


@contextlib.contextmanager
def server(**options):
    with listener.open_listener("127.0.0.1:0") as opened:
        running = Server(opened, **options)
        yield running
        assert running.thread.is_alive() or options.get("once"), running.failure
        opened.shutdown(socket.SHUT_RDWR)
        running.thread.join(HANGS)
        assert running.failure is None


def friend(address):
    """An honest client's session."""
    return connect_session(address, NetworkSideOptions(), SECRET)


def alive(address):
    with friend(address) as session:
        return session.stream.request(Request(do="close"), Acknowledgement) is not None


def line_of(value):
    return json.dumps(value).encode() + b"\n"


def proven_but_unanswered(address):
    """A socket over which the client has proven itself, the lines that come over it, and the handshake."""
    connection = socket.create_connection(address, timeout=HANGS)
    lines = connection.makefile("rb")
    nonce = new_nonce()
    connection.sendall(line_of({"lanewise": 2, "nonce": nonce}))
    handshake = Handshake(SECRET, nonce, json.loads(lines.readline())["nonce"])
    connection.sendall(line_of({"proof": handshake.client_proof}))
    return connection, lines, handshake


def greeted(address):
    """A socket over which both sides have proven themselves, and the handshake."""
    connection, lines, handshake = proven_but_unanswered(address)
    assert json.loads(lines.readline()) == {"proof": handshake.listener_proof}
    return connection, handshake


def talk(connection, *lines):
    """What the listener answers to these raw lines until it has hung up."""
    with connection:
        answer = b""
        try:
            connection.sendall(b"".join(lines))
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                answer += piece
        except OSError:
            pass  # it hung up on unread rubbish: that is an answer
        return answer


@contextlib.contextmanager
def fake_listener(answer, secret=SECRET):
    """The address of a listener that knows the secret and then says `answer(request)`, a raw line, to each request.

    Data connections are read to their ends. `answer` None: the connection is closed.
    """
    with socket.create_server(("127.0.0.1", 0)) as opened:

        def serve():
            control, _ = opened.accept()
            with control, control.makefile("rwb") as lines, contextlib.suppress(OSError):
                nonce = new_nonce()
                handshake = Handshake(secret, json.loads(lines.readline())["nonce"], nonce)
                for reply in ({"lanewise": 2, "nonce": nonce}, {"proof": handshake.listener_proof}):
                    lines.write(line_of(reply))
                    lines.flush()
                    if "nonce" in reply:
                        lines.readline()
                while line := lines.readline():
                    request = json.loads(line)
                    if request["do"] == "begin":
                        data, _ = opened.accept()
                        threading.Thread(target=_drain, args=[data], daemon=True).start()
                    lines.write(answer(request))
                    lines.flush()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield opened.getsockname()[:2]
        thread.join(HANGS)


def _drain(connection):
    with connection, contextlib.suppress(OSError):
        while connection.recv(1 << 16):
            pass


def unproven(address, *lines):
    """A connection that has said these raw lines and proven nothing."""
    connection = socket.create_connection(address, timeout=HANGS)
    connection.sendall(b"".join(lines))
    return connection


def come(connection):
    """What has come over a connection and is not read yet, without waiting."""
    timeout = connection.gettimeout()
    connection.setblocking(False)
    try:
        return connection.recv(4096, socket.MSG_PEEK)
    except BlockingIOError:
        return b""
    finally:
        connection.settimeout(timeout)
