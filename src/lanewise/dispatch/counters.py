"""What the connections of a Frontend have sent and received: in a run, and since the last look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

ADDED = ("posted", "completed", "bytes_out", "bytes_in", "doorbells", "wakeups", "lost", "stale")


@dataclass(frozen=True, slots=True)
class ConnectionCounters:
    """One connection to a node: `nic` is the Frontend's network interface, or the transport within a host.

    Queries posted, answers received (`completed`), queries outstanding, and lost with the node. Of all messages, those
    that start and stop a run included: bytes sent and received, doorbells rung, and wake-ups of the receiving thread.
    `stale`: answers that came too late for their slot.
    """

    node: str
    connection: int
    nic: str
    posted: int = 0
    completed: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    outstanding: int = 0
    doorbells: int = 0
    wakeups: int = 0
    lost: int = 0
    stale: int = 0


@dataclass(frozen=True, slots=True)
class DispatchRates:
    """All connections at one moment, and what they did in the `seconds` before: bytes sent and queries completed."""

    connections: tuple[ConnectionCounters, ...]
    seconds: float
    bytes_out: int
    completed: int

    @property
    def bandwidth(self) -> float:
        """B/s that were sent; 0 at the first look."""
        return self.bytes_out / self.seconds if self.seconds > 0.0 else 0.0

    @property
    def outstanding(self) -> int:
        """Queries posted and not answered."""
        return sum(one.outstanding for one in self.connections)

    @property
    def lag(self) -> float | None:
        """Seconds that answers are behind queries: those outstanding over those completed a second (Little's law).

        None where queries are outstanding and none was completed.
        """
        if not self.outstanding:
            return 0.0
        return self.outstanding * self.seconds / self.completed if self.completed else None


def rates(before: Sequence[ConnectionCounters], now: Sequence[ConnectionCounters], seconds: float) -> DispatchRates:
    """What happened in the `seconds` between two looks."""
    grown = since(before, now)
    return DispatchRates(
        tuple(now), seconds, sum(one.bytes_out for one in grown), sum(one.completed for one in grown)
    )  # fmt: skip


def since(before: Iterable[ConnectionCounters], now: Sequence[ConnectionCounters]) -> tuple[ConnectionCounters, ...]:
    """The counters `now`, less those of the same connections `before`; a connection made anew began at 0."""
    earlier = {(one.node, one.connection): one for one in before}
    result = []
    for one in now:
        first = earlier.get((one.node, one.connection))
        renewed = first is None or any(getattr(one, name) < getattr(first, name) for name in ADDED)
        if first is None or renewed:
            result.append(one)
            continue
        result.append(replace(one, **{name: getattr(one, name) - getattr(first, name) for name in ADDED}))
    return tuple(result)


def by_nic(connections: Iterable[ConnectionCounters]) -> dict[str, ConnectionCounters]:
    """The sums over the connections of each NIC."""
    sums: dict[str, ConnectionCounters] = {}
    names = [member.name for member in fields(ConnectionCounters) if member.name not in ("node", "connection", "nic")]
    for one in connections:
        total = sums.get(one.nic, ConnectionCounters("", 0, one.nic))
        sums[one.nic] = replace(total, **{name: getattr(total, name) + getattr(one, name) for name in names})
    return sums
