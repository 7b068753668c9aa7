"""The side that answers: serves one client after the other, does what it asks within limits, survives what it says."""

from __future__ import annotations

import secrets
import socket
import time
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from lanewise import _native
from lanewise.errors import CannotMeasure, InputError, LanewiseError
from lanewise.probes.machine import native_errors
from lanewise.probes.network import endpoints, messages
from lanewise.probes.network.options import Binding, Cell, Rdma

if TYPE_CHECKING:
    from collections.abc import Callable

HELLO_S, DATA_S, IDLE_S = 2.0, 5.0, 90.0


def open_listener(address: str) -> socket.socket:
    """A listening socket at [ADDRESS][:PORT], loopback unless another address is named; CannotMeasure if it cannot."""
    host, port = messages.parse_address(address)
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError):
        raise CannotMeasure(f"{host} is no address of this machine", hint="ip addr lists them") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
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
    binding: Binding,
    rdma: Rdma,
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
            connection, where = listener.accept()
        except TimeoutError:
            return
        lines = messages.Lines(connection, f"client {where[0]}")
        session = _Session(listener, lines, binding, rdma)
        try:
            if _greet(lines):
                say(f"{lines.name} came")
                session.run()
                say(f"{lines.name} is done")
        except LanewiseError as error:
            say(str(error))
            _tell(lines, error)
        finally:
            session.close()
            lines.close()
        if once and session.served:
            return


def _greet(lines: messages.Lines) -> bool:
    first = lines.receive(HELLO_S)
    if "data" in first:
        return False  # a connection of a measurement that is over
    if first.get("lanewise") != messages.PROTOCOL:
        lines.send(messages.hello())  # lets the other side say what differs
    messages.check_hello(first, lines.name)
    lines.send(messages.hello())
    return True


def _tell(lines: messages.Lines, error: LanewiseError) -> None:
    if isinstance(error, messages.Gone):
        return
    try:
        lines.send({"error": error.cause, "hint": error.hint})
    except LanewiseError:
        return


@dataclass
class _Session:
    """One client's requests; each is answered at once, so that neither side waits without end."""

    listener: socket.socket
    lines: messages.Lines
    binding: Binding
    rdma: Rdma
    served: bool = False
    cell: Cell | None = None
    token: str = ""
    ends: list[endpoints.End] = field(default_factory=list)

    def run(self) -> None:
        self.served = True
        known = {
            "open": self.open, "begin": self.begin, "ready": self.ready, "check": self.check, "go": self.go,
            "mark": self.mark, "stop": self.stop, "done": self.done, "close": self.finish,
        }  # fmt: skip
        while True:
            try:
                request = self.lines.receive(IDLE_S)
            except messages.Gone:
                return  # the client has what it wanted
            do = known.get(str(request.get("do")))
            if do is None:
                raise InputError(f"no such request: {str(request.get('do'))[:40]}", hint="use the same version")
            with native_errors():
                self.lines.send(do(request))

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        self.close()
        self.cell = _cell_of(request)
        if self.cell.transport == "tcp":
            self.token = secrets.token_hex(8)
            return {"token": self.token}
        peers = request.get("ends")
        if not isinstance(peers, list) or len(peers) != len(self.cell.ways):
            raise InputError("verbs need an address for each direction", hint="use the same version on both sides")
        for way, (name, peer) in enumerate(zip(self.cell.ways, peers, strict=True)):
            end = endpoints.verbs_end(self.cell, way, name == "from", self.rdma, self.binding)
            self.ends.append(end)
            connect(end, peer)
        return {"ends": [address_of(end) for end in self.ends]}

    def begin(self, request: dict[str, Any]) -> dict[str, Any]:
        cell = self._opened()
        if cell.transport == "tcp":
            if self.ends:
                raise InputError("a measurement that runs cannot begin", hint="use the same version on both sides")
            for way, sockets in enumerate(self._accept(cell)):
                self.ends.append(endpoints.tcp_end(cell, sockets, way, cell.ways[way] == "from", self.binding))
        else:
            for end in self.ends:
                begin(end)
        return {"about": [end.about() for end in self.ends]}

    def ready(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"ready": all(end.native.ready() for end in self.ends)}

    def check(self, request: dict[str, Any]) -> dict[str, Any]:
        for end in self.ends:
            end.native.check()
        return {}

    def go(self, request: dict[str, Any]) -> dict[str, Any]:
        for end in self.ends:
            end.native.go()
        return {}

    def mark(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"marks": marks_of(self.ends)}

    def stop(self, request: dict[str, Any]) -> dict[str, Any]:
        """Stop those that drive; with `all` the others as well."""
        for end in self.ends:
            if request.get("all") or drives(end, self._opened()):
                end.native.stop()
        return {}

    def done(self, request: dict[str, Any]) -> dict[str, Any]:
        cell = self._opened()
        over = all(end.native.done() for end in self.ends if request.get("all") or drives(end, cell))
        return {"done": over, "marks": marks_of(self.ends)}

    def finish(self, request: dict[str, Any]) -> dict[str, Any]:
        self.close()
        return {}

    def close(self) -> None:
        """Free what a measurement holds."""
        for end in self.ends:
            end.close()
        self.ends, self.cell, self.token = [], None, ""

    def _opened(self) -> Cell:
        if self.cell is None:
            raise InputError("nothing is open", hint="use the same version on both sides")
        return self.cell

    def _accept(self, cell: Cell) -> list[list[socket.socket]]:
        """The client's data connections by direction and index; others that come meanwhile are told to wait."""
        wanted = len(cell.ways) * cell.connections
        found: dict[int, socket.socket] = {}
        end = time.monotonic() + DATA_S
        try:
            while len(found) < wanted:
                self.listener.settimeout(max(end - time.monotonic(), 0.001))
                connection, where = self.listener.accept()
                index = self._index(messages.Lines(connection, f"client {where[0]}"), wanted, found)
                if index is None:
                    connection.close()
                else:
                    found[index] = connection
        except TimeoutError:
            for each in found.values():
                each.close()
            raise CannotMeasure(
                f"only {len(found)} of {wanted} data connections came",
                hint="they go to the same port: is there a firewall that limits their number?",
            ) from None
        finally:
            self.listener.settimeout(None)
        n = cell.connections
        return [[found[way * n + i] for i in range(n)] for way in range(len(cell.ways))]

    def _index(self, lines: messages.Lines, wanted: int, found: dict[int, socket.socket]) -> int | None:
        try:
            first = lines.receive(1.0)
            index = first.get("index")
            fits = isinstance(index, int) and 0 <= index < wanted and index not in found
            if first.get("data") == self.token and fits:
                return int(str(index))
            lines.send({"error": "this listener is serving another client", "hint": "try again when it is done"})
        except LanewiseError:
            return None
        return None


def _cell_of(request: dict[str, Any]) -> Cell:
    given = request.get("cell")
    names = {each.name for each in fields(Cell)}
    if not isinstance(given, dict) or not {"transport", "kind", "bytes", "connections"} <= set(given) <= names:
        raise InputError("the request names no measurement", hint="use the same version of Lanewise on both sides")
    for each in ("events", "zero_copy"):
        if not isinstance(given.get(each, False), bool):
            raise InputError(f"{each} is true or false", hint="use the same version of Lanewise on both sides")
    for each in ("transport", "kind", "direction", "operation"):
        if not isinstance(given.get(each, ""), str):
            raise InputError(f"{each} is a word", hint="use the same version of Lanewise on both sides")
    return Cell(**given).checked()


def drives(end: endpoints.End, cell: Cell) -> bool:
    """Whether this end moves the data: the source, but a read's destination; it is stopped before the other one."""
    return end.sends != (cell.transport == "verbs" and cell.operation == "read")


def marks_of(some: list[endpoints.End]) -> list[dict[str, Any]]:
    """What each end has moved, at its moment of this machine's clock; nothing for round trips."""
    made = []
    for end in some:
        mark = end.native.mark() if not isinstance(end.native, endpoints.PING) else None
        made.append({} if mark is None else {"seconds": mark.seconds, "bytes": mark.bytes})
    return made


def address_of(end: endpoints.End) -> dict[str, object]:
    """What the other side needs to reach these queue pairs."""
    assert isinstance(end.native, endpoints.VERBS)
    return end.native.address()


def connect(end: endpoints.End, peer: object) -> None:
    """Queue pairs to those of `peer`; InputError for an address that is none."""
    assert isinstance(end.native, endpoints.VERBS)
    if not isinstance(peer, dict):
        raise InputError("an address of queue pairs is missing", hint="use the same version on both sides")
    try:
        end.native.connect(peer)
    except _native.ProbeFailure as failure:
        cause, hint = failure.args
        raise CannotMeasure(cause, hint=hint) from None
    except (KeyError, TypeError, ValueError, RuntimeError):
        raise InputError("an address of queue pairs is none", hint="use the same version on both sides") from None


def begin(end: endpoints.End) -> None:
    """The pattern goes over queue pairs."""
    assert isinstance(end.native, endpoints.VERBS)
    end.native.begin()


__all__ = ["open_listener", "serve"]
