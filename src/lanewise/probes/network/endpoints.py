"""One direction's data end on this side: the native object, the sockets it uses, and what its place is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise import _native
from lanewise.probes.machine import native_errors, numa_nodes
from lanewise.probes.network import numa
from lanewise.probes.network.options import READ, SEND

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from lanewise.probes.network.options import Binding, Cell, Rdma

PING, VERBS = _native.TcpPing, _native.VerbsEnd
NativeEnd = _native.TcpStream | _native.TcpPing | _native.VerbsEnd
_WORK = _native.VerbsWork


class End:
    """One direction as this side sees it: whether it `sends`, where it stays, what has moved."""

    def __init__(self, native: NativeEnd, sends: bool, where: numa.Place, sockets: Sequence[socket.socket]) -> None:
        self.native = native
        self.sends = sends
        self.where = where
        self._sockets = sockets

    def about(self) -> dict[str, str]:
        """Where its buffers' pages lie and which card carries the route, in words."""
        card_node = "none" if self.where.card_node is None else str(self.where.card_node)
        return {
            "NUMA node": numa_nodes(self.native.nodes()),
            "card": f"{self.where.card or 'unknown'}, NUMA node {card_node}",
            "threads": f"NUMA node {self.where.node}" if self.where.cpus else "not bound",
        }

    def close(self) -> None:
        """Threads end, sockets close."""
        self.native.stop()
        del self.native
        for each in self._sockets:
            each.close()


def tcp_end(cell: Cell, sockets: Sequence[socket.socket], way: int, sends: bool, binding: Binding) -> End:
    """An end over connected sockets; its threads begin with the pattern at once."""
    where = numa.of_socket(sockets[0], binding)
    setup = _setup(cell, where, way)
    for each in sockets:
        each.settimeout(None)
    numbers = [each.fileno() for each in sockets]
    with native_errors():
        if cell.kind == "latency":
            return End(_native.TcpPing(numbers[0], sends, setup), sends, where, sockets)
        return End(_native.TcpStream(numbers, sends, setup, cell.zero_copy), sends, where, sockets)


def verbs_end(cell: Cell, way: int, sends: bool, rdma: Rdma, binding: Binding) -> End:
    """An end over queue pairs, not connected yet; `sends` says whether the data comes from here."""
    device = numa.rdma_device(rdma.device)
    where = numa.of_device(device, binding)
    setup = _native.VerbsSetup(_setup(cell, where, way))
    setup.device = device
    setup.gid_index = rdma.gid_index if rdma.gid_index is not None else numa.gid_of(device)
    setup.is_source = sends
    setup.pairs, setup.depth = cell.connections, cell.depth
    setup.inline_bytes, setup.events = cell.inline_bytes, cell.events
    setup.work = work_of(cell, sends)
    with native_errors():
        return End(_native.VerbsEnd(setup), sends, where, ())


def work_of(cell: Cell, sends: bool) -> Any:
    """What this side's thread does: a write and a send go out from the source, a read is asked by the destination."""
    if cell.kind == "latency":
        if cell.operation == SEND:
            return _WORK.ASK_SEND if sends else _WORK.ANSWER_SEND
        return _WORK.ASK_WRITE if sends else _WORK.ANSWER_WRITE
    if cell.operation == SEND:
        return _WORK.SEND if sends else _WORK.RECEIVE
    if cell.operation == READ:
        return _WORK.NOTHING if sends else _WORK.READ
    return _WORK.WRITE if sends else _WORK.NOTHING


def counter_sends(cell: Cell) -> bool:
    """Whether the bytes are counted where they are sent: only an RDMA write's target does not notice them."""
    return cell.transport == "verbs" and cell.operation not in (READ, SEND)


def _setup(cell: Cell, where: numa.Place, way: int) -> _native.EndSetup:
    node = -1 if where.node is None else where.node
    return _native.EndSetup(cell.bytes, node, where.cpus, 1000 * (way + 1))


__all__ = ["End", "counter_sends", "tcp_end", "verbs_end"]
