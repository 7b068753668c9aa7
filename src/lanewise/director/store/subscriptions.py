"""Event subscriptions and the audit log, as a director's database keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from lanewise.director.store import tables
from lanewise.director.store.connection import Database
from lanewise.director.store.record_table import RecordTable
from lanewise.errors import UnknownName


@dataclass(frozen=True, slots=True)
class SubscriptionRecord:
    """A target of pushed events: its `settings` as the service defined them, and the last event delivered to it."""

    name: str
    account: str
    destination: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    delivered: int = 0
    failures: int = 0
    version: int = 1


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One request that changed, or tried to change, something; `time` in s since 1970."""

    time: float
    account: str
    address: str
    method: str
    path: str
    status: int
    text: str = ""
    id: int = 0


SUBSCRIPTIONS = RecordTable(tables.subscriptions, SubscriptionRecord)
AUDIT = RecordTable(tables.audit, AuditRecord)
_SUBSCRIPTION, _AUDIT = tables.subscriptions.c, tables.audit.c


class SubscriptionStore(Database):
    """Who gets events, and who did what; every method is one transaction."""

    def subscriptions(self) -> tuple[SubscriptionRecord, ...]:
        """Every subscription, by name."""
        with self.reading() as connection:
            return tuple(SUBSCRIPTIONS.select(connection))

    def put_subscription(self, subscription: SubscriptionRecord, version: int | None = None) -> SubscriptionRecord:
        """Add or replace a subscription; StaleVersion if it is not at `version` (0: must be new)."""
        return self.write(lambda connection: SUBSCRIPTIONS.put_version(connection, subscription, version))

    def drop_subscription(self, name: str) -> None:
        """Remove a subscription; UnknownName if there is none."""
        if not self.write(lambda connection: SUBSCRIPTIONS.delete(connection, name)):
            raise UnknownName(f"unknown subscription '{name}'")

    def delivered(self, name: str, event: int, failures: int = 0) -> None:
        """Note the last event delivered to a subscription, and failures in a row since; its version stays."""
        statement = sa.update(tables.subscriptions).where(_SUBSCRIPTION.name == name)
        self.write(lambda connection: connection.execute(statement.values(delivered=event, failures=failures)))

    def audit(self, record: AuditRecord) -> None:
        """Append to the audit log; its id is the next number."""
        self.write(
            lambda connection: AUDIT.insert(connection, [replace(record, id=self.next_number(connection, "audit"))])
        )

    def audited(self, after: int = 0, most: int = 1000) -> tuple[AuditRecord, ...]:
        """Records of the audit log with an id above `after`, oldest first."""
        with self.reading() as connection:
            return tuple(AUDIT.select(connection, _AUDIT.id > after, most=most))
