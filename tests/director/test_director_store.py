"""The director's database: migrations, races for blocks, users, backup; on SQLite and, where installed, PostgreSQL.

More clients and rounds: benchmarks/director_races.py.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from director import postgres
from director.races import fill, race_at_director, race_for_tables

from lanewise.director.errors import BlockInUse, StaleVersion, StoreError
from lanewise.director.records import EventKind
from lanewise.director.store.accounts import AccountRecord, RoleRecord, SessionRecord
from lanewise.director.store.backup import TABLES, copy_file, dump, restore
from lanewise.director.store.changes import Change
from lanewise.director.store.database import Store
from lanewise.director.store.rows import ClaimState
from lanewise.director.store.subscriptions import AuditRecord, SubscriptionRecord
from lanewise.director.store.tables import metadata
from lanewise.errors import Contradiction, FormatError, LanewiseError, UnknownName

CLIENTS, BLOCKS = 8, 24


def test_the_database_grants_each_block_once(database: Path) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        result = race_for_tables(str(database), CLIENTS, BLOCKS, 1, pool)
    assert result.faults(BLOCKS) == []
    assert result.refused


def test_a_director_grants_each_block_once(database: Path) -> None:
    assert race_at_director(str(database), CLIENTS, BLOCKS, 1).faults(BLOCKS) == []


def test_postgresql_does_what_sqlite_does(database: Path) -> None:
    if postgres.missing():
        pytest.skip(postgres.missing())
    server = postgres.PostgresServer()
    try:
        with ThreadPoolExecutor(CLIENTS) as pool:
            result = race_for_tables(server.new_database(), CLIENTS, BLOCKS, 1, pool)
        assert result.faults(BLOCKS) == []
        assert result.refused
        url = server.new_database()
        assert race_at_director(url, CLIENTS, BLOCKS, 1).faults(BLOCKS) == []
        one, other = Store(url), Store(url)
        one.hold()
        with pytest.raises(StoreError, match="another director uses"):
            other.hold(patience=0.1)
        one.release_hold()
        other.hold()
        assert_tables_as_migrated(one)
        restored = Store(database)
        lines = list(dump(one))
        restore(restored, lines)
        assert list(dump(restored)) == lines
        back = Store(server.new_database())
        restore(back, dump(restored))
        assert list(dump(back)) == lines
        for store in (one, other, restored, back):
            store.close()
    finally:
        server.close()


def assert_tables_as_migrated(store: Store) -> None:
    """The migrations lead to what `tables` says."""
    with store.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_migrations_lead_to_the_tables_and_are_run_once(database: Path) -> None:
    for _ in range(2):
        store = Store(database)
        assert_tables_as_migrated(store)
        store.close()


def test_a_commit_survives_the_machine(database: Path) -> None:
    store = Store(database)
    with store.reading() as connection:
        pragmas = ("journal_mode", "synchronous")
        settings = [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in pragmas]
    assert settings == ["wal", 2]
    store.close()


def test_a_change_is_there_whole_or_not_at_all(database: Path) -> None:
    store = Store(database)
    fill(store, 3)
    before = store.pool_rows()

    def work(change: Change) -> None:
        change.claim(["gpu0"], ClaimState.COMPOSED, composition="a")
        change.report(EventKind.POOL_CHANGED, "claimed")
        raise Contradiction("not so")

    with pytest.raises(Contradiction):
        store.change(0.0, work)
    assert store.pool_rows() == before
    assert store.change(0.0, lambda change: change.expire()) == []
    assert store.pool_rows() == before  # not even a version
    with pytest.raises(UnknownName, match="gpu9"):
        store.change(0.0, lambda change: change.claim(["gpu9"], ClaimState.COMPOSED, composition="a"))
    store.close()


def test_a_change_that_fails_leaves_those_committed_with_it(database: Path) -> None:
    store = Store(database)
    fill(store, 40)

    def claim(number: int) -> str:
        def work(change: Change) -> None:
            change.claim([f"gpu{number % 20}"], ClaimState.COMPOSED, composition=f"c{number}")
            change.report(EventKind.POOL_CHANGED, "claimed")

        try:
            store.change(0.0, work)
        except BlockInUse:
            return ""
        return f"gpu{number % 20}"

    with ThreadPoolExecutor(16) as pool:
        granted = sorted(filter(None, pool.map(claim, range(40))))
    assert granted == sorted(f"gpu{number}" for number in range(20))
    rows = store.pool_rows()
    assert sorted(claim.name for claim in rows.claims) == granted
    assert [event.id for event in store.events()] == list(range(1, rows.version + 1))
    store.close()


@pytest.mark.parametrize(
    "url", ["mysql://there/x", "://", "sqlite://", "postgresql://nobody@/x?host=/nowhere", "/no/such/folder/x.db"]
)
def test_a_database_that_cannot_be_opened_is_an_error(url: str) -> None:
    with pytest.raises(LanewiseError) as caught:
        Store(url)
    assert "\n" not in str(caught.value)


def test_a_password_is_not_said() -> None:
    with pytest.raises(LanewiseError) as caught:
        Store("postgresql://eve:secret@/x?host=/nowhere")
    assert "secret" not in caught.value.show()


def filled(store: Store) -> None:
    """Something in every table of users."""
    store.put_role(RoleRecord("Operator", ("Login", "ConfigureComponents"), predefined=True))
    store.put_account(AccountRecord("eve", "hash", "Operator"))
    store.add_session(SessionRecord("s1", "eve", "token", 5.0, 5.0))
    store.put_subscription(SubscriptionRecord("u1", "eve", "https://there/", {"Context": "é"}))
    store.audit(AuditRecord(1.5, "eve", "127.0.0.1", "POST", "/redfish", 201, "é"))


def test_a_backup_is_restored_into_an_empty_database_alone(database: Path, template: Path, tmp_path: Path) -> None:
    race_at_director(str(database), 2, 8, 1)
    store = Store(database)
    filled(store)
    lines = list(dump(store))
    other = Store(tmp_path / "other.db")
    assert restore(other, lines) == len(lines) - 2
    assert list(dump(other)) == lines
    assert other.pool_rows() == store.pool_rows()
    assert other.sessions() == ()  # nobody is logged in by a restore
    with pytest.raises(StoreError, match="is not empty: it has accounts"):
        restore(other, lines)
    copy_file(store, tmp_path / "copy.db")
    copied = Store(tmp_path / "copy.db")
    assert list(dump(copied)) == lines
    with pytest.raises(StoreError, match=r"copy\.db exists"):
        copy_file(store, tmp_path / "copy.db")
    unused = {"reservations", "idempotency_keys"}
    assert {json.loads(line)["table"] for line in lines[1:-1]} == {table.name for table in TABLES} - unused
    for each in (store, other, copied):
        each.close()


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "migration", "table"])
def test_a_damaged_backup_changes_nothing(database: Path, tmp_path: Path, damage: str) -> None:
    store = Store(database)
    filled(store)
    lines = list(dump(store))
    other = Store(tmp_path / "other.db")
    empty = list(dump(other))
    lines = {
        "cut": lines[:-2], "empty": [], "text": ["not JSON"],
        "migration": [json.dumps(json.loads(lines[0]) | {"migration": "0000"}), *lines[1:]],
        "table": [lines[0], json.dumps({"table": "sqlite_master", "row": {}}), *lines[2:]],
    }[damage]  # fmt: skip
    with pytest.raises((FormatError, StoreError)):
        restore(other, lines)
    assert list(dump(other)) == empty
    for each in (store, other):
        each.close()


def test_users_and_what_they_may_not_do(database: Path) -> None:
    store = Store(database)
    filled(store)
    assert store.accounts() == (AccountRecord("eve", "hash", "Operator", version=1),)
    with pytest.raises(StaleVersion):
        store.put_account(AccountRecord("eve", "other", "Operator"), version=0)
    assert store.put_account(AccountRecord("eve", "other", "Operator"), version=1).version == 2
    assert store.count_login("eve", failed=True, locked_until=9.0).failed_logins == 1
    assert store.count_login("eve", failed=False) == AccountRecord("eve", "other", "Operator", version=2)
    for refused in (lambda: store.drop_role("Operator"), lambda: store.put_role(RoleRecord("Operator", ()))):
        with pytest.raises(Contradiction):
            refused()
    store.use_session("s1", 8.0)
    assert store.sessions()[0].used == 8.0
    with pytest.raises(UnknownName):
        store.add_session(SessionRecord("s2", "bob", "token2", 5.0, 5.0))
    assert store.drop_sessions(unused_since=8.0) == 0
    store.drop_account("eve", version=2)
    assert (store.accounts(), store.sessions()) == ((), ())
    with pytest.raises(UnknownName):
        store.drop_account("eve")
    store.delivered("u1", 7, failures=2)
    (subscription,) = store.subscriptions()
    assert (subscription.delivered, subscription.failures, subscription.version) == (7, 2, 1)
    assert store.put_subscription(replace(subscription, destination="https://else/"), version=1).version == 2
    store.drop_subscription("u1")
    with pytest.raises(UnknownName):
        store.drop_subscription("u1")
    assert [(record.id, record.text) for record in store.audited()] == [(1, "é")]
    store.close()


def test_what_ended_long_ago_is_pruned(database: Path) -> None:
    race_at_director(str(database), 2, 8, 1)
    store = Store(database)
    live = store.pool_rows()
    assert store.prune(before=float("inf")) > 0
    assert (store.events(), store.tasks(), store.pool_rows()) == ((), (), live)
    with store.reading() as connection:
        assert connection.execute(sa.select(metadata.tables["intents"])).all() == []
    store.close()
