"""The connections of a Frontend as a line of progress, as tables and for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lanewise import units
from lanewise.dispatch.counters import ConnectionCounters, DispatchRates
from lanewise.report.prometheus import family
from lanewise.report.table import Column, Table, number_columns

_PREFIX = "lanewise_dispatch_"
# Field, metric, kind, help.
_METRICS = (
    ("posted", "messages_posted_total", "counter", "Queries posted."),
    ("completed", "messages_received_total", "counter", "Answers received."),
    ("outstanding", "queries_outstanding", "gauge", "Queries posted and not answered."),
    ("lost", "queries_lost_total", "counter", "Queries left unanswered by a lost node."),
    ("stale", "answers_stale_total", "counter", "Answers that came too late for their slot."),
    ("bytes_out", "sent_bytes_total", "counter", "Bytes sent on a connection."),
    ("bytes_in", "received_bytes_total", "counter", "Bytes received on a connection."),
    ("doorbells", "doorbells_total", "counter", "Doorbells rung, each for one or several messages."),
    ("wakeups", "wakeups_total", "counter", "Times that the receiving thread was woken."),
)
_TIME, _LAG = f"{_PREFIX}timestamp_seconds", f"{_PREFIX}lag_seconds"


def progress(rates: DispatchRates) -> str:
    """'12,345 posted, 12,300 completed, 1.84 GB/s, 45 outstanding, 0.3 ms behind'."""
    posted, completed = (sum(getattr(one, name) for one in rates.connections) for name in ("posted", "completed"))
    behind = "no answers" if rates.lag is None else f"{units.readable(rates.lag, 's', 2)} behind"
    bandwidth = units.show(rates.bandwidth, "GB/s", 3)
    return f"{posted:,} posted, {completed:,} completed, {bandwidth}, {rates.outstanding:,} outstanding, {behind}"


def prometheus(rates: DispatchRates, when: float) -> str:
    """All counters of each connection in Prometheus' text format; `when` in s since 1970."""
    labels = [_labels(one) for one in rates.connections]
    families = [
        family(f"{_PREFIX}{metric}", help, [
            (label, float(getattr(one, name))) for label, one in zip(labels, rates.connections, strict=True)
        ], kind)
        for name, metric, kind, help in _METRICS
    ]  # fmt: skip
    if rates.lag is not None:
        families.append(family(_LAG, "Outstanding queries over those completed a second.", [({}, rates.lag)]))
    return "".join([*families, family(_TIME, "When this was written, seconds since 1970.", [({}, when)])])


def _labels(one: ConnectionCounters) -> Mapping[str, str]:
    return {"node": one.node, "connection": str(one.connection), "nic": one.nic}


def connections_table(connections: Sequence[Mapping[str, Any]], seconds: float | None) -> Table:
    """A line a connection: queries and bytes of a run that took so many seconds."""
    table = Table([
        Column("node"), *number_columns("connection"), Column("NIC"), *number_columns("posted", "completed"),
        Column("sent", "GB", number=True), *number_columns("GB/s"), *number_columns("lost"),
        *number_columns("doorbells", "wake-ups", drop_order=1),
    ])  # fmt: skip
    for one in connections:
        rate = units.number(one["bytes_out"] / seconds / 1e9) if seconds else ""
        table.add(one["node"], str(one["connection"]), one["nic"], f"{one['posted']:,}", f"{one['completed']:,}",
                  units.number(one["bytes_out"] / 1e9), rate, f"{one['lost']:,}", f"{one['doorbells']:,}",
                  f"{one['wakeups']:,}")  # fmt: skip
    return table
