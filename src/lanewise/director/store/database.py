"""A database of the director: SQLite in a file by default, PostgreSQL by URL."""

from __future__ import annotations

from pathlib import Path

from lanewise.director.store.accounts import AccountRecord, RoleRecord, SessionRecord
from lanewise.director.store.subscriptions import AuditRecord, SubscriptionRecord


class Store:
    """An open database with its schema at the newest migration; every method is one transaction."""

    def __init__(self, url: str | Path) -> None:
        """A path or `sqlite:///path`, or `postgresql://user@host/name`; StoreError if it cannot be opened."""
        self.url = str(url)
        raise NotImplementedError

    def close(self) -> None:
        """Close every connection."""
        raise NotImplementedError

    def accounts(self) -> tuple[AccountRecord, ...]:
        """Every account, by name."""
        raise NotImplementedError

    def put_account(self, account: AccountRecord, version: int | None = None) -> AccountRecord:
        """Add or replace an account; StaleVersion if it is not at `version` (0: must be new). Returns it as kept."""
        raise NotImplementedError

    def drop_account(self, name: str, version: int | None = None) -> None:
        """Remove an account with its sessions; UnknownName if there is none, StaleVersion if it is not at `version`."""
        raise NotImplementedError

    def count_login(self, name: str, failed: bool, locked_until: float = 0.0) -> AccountRecord:
        """Count a failed login, perhaps locking the account until then, or clear the count after a success."""
        raise NotImplementedError

    def roles(self) -> tuple[RoleRecord, ...]:
        """Every role, by name."""
        raise NotImplementedError

    def put_role(self, role: RoleRecord) -> None:
        """Add or replace a role; Contradiction if the one there is predefined."""
        raise NotImplementedError

    def drop_role(self, name: str) -> None:
        """Remove a role; Contradiction if it is predefined or an account has it."""
        raise NotImplementedError

    def sessions(self) -> tuple[SessionRecord, ...]:
        """Every session, oldest first."""
        raise NotImplementedError

    def add_session(self, session: SessionRecord) -> None:
        """Keep a new session."""
        raise NotImplementedError

    def use_session(self, name: str, now: float) -> None:
        """Note that a session was used at `now` (s since 1970)."""
        raise NotImplementedError

    def drop_sessions(self, *names: str, unused_since: float | None = None) -> int:
        """Remove these sessions, or all unused since then; how many there were."""
        raise NotImplementedError

    def subscriptions(self) -> tuple[SubscriptionRecord, ...]:
        """Every subscription, by name."""
        raise NotImplementedError

    def put_subscription(self, subscription: SubscriptionRecord, version: int | None = None) -> SubscriptionRecord:
        """Add or replace a subscription; StaleVersion if it is not at `version` (0: must be new)."""
        raise NotImplementedError

    def drop_subscription(self, name: str) -> None:
        """Remove a subscription; UnknownName if there is none."""
        raise NotImplementedError

    def delivered(self, name: str, event: int, failures: int = 0) -> None:
        """Note the last event delivered to a subscription, and failures in a row since."""
        raise NotImplementedError

    def audit(self, record: AuditRecord) -> None:
        """Append to the audit log."""
        raise NotImplementedError

    def audited(self, after: int = 0, most: int = 1000) -> tuple[AuditRecord, ...]:
        """Records of the audit log with an id above `after`, oldest first."""
        raise NotImplementedError
