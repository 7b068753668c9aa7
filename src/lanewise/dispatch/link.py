"""A Frontend's control connection to one node, and the thread that watches all of them by their heartbeats."""

from __future__ import annotations

import queue
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from lanewise.control.client import ControlConnection, connect
from lanewise.control.service import parse_address
from lanewise.control.stream import ANSWER_S, LONGEST, Message, PeerLost, parse
from lanewise.dispatch.messages import DISPATCH, SERVICE, BeatReply, NodeFacts, NodeRequest, OpenReply, OpenRequest
from lanewise.dispatch.pulse import DEADLINE_S, Pulse
from lanewise.errors import CannotMeasure, LanewiseError, printable

OPEN_S = 300.0  # a node may try how it copies best
_BEAT = b'{"beat"'  # how a BeatReply begins
_Kind = TypeVar("_Kind", bound=Message)


class NodeLink:
    """One node's control connection. A NodeWatch reads it; any thread may request. `reason` says why it is lost."""

    def __init__(
        self, address: str, secret: str, clock: Callable[[], float] = time.monotonic, tls: ssl.SSLContext | None = None
    ) -> None:
        self.address = address
        self.reason = ""
        self.control: ControlConnection = connect(parse_address(address, SERVICE.port), secret, SERVICE, tls)
        self.pulse = Pulse(clock)
        self.requesting = False
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._sending = threading.Lock()

    def describe(self) -> NodeFacts:
        """What the node is."""
        return self.request(NodeRequest(do="describe", dispatch=DISPATCH), NodeFacts)

    def open(self, request: OpenRequest) -> OpenReply:
        """What the node agrees to."""
        return self.request(NodeRequest(do="open", open=request), OpenReply, OPEN_S)

    def request(self, request: Message, kind: type[_Kind], patience: float = ANSWER_S) -> _Kind:
        """A request and its reply, of one thread at a time; CannotMeasure with the node's words, or if it is lost."""
        self.requesting = True
        try:
            self.send(request)
            line = self._lines.get(timeout=patience)
        except queue.Empty:
            raise CannotMeasure(
                f"node {self.address} gave no answer in {patience:g} s", hint="look whether it still runs"
            ) from None
        finally:
            self.requesting = False
            self.pulse.heard()
        if line is None:
            raise self._lost()
        return parse(kind, line, f"node {self.address}")

    def send(self, message: Message) -> None:
        """Send a message; PeerLost where nobody takes it."""
        with self._sending:
            if self.reason:  # then it may be closed
                raise self._lost()
            self.control.stream.send(message)

    def take(self) -> None:
        """Read a line that has come; LanewiseError where the node has left, or says on its own what stopped it."""
        line = self.control.stream.line(ANSWER_S, LONGEST)
        self.pulse.heard()
        if line.startswith(_BEAT) or not self.requesting:
            parse(BeatReply, line, "it")
            return
        self._lines.put(line)

    def lose(self, reason: str) -> None:
        """The node is gone: requests end."""
        self.reason = self.reason or printable(reason)
        self._lines.put(None)

    def close(self) -> None:
        """Leave the node."""
        with self._sending:
            self.reason = self.reason or "the Frontend left it"
            self.control.close()

    def _lost(self) -> PeerLost:
        return PeerLost(f"node {self.address} was lost: {self.reason}", hint="look what it says, then start again")


class NodeWatch:
    """A thread that reads all links, sends their heartbeats, and tells `on_lost` of each that is lost, once."""

    def __init__(self, on_lost: Callable[[NodeLink], None], on_beat: Callable[[], None] = lambda: None) -> None:
        self._on_lost, self._on_beat = on_lost, on_beat
        self._links: dict[int, NodeLink] = {}
        self._change = threading.Lock()
        self._ended = False
        self._waker, self._wakeable = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="nodes", daemon=True)
        self._thread.start()

    def add(self, link: NodeLink) -> None:
        """Watch a link from now on."""
        with self._change:
            self._links[link.control.stream.connection.fileno()] = link
        self._waker.send(b"\0")

    def remove(self, link: NodeLink) -> None:
        """Watch a link no more, and close it."""
        with self._change:
            self._links = {number: other for number, other in self._links.items() if other is not link}
            link.close()
        self._waker.send(b"\0")

    def close(self) -> None:
        """End the thread and close all links."""
        self._ended = True
        self._waker.send(b"\0")
        self._thread.join()
        for link in self._links.values():
            link.close()
        self._waker.close()
        self._wakeable.close()

    def _run(self) -> None:
        while not self._ended:
            with self._change:
                links = dict(self._links)
                poll = select.poll()
                for number in (*links, self._wakeable.fileno()):
                    poll.register(number, select.POLLIN)
            wait = min((link.pulse.wait() for link in links.values()), default=None)
            ready = {number for number, _ in poll.poll(None if wait is None else 1e3 * wait)}
            if self._wakeable.fileno() in ready:
                self._wakeable.recv(4096)
            for number, link in links.items():
                with self._change:
                    if self._links.get(number) is link and not self._serve(link, number in ready):
                        del self._links[number]
            self._on_beat()

    def _serve(self, link: NodeLink, ready: bool) -> bool:
        """Read and beat; False where the link is lost."""
        try:
            if ready:
                link.take()
            if link.pulse.due():
                link.send(NodeRequest(do="beat"))
                if link.pulse.look() and not link.requesting:
                    raise CannotMeasure(f"it was silent for {DEADLINE_S:g} s")
            return True
        except PeerLost as error:
            detail = str(error).partition("(")[2].rstrip(")")
            link.lose(f"it closed its control connection{detail and f' ({detail})'}")
        except LanewiseError as error:
            link.lose(str(error))
        link.close()
        self._on_lost(link)
        return False
