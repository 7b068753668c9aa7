"""One change of the pool: what it reads and writes within its transaction, and the records that it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from lanewise.director.errors import BlockInUse, KeyReused, OperationRunning, StaleVersion
from lanewise.director.records import Event, EventKind, Health, Task
from lanewise.director.store import tables
from lanewise.director.store.connection import NEXT_NUMBER
from lanewise.director.store.record_table import RecordTable
from lanewise.director.store.rows import (
    BlockRow,
    ClaimKind,
    ClaimRow,
    ClaimState,
    CompositionRow,
    Condition,
    IntentRow,
    IntentState,
    KeyRow,
)
from lanewise.errors import Contradiction, UnknownName
from lanewise.pool.model import CompositionState, Reservation, ReservationState
from lanewise.pool.states import check_composition

BLOCKS = RecordTable(tables.blocks, BlockRow)
CLAIMS = RecordTable(tables.claims, ClaimRow)
COMPOSITIONS = RecordTable(tables.compositions, CompositionRow)
INTENTS = RecordTable(tables.intents, IntentRow)
TASKS = RecordTable(tables.tasks, Task)
EVENTS = RecordTable(tables.events, Event)
KEYS = RecordTable(tables.idempotency_keys, KeyRow)
RESERVATIONS = RecordTable(tables.reservations, Reservation)

Written = BlockRow | ClaimRow | CompositionRow | Reservation | Task | IntentRow | Event
_TABLES: dict[type, RecordTable[Any]] = {
    BlockRow: BLOCKS, ClaimRow: CLAIMS, CompositionRow: COMPOSITIONS, Reservation: RESERVATIONS, Task: TASKS,
    IntentRow: INTENTS,
}  # fmt: skip
_CLAIM, _LIVE = tables.claims.c, tables.LIVE_CLAIM
_NAMES: sa.BindParameter[Any] = sa.bindparam("names", expanding=True)
_TOUCH = (
    sa.update(tables.blocks)
    .where(tables.blocks.c.name.in_(_NAMES))
    .values(version=sa.bindparam("version"))
    .returning(tables.blocks)
)
_HOLDERS = sa.select(tables.claims).where(_LIVE, _CLAIM.kind == sa.bindparam("kind"), _CLAIM.name.in_(_NAMES))
_CLAIMS_OF = sa.select(tables.claims).where(_LIVE, _CLAIM.composition == sa.bindparam("name")).order_by(
    _CLAIM.since, _CLAIM.name
)  # fmt: skip
_COMPOSITION = sa.select(tables.compositions).where(
    tables.LIVE_COMPOSITION, tables.compositions.c.name == sa.bindparam("name")
)
_END_INTENT = (
    sa.update(tables.intents)
    .where(tables.OPEN_INTENT, tables.intents.c.task == sa.bindparam("name"))
    .values(state=IntentState.ENDED.value)
)
_OVERDUE = sa.select(tables.reservations).where(
    tables.ACTIVE_RESERVATION, tables.reservations.c.expires <= sa.bindparam("now")
)


class Change:
    """The transaction of one change. It takes the pool's next `version` first, so changes commit in that order.

    `written` lists what it wrote, for the view in memory. `now` is the time of the change in s since 1970.
    """

    def __init__(self, connection: sa.Connection, now: float) -> None:
        self._connection, self.now = connection, now
        self.written: list[Written] = []
        self.version: int = connection.execute(NEXT_NUMBER, {"counter": "version"}).scalar_one()
        self._reported = False

    def report(
        self, kind: EventKind, text: str, *, severity: Health = Health.OK, composition: str | None = None,
        blocks: Sequence[str] = (), reservation: str | None = None, task: str | None = None,
    ) -> None:  # fmt: skip
        """Put an event into the outbox; every change has at least one, and further ones take versions of their own."""
        if self._reported:
            self.version = self._connection.execute(NEXT_NUMBER, {"counter": "version"}).scalar_one()
        self._reported = True
        event = Event(self.version, kind, self.now, text, severity, composition, tuple(blocks), reservation, task)
        EVENTS.insert(self._connection, [event])
        self.written.append(event)

    def insert(self, *records: Written) -> None:
        """Add records of one type."""
        _TABLES[type(records[0])].insert(self._connection, records)
        self.written.extend(records)

    def update(self, *records: Written) -> None:
        """Write records of one type over those of the same key."""
        if records:
            _TABLES[type(records[0])].update(self._connection, records)
            self.written.extend(records)

    def read_blocks(self, names: Iterable[str]) -> list[BlockRow]:
        """These blocks, of those that exist."""
        return BLOCKS.select(self._connection, tables.blocks.c.name.in_(sorted(names)))

    def touch(self, names: Iterable[str]) -> list[BlockRow]:
        """Blocks with this change's version: UnknownName for one that does not exist."""
        wanted = sorted(names)
        if not wanted:
            return []
        rows = BLOCKS.records(self._connection.execute(_TOUCH, {"names": wanted, "version": self.version}))
        missing = set(wanted) - {row.name for row in rows}
        if missing:
            raise UnknownName(f"unknown block '{min(missing)}'")
        self.written.extend(rows)
        return rows

    def check(self, names: Iterable[str]) -> None:
        """Touch blocks that are to be handed out; Contradiction if one is Failed or Unavailable."""
        for row in self.touch(names):
            if row.condition is not Condition.OK:
                raise Contradiction(f"block {row.name} is {row.condition}: {row.note}")

    def claim(
        self, names: Iterable[str], state: ClaimState, *, composition: str | None = None,
        reservation: str | None = None, server: str | None = None,
    ) -> None:  # fmt: skip
        """Claim blocks that are OK, and a server, that nobody holds; BlockInUse or Contradiction otherwise.

        The index of live claims decides, not what anybody read before. After an error the change must not go on.
        """
        wanted = sorted(names)
        owner, version = (composition, reservation), self.version
        fresh = [ClaimRow(ClaimKind.BLOCK, name, version, *owner, state, "", version) for name in wanted]
        if server is not None:  # a server is composed as soon as its claim is there
            held = ClaimState.RESERVED if composition is None else ClaimState.COMPOSED
            fresh.append(ClaimRow(ClaimKind.SERVER, server, version, *owner, held, "", version))
        self.check(wanted)
        try:
            with self._savepoint():
                CLAIMS.insert(self._connection, fresh)
        except IntegrityError:
            live = [*self.holders(wanted), *self.holders([server] if server else [], ClaimKind.SERVER)]
            holder = next(row for row in live if row not in fresh)
            raise BlockInUse(holder.name, holder.holder) from None
        self.written.extend(fresh)

    def _savepoint(self) -> AbstractContextManager[object]:
        """PostgreSQL gives up a whole transaction after an error; SQLite goes on."""
        postgres = self._connection.dialect.name != "sqlite"
        return self._connection.begin_nested() if postgres else nullcontext()

    def holders(self, names: Iterable[str], kind: ClaimKind = ClaimKind.BLOCK) -> list[ClaimRow]:
        """The live claims on these blocks or servers."""
        wanted = {"names": list(names), "kind": kind.value}
        return sorted(CLAIMS.records(self._connection.execute(_HOLDERS, wanted)), key=lambda row: row.name)

    def claims_of(self, composition: str) -> list[ClaimRow]:
        """The live claims of a composition, on its server and its blocks, oldest first."""
        return CLAIMS.records(self._connection.execute(_CLAIMS_OF, {"name": composition}))

    def claims_of_reservation(self, name: str) -> list[ClaimRow]:
        """The live claims of a reservation, on its server and its blocks."""
        return CLAIMS.select(self._connection, _LIVE, _CLAIM.reservation == name)

    def set_claims(self, claims: Iterable[ClaimRow], state: ClaimState) -> None:
        """Give claims another state, and their blocks this change's version."""
        rows = [replace(claim, state=state, version=self.version) for claim in claims]
        self.update(*rows)
        self.touch(row.name for row in rows if row.kind is ClaimKind.BLOCK)

    def end_intent(self, task: str) -> bool:
        """Whether an intent was open, which is ended now."""
        return self._connection.execute(_END_INTENT, {"name": task}).rowcount == 1

    def composition(self, name: str, version: int | None = None) -> CompositionRow:
        """A composition that is not Released; UnknownName if there is none, StaleVersion if not at `version`."""
        rows = COMPOSITIONS.records(self._connection.execute(_COMPOSITION, {"name": name}))
        if not rows:
            raise UnknownName(f"unknown composition '{name}'")
        if version is not None and rows[0].version != version:
            raise StaleVersion(f"composition {name}", version, rows[0].version)
        return rows[0]

    def insert_composition(self, row: CompositionRow) -> None:
        """Add a composition; Contradiction if one of that name is there."""
        try:
            with self._savepoint():
                COMPOSITIONS.insert(self._connection, [row])
        except IntegrityError:
            raise Contradiction(f"composition {row.name} exists already", hint="choose another name") from None
        self.written.append(row)

    def change_composition(self, row: CompositionRow, state: CompositionState, **changes: Any) -> None:
        """Write a composition in the same or another state; Contradiction if it may not go there."""
        if state is not row.state:
            check_composition(row.name, row.state, state)
        self.update(replace(row, state=state, changed=self.now, version=self.version, **changes))

    def open_intent(self, intent: IntentRow) -> None:
        """Keep what a task is about to do; OperationRunning if another one on that composition is open."""
        try:
            with self._savepoint():
                INTENTS.insert(self._connection, [intent])
        except IntegrityError:
            raise OperationRunning(intent.composition) from None
        self.written.append(intent)

    def task(self, name: str) -> Task:
        """A task; UnknownName if there is none."""
        row = TASKS.one(self._connection, tables.tasks.c.name == name)
        if row is None:
            raise UnknownName(f"unknown task '{name}'")
        return row

    def repeated(self, client: str, key: str, fingerprint: str) -> str | None:
        """What a request with this key led to before, None if it is new; KeyReused if it was another request."""
        return repeated(self._connection, client, key, fingerprint)

    def remember(self, client: str, key: str, fingerprint: str, result: str) -> None:
        """Keep what a request with a key led to; no key, nothing kept."""
        if key:
            KEYS.insert(self._connection, [KeyRow(client, key, fingerprint, result, self.now)])

    def reservation(self, name: str) -> Reservation:
        """A reservation in any state; UnknownName if there is none."""
        row = RESERVATIONS.one(self._connection, tables.reservations.c.name == name)
        if row is None:
            raise UnknownName(f"unknown reservation '{name}'")
        return row

    def expire(self) -> list[str]:
        """End the reservations whose time is over, in this transaction; their names."""
        overdue = RESERVATIONS.records(self._connection.execute(_OVERDUE, {"now": self.now}))
        for row in overdue:
            self.end_reservation(row, ReservationState.EXPIRED)
        return [row.name for row in overdue]

    def end_reservation(self, row: Reservation, state: ReservationState) -> None:
        """Give a reservation its last state and let its claims go."""
        self.set_claims(self.claims_of_reservation(row.name), ClaimState.RELEASED)
        self.update(replace(row, state=state))
        self.report(
            EventKind.RESERVATION_ENDED, f"reservation {row.name} is {state.value.lower()}", reservation=row.name,
            blocks=row.blocks,
        )  # fmt: skip


def repeated(connection: sa.Connection, client: str, key: str, fingerprint: str) -> str | None:
    """What a request with this key led to before, None if it is new; KeyReused if it was another request."""
    columns = tables.idempotency_keys.c
    row = KEYS.one(connection, columns.client == client, columns.key == key) if key else None
    if row is not None and row.fingerprint != fingerprint:
        hint = "use a new key for a new request"
        raise KeyReused(f"the key '{key}' was used for another request", hint=hint)
    return None if row is None else row.result
