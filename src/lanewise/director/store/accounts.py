"""Accounts, roles and sessions of a director's users, as its database keeps them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import sqlalchemy as sa

from lanewise.director.errors import StaleVersion
from lanewise.director.store import tables
from lanewise.director.store.connection import Database
from lanewise.director.store.record_table import RecordTable
from lanewise.errors import Contradiction


@dataclass(frozen=True, slots=True)
class AccountRecord:
    """A user: the hash of the password, the role, failed logins since the last success, and until when it is locked.

    Times in s since 1970.
    """

    name: str
    password_hash: str
    role: str
    enabled: bool = True
    failed_logins: int = 0
    locked_until: float = 0.0
    version: int = 1


@dataclass(frozen=True, slots=True)
class RoleRecord:
    """A role and its Redfish privileges; a predefined one cannot be changed."""

    name: str
    privileges: tuple[str, ...]
    predefined: bool = False


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A login: the SHA-256 of its token, never the token; times in s since 1970."""

    name: str
    account: str
    token_hash: str
    created: float
    used: float
    address: str = ""


ACCOUNTS = RecordTable(tables.accounts, AccountRecord)
ROLES = RecordTable(tables.roles, RoleRecord)
SESSIONS = RecordTable(tables.sessions, SessionRecord)
_ACCOUNT, _ROLE, _SESSION = tables.accounts.c, tables.roles.c, tables.sessions.c


class AccountStore(Database):
    """The users of a director; every method is one transaction."""

    def accounts(self) -> tuple[AccountRecord, ...]:
        """Every account, by name."""
        with self.reading() as connection:
            return tuple(ACCOUNTS.select(connection))

    def put_account(self, account: AccountRecord, version: int | None = None) -> AccountRecord:
        """Add or replace an account; StaleVersion if it is not at `version` (0: must be new). Returns it as kept."""
        return self.write(lambda connection: ACCOUNTS.put_version(connection, account, version))

    def drop_account(self, name: str, version: int | None = None) -> None:
        """Remove an account with its sessions; UnknownName if there is none, StaleVersion if it is not at `version`."""

        def work(connection: sa.Connection) -> None:
            before = ACCOUNTS.named(connection, name)
            if version is not None and version != before.version:
                raise StaleVersion(f"account {name}", version, before.version)
            ACCOUNTS.delete(connection, name)
            connection.execute(sa.delete(tables.sessions).where(_SESSION.account == name))

        self.write(work)

    def count_login(self, name: str, failed: bool, locked_until: float = 0.0) -> AccountRecord:
        """Count a failed login, perhaps locking the account until then, or clear the count after a success."""

        def work(connection: sa.Connection) -> AccountRecord:
            before = ACCOUNTS.named(connection, name)
            count = before.failed_logins + 1 if failed else 0
            after = replace(before, failed_logins=count, locked_until=locked_until if failed else 0.0)
            if after != before:
                ACCOUNTS.update(connection, [after])
            return after

        return self.write(work)

    def roles(self) -> tuple[RoleRecord, ...]:
        """Every role, by name."""
        with self.reading() as connection:
            return tuple(ROLES.select(connection))

    def put_role(self, role: RoleRecord) -> None:
        """Add or replace a role; Contradiction if the one there is predefined."""

        def work(connection: sa.Connection) -> None:
            before = ROLES.one(connection, _ROLE.name == role.name)
            if before is not None and before.predefined and before != role:
                raise Contradiction(f"role {role.name} is predefined and cannot be changed")
            (ROLES.insert if before is None else ROLES.update)(connection, [role])

        self.write(work)

    def drop_role(self, name: str) -> None:
        """Remove a role; UnknownName if there is none, Contradiction if it is predefined or an account has it."""

        def work(connection: sa.Connection) -> None:
            before = ROLES.named(connection, name)
            users = ACCOUNTS.select(connection, _ACCOUNT.role == name)
            if before.predefined or users:
                why = "predefined" if before.predefined else f"the role of account {users[0].name}"
                raise Contradiction(f"role {name} is {why} and cannot be removed")
            ROLES.delete(connection, name)

        self.write(work)

    def sessions(self) -> tuple[SessionRecord, ...]:
        """Every session, oldest first."""
        with self.reading() as connection:
            return tuple(SESSIONS.select(connection, order=(_SESSION.created, _SESSION.name)))

    def add_session(self, session: SessionRecord) -> None:
        """Keep a new session; UnknownName if its account is gone."""

        def work(connection: sa.Connection) -> None:
            ACCOUNTS.named(connection, session.account)
            SESSIONS.insert(connection, [session])

        self.write(work)

    def use_session(self, name: str, now: float) -> None:
        """Note that a session was used at `now` (s since 1970); nothing happens if it is gone."""
        statement = sa.update(tables.sessions).where(_SESSION.name == name, _SESSION.used < now).values(used=now)
        self.write(lambda connection: connection.execute(statement))

    def drop_sessions(self, *names: str, unused_since: float | None = None) -> int:
        """Remove these sessions, and those not used since then (s since 1970); how many there were."""
        idle = sa.false() if unused_since is None else _SESSION.used < unused_since
        over = sa.or_(_SESSION.name.in_(names), idle)
        return self.write(lambda connection: connection.execute(sa.delete(tables.sessions).where(over)).rowcount)
