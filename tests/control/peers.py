"""Listeners and clients of control channels in this process, honest ones and others, and a service that only echoes."""

from __future__ import annotations

import contextlib
import errno
import json
import socket
import threading

from lanewise.control.client import connect
from lanewise.control.handshake import Handshake, new_nonce
from lanewise.control.listener import open_listener, serve
from lanewise.control.service import ControlService
from lanewise.control.session import ClientSession
from lanewise.control.stream import PROTOCOL, Message, PeerLost

SECRET = "a secret of the tests"
HANGS = 300.0  # s; a wait that takes longer hangs, on a busy machine too
ECHO = ControlService("echo", port=7999, listen_command="lanewise echo --listen")


class Echo(Message):
    """A word that comes back; with `expect` the nonce of so many data connections instead, with `read` their bytes."""

    word: str = ""
    expect: int = 0
    read: bool = False


class EchoSession(ClientSession):
    """Answers each Echo with one."""

    def answer(self):
        while True:
            try:
                request = self.stream.receive(Echo, HANGS)
            except PeerLost:
                return
            word = request.word
            if request.expect:
                word = self.expect_data(request.expect)
            if request.read:
                word = b"".join(connection.recv(1) for connection in self.data(HANGS)).decode()
            self.stream.send(Echo(word=word))

    def release(self):
        pass


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Server:
    """A listener in a thread: its address, what it said, what ended it."""

    def __init__(self, opened, run, **options):
        self.address = opened.getsockname()[:2]
        self._opened = opened
        self.said = []
        self.failure = None
        self.stopped = False
        self.thread = threading.Thread(target=self._serve, args=[opened, run, options], daemon=True)
        self.thread.start()

    def stop(self):
        """End the listener, as an interrupt does."""
        self._opened.shutdown(socket.SHUT_RDWR)
        self.thread.join(HANGS)
        assert not self.thread.is_alive()
        assert self.failure is None
        self.stopped = True

    def _serve(self, opened, run, options):
        try:
            run(opened, say=self.said.append, **options)
        except OSError as error:
            self.failure = None if error.errno == errno.EINVAL else error  # the test has shut the socket down
        except BaseException as error:
            self.failure = error
            raise


def serve_echo(opened, **options):
    serve(opened, SECRET, ECHO, EchoSession, **options)


@contextlib.contextmanager
def server(run=serve_echo, **options):
    with open_listener("127.0.0.1:0", ECHO) as opened:
        running = Server(opened, run, **options)
        yield running
        if not running.stopped:
            assert running.thread.is_alive() or options.get("once"), running.failure
            running.stop()


def echo_client(address):
    """An honest client of the echo."""
    return connect(address, SECRET, ECHO)


def line_of(value):
    return json.dumps(value).encode() + b"\n"


def hello(service=ECHO, nonce="0" * 64):
    return {"lanewise": PROTOCOL, "nonce": nonce, "service": service.name}


def proven_but_unanswered(address, service=ECHO):
    """A socket over which the client has proven itself, the lines that come over it, and the handshake."""
    connection = socket.create_connection(address, timeout=HANGS)
    lines = connection.makefile("rb")
    nonce = new_nonce()
    connection.sendall(line_of(hello(service, nonce)))
    handshake = Handshake(SECRET, service.name, nonce, json.loads(lines.readline())["nonce"])
    connection.sendall(line_of({"proof": handshake.client_proof}))
    return connection, lines, handshake


def greeted(address, service=ECHO):
    """A socket over which both sides have proven themselves, and the handshake."""
    connection, lines, handshake = proven_but_unanswered(address, service)
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
def fake_listener(answer, secret=SECRET, service=ECHO):
    """The address of a listener that knows the secret and then says `answer(request)`, a raw line, to each request.

    Data connections are read to their ends.
    """
    with socket.create_server(("127.0.0.1", 0)) as opened:

        def serve():
            control, _ = opened.accept()
            with control, control.makefile("rwb") as lines, contextlib.suppress(OSError):
                nonce = new_nonce()
                handshake = Handshake(secret, service.name, json.loads(lines.readline())["nonce"], nonce)
                for reply in (hello(service, nonce), {"proof": handshake.listener_proof}):
                    lines.write(line_of(reply))
                    lines.flush()
                    if "nonce" in reply:
                        lines.readline()
                while line := lines.readline():
                    request = json.loads(line)
                    if request.get("do") == "begin":
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


def ended(connection):
    """Whether the listener has closed this connection; its refusal is taken."""
    with contextlib.suppress(ConnectionError):
        while connection.recv(4096):
            pass
    return True
