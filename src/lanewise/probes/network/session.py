"""The side that asks: opens a measurement with the listener, starts both sides together, takes marks, stops both."""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lanewise.errors import CannotMeasure
from lanewise.probes.machine import native_errors
from lanewise.probes.network import endpoints, listener, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lanewise.probes.network.options import Binding, Cell, Rdma

CONNECT_S, READY_S, DONE_S, CLOSE_S = 5.0, 20.0, 10.0, 2.0
Count = tuple[float, list[int]]


@dataclass
class Peer:
    """A listener that has answered: where it is, the control connection to it, and how this side is set up."""

    address: tuple[str, int]
    lines: messages.Lines
    binding: Binding
    rdma: Rdma


@contextmanager
def peer_at(address: tuple[str, int], binding: Binding, rdma: Rdma) -> Iterator[Peer]:
    """A control connection to the listener at HOST, PORT; CannotMeasure where there is none or none of this kind."""
    lines = messages.Lines(_connect(address), f"{address[0]} port {address[1]}")
    try:
        lines.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            lines.send(messages.hello())
            answer = lines.receive()
        except messages.Gone:
            raise CannotMeasure(
                f"{lines.name} closed the connection at once: it is no lanewise",
                hint="start `lanewise measure network --listen` there, or name its port",
            ) from None
        if "error" in answer and "lanewise" not in answer:
            raise CannotMeasure(f"{lines.name} says: {str(answer['error'])[:300]}", hint=str(answer.get("hint", "")))
        messages.check_hello(answer, lines.name)
        yield Peer(address, lines, binding, rdma)
    finally:
        lines.close()


def _connect(address: tuple[str, int]) -> socket.socket:
    host, port = address
    try:
        return socket.create_connection(address, timeout=CONNECT_S)
    except (socket.gaierror, UnicodeError):
        raise CannotMeasure(f"there is no host {host}", hint="check the name, or give its address") from None
    except TimeoutError:
        hint = "check the address, and that no firewall drops it"
        raise CannotMeasure(f"{host} port {port} does not answer in {CONNECT_S:g} s", hint=hint) from None
    except ConnectionRefusedError:
        raise CannotMeasure(
            f"nothing listens at {host} port {port}",
            hint=f"start it there: lanewise measure network --listen {host}:{port}",
        ) from None
    except OSError as error:
        hint = "check the address and the route: ip route get"
        raise CannotMeasure(f"{host} port {port} cannot be reached: {error.strerror}", hint=hint) from None


class Running:
    """One cell in progress on both sides: `ends` are this side's, one a direction."""

    def __init__(self, peer: Peer, cell: Cell) -> None:
        self.peer = peer
        self.cell = cell
        self.ends: list[endpoints.End] = []
        self.about: list[dict[str, str]] = []

    def start(self) -> None:
        """Connections, the pattern there and compared, then go on both sides."""
        request = {"do": "open", "cell": asdict(self.cell)}
        if self.cell.transport == "tcp":
            self._connect_data(str(self._ask(request).get("token", "")))
        else:
            self._connect_pairs(request)
        self._until(READY_S, "the first data", lambda: self._both("ready"))
        for end in self.ends:
            with native_errors():
                end.native.check()
        self._ask({"do": "check"})
        self._ask({"do": "go"})
        for end in self.ends:
            end.native.go()

    def marks(self) -> list[Count]:
        """Per direction, the bytes of each connection where they are counted, and when, by that machine's clock."""
        with native_errors():
            here = listener.marks_of(self.ends)
        return self._counted(here, self._ask({"do": "mark"}))

    def check(self) -> None:
        """CannotMeasure if the other side has left or this side's data has stopped."""
        if self.peer.lines.closed():
            raise messages.Gone(f"{self.peer.lines.name} has left", hint=messages.LEFT)
        with native_errors():
            for end in self.ends:
                end.native.ready()

    def stop(self) -> tuple[list[Count], list[Count]]:
        """Those that drive stop and finish what is under way, then the others; what each direction sent and received.

        Of verbs only the side that counts knows the bytes; the two are the same then.
        """
        self._ask({"do": "stop"})
        self._stop_here(False)
        self._until(DONE_S, "the end of what is under way", lambda: self._both("done", all=False))
        if self.cell.transport == "verbs":
            self._ask({"do": "stop", "all": True})
            self._stop_here(True)
        self._until(DONE_S, "the end of the other side", lambda: self._both("done", all=True))
        if self.cell.transport == "tcp" and self.cell.kind == "latency":
            return [], []
        here, there = listener.marks_of(self.ends), self._ask({"do": "mark"})
        return self._counted(here, there, sent=True), self._counted(here, there)

    def close(self) -> None:
        """Free both sides; a peer that is gone has nothing left to free."""
        for end in self.ends:
            end.close()
        self.ends = []
        try:
            self.peer.lines.ask({"do": "close"}, CLOSE_S)
        except CannotMeasure:
            return

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.peer.lines.ask(request)

    def _connect_data(self, token: str) -> None:
        opened: list[socket.socket] = []
        n = self.cell.connections
        try:
            for index in range(n * len(self.cell.ways)):
                connection = _connect(self.peer.address)
                opened.append(connection)
                messages.Lines(connection, self.peer.lines.name).send({"data": token, "index": index})
            answer = self._ask({"do": "begin"})
        except BaseException:
            for each in opened:
                each.close()
            raise
        for way, name in enumerate(self.cell.ways):
            mine = opened[way * n : (way + 1) * n]
            self.ends.append(endpoints.tcp_end(self.cell, mine, way, name == "to", self.peer.binding))
        self._set_about(answer)

    def _connect_pairs(self, request: dict[str, Any]) -> None:
        for way, name in enumerate(self.cell.ways):
            self.ends.append(endpoints.verbs_end(self.cell, way, name == "to", self.peer.rdma, self.peer.binding))
        answer = self._ask({**request, "ends": [listener.address_of(end) for end in self.ends]})
        theirs = answer.get("ends")
        if not isinstance(theirs, list) or len(theirs) != len(self.ends):
            raise CannotMeasure(f"{self.peer.lines.name} gives no queue pairs", hint="use the same version on both")
        for end, peer in zip(self.ends, theirs, strict=True):
            listener.connect(end, peer)
        self._set_about(self._ask({"do": "begin"}))
        for end in self.ends:
            listener.begin(end)

    def _set_about(self, answer: dict[str, Any]) -> None:
        given = answer.get("about")
        theirs = given if isinstance(given, list) else []
        for end, other in zip(self.ends, theirs or [{}] * len(self.ends), strict=False):
            there = {f"{key} there": str(value)[:100] for key, value in dict(other).items()}
            self.about.append({**end.about(), **there})

    def _stop_here(self, everyone: bool) -> None:
        for end in self.ends:
            if everyone or listener.drives(end, self.cell):
                end.native.stop()

    def _both(self, stage: str, **more: Any) -> bool:
        mine = [end for end in self.ends if stage != "done" or more["all"] or listener.drives(end, self.cell)]
        with native_errors():
            here = all(end.native.ready() if stage == "ready" else end.native.done() for end in mine)
        return bool(self._ask({"do": stage, **more}).get(stage)) and here

    def _until(self, patience: float, what: str, reached: Callable[[], bool]) -> None:
        end, wait = time.monotonic() + patience, 0.001
        while not reached():
            if time.monotonic() > end:
                raise CannotMeasure(
                    f"{self.peer.lines.name}: {what} did not come in {patience:g} s",
                    hint="is data let through between the two sides? look at the network and both sides' logs",
                )
            time.sleep(wait)
            wait = min(2 * wait, 0.05)

    def _counted(self, here: list[dict[str, Any]], answer: dict[str, Any], sent: bool = False) -> list[Count]:
        there = answer.get("marks")
        if not isinstance(there, list) or len(there) != len(here):
            raise CannotMeasure(f"{self.peer.lines.name} sends no marks", hint="use the same version on both sides")
        found: list[Count] = []
        for end, mine, theirs in zip(self.ends, here, there, strict=True):
            at_source = endpoints.counter_sends(self.cell) or (sent and self.cell.transport == "tcp")
            mark = mine if end.sends == at_source else theirs
            try:
                found.append((float(mark["seconds"]), [int(each) for each in mark["bytes"]]))
            except (KeyError, TypeError, ValueError):
                raise CannotMeasure(f"{self.peer.lines.name} sends a mark that is none", hint="") from None
        return found


__all__ = ["Peer", "Running", "peer_at"]
