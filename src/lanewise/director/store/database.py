"""A director's store: the pool, its tasks and events, its users, in one database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import sqlalchemy as sa

from lanewise.director.records import Event, Task
from lanewise.director.store import tables
from lanewise.director.store.accounts import AccountStore
from lanewise.director.store.changes import (
    BLOCKS,
    CLAIMS,
    COMPOSITIONS,
    EVENTS,
    INTENTS,
    RESERVATIONS,
    TASKS,
    Change,
    repeated,
)
from lanewise.director.store.rows import BlockRow, ClaimRow, CompositionRow, IntentRow
from lanewise.director.store.subscriptions import SubscriptionStore
from lanewise.pool.model import Reservation

_Result = TypeVar("_Result")


class _NothingWritten(Exception):
    """Rolls back a change that only read, so that versions have no gaps."""


@dataclass(frozen=True)
class PoolRows:
    """What is live in the pool's tables at one version."""

    version: int
    blocks: tuple[BlockRow, ...]
    claims: tuple[ClaimRow, ...]
    compositions: tuple[CompositionRow, ...]
    reservations: tuple[Reservation, ...]
    intents: tuple[IntentRow, ...]


class Store(AccountStore, SubscriptionStore):
    """An open database with its schema at the newest migration; every method is one transaction."""

    def change(
        self, now: float, work: Callable[[Change], _Result], after: Callable[[Change], None] = lambda _: None
    ) -> _Result:
        """What `work` returns, once all it did to its Change is committed; what it raises, and then nothing is kept.

        `after` gets the Change once committed, one change after the other, in the order of their versions. A change
        that wrote nothing takes no version, and `after` is not called.
        """

        def both(connection: sa.Connection) -> tuple[_Result, Change]:
            change = Change(connection, now)
            result = work(change)
            if not change.written:
                raise _NothingWritten(result)
            return result, change

        try:
            return self.write(both, lambda pair: after(pair[1]))[0]
        except _NothingWritten as nothing:
            result: _Result = nothing.args[0]
            return result

    def pool_rows(self) -> PoolRows:
        """Blocks, live claims and compositions, active reservations and open intents, at one version."""
        version = sa.select(tables.counters.c.value).where(tables.counters.c.name == "version")
        with self.snapshot() as connection:
            return PoolRows(
                connection.execute(version).scalar_one(),
                tuple(BLOCKS.select(connection)),
                tuple(CLAIMS.select(connection, tables.LIVE_CLAIM)),
                tuple(COMPOSITIONS.select(connection, tables.LIVE_COMPOSITION)),
                tuple(RESERVATIONS.select(connection, tables.ACTIVE_RESERVATION)),
                tuple(INTENTS.select(connection, tables.OPEN_INTENT)),
            )

    def repeated(self, client: str, key: str, fingerprint: str) -> str | None:
        """The task or reservation that a request with this key led to, None if it is new; KeyReused if it differed."""
        if not key:
            return None
        with self.reading() as connection:
            return repeated(connection, client, key, fingerprint)

    def task(self, name: str) -> Task:
        """The task of that name; UnknownName if there is none."""
        with self.reading() as connection:
            return TASKS.named(connection, name)

    def tasks(self, most: int = 1000) -> tuple[Task, ...]:
        """The newest tasks, oldest of them first."""
        columns = tables.tasks.c
        with self.reading() as connection:
            newest = TASKS.select(connection, order=(columns.created.desc(), columns.name.desc()), most=most)
        return tuple(reversed(newest))

    def servers(self) -> dict[str, str]:
        """The server of each composition that there is or was, by name; the last one of that name counts."""
        columns = tables.compositions.c
        query = sa.select(columns.name, columns.server).order_by(columns.since)
        with self.reading() as connection:
            return {row.name: row.server for row in connection.execute(query)}

    def reservation(self, name: str) -> Reservation:
        """A reservation in any state; UnknownName if there is none."""
        with self.reading() as connection:
            return RESERVATIONS.named(connection, name)

    def events(self, after: int = 0, most: int = 1000) -> tuple[Event, ...]:
        """Events with an id above `after`, oldest first."""
        with self.reading() as connection:
            return tuple(EVENTS.select(connection, tables.events.c.id > after, most=most))

    def prune(self, before: float) -> int:
        """Remove what ended before then (s since 1970): events, tasks, keys, released claims; how many rows."""
        ended = (
            sa.delete(tables.events).where(tables.events.c.time < before),
            sa.delete(tables.tasks).where(tables.tasks.c.state != "Running", tables.tasks.c.changed < before),
            sa.delete(tables.idempotency_keys).where(tables.idempotency_keys.c.created < before),
            sa.delete(tables.compositions).where(
                tables.compositions.c.state == "Released", tables.compositions.c.changed < before
            ),
            sa.delete(tables.reservations).where(
                tables.reservations.c.state != "Active", tables.reservations.c.expires < before
            ),
            sa.delete(tables.intents).where(tables.intents.c.state == "Ended"),
            sa.delete(tables.claims).where(tables.claims.c.state == "Released"),
            sa.delete(tables.audit).where(tables.audit.c.time < before),
        )
        return self.write(lambda connection: sum(connection.execute(statement).rowcount for statement in ended))
