"""Backup while the director runs, in one text format for every database, and restore into an empty one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from lanewise.director.errors import StoreError
from lanewise.director.store.connection import Database
from lanewise.director.store.tables import counters, metadata, sessions
from lanewise.errors import FormatError

FORMAT = "lanewise director backup"
# A restored login would be one that its user has ended, perhaps.
TABLES = [table for table in metadata.sorted_tables if table is not sessions]


def dump(database: Database) -> Iterator[str]:
    """One state of a database as lines of JSON: a heading, a line a row, and how many rows there were."""
    with database.snapshot() as connection:
        yield json.dumps({"format": FORMAT, "migration": _migration(connection)})
        count = 0
        for table in TABLES:
            for row in connection.execute(sa.select(table).order_by(*table.primary_key.columns)):
                yield json.dumps({"table": table.name, "row": row._asdict()}, ensure_ascii=False)
                count += 1
        yield json.dumps({"rows": count})


def restore(database: Database, lines: Iterable[str]) -> int:
    """Put a backup into an empty database, all of it or nothing; how many rows.

    StoreError if the database holds anything or is at another migration, FormatError if the backup is not whole.
    """
    tables = {table.name: table for table in TABLES}
    heading, *rest = list(map(_line, lines)) or [{}]
    if heading.get("format") != FORMAT:
        raise FormatError("not a backup of a director", hint="make one with `lanewise director backup`")
    rows, ending = rest[:-1], rest[-1] if rest else {}
    if ending.get("rows") != len(rows) or any(row.get("table") not in tables for row in rows):
        raise FormatError("the backup is cut off", hint="take another copy of it")

    def work(connection: sa.Connection) -> int:
        _check_empty(connection, database)
        if _migration(connection) != heading["migration"]:
            cause = f"the backup is of migration {heading['migration']}, {database} of {_migration(connection)}"
            raise StoreError(cause, hint="restore it with the version of Lanewise that made it, then upgrade")
        connection.execute(sa.delete(counters))
        for name, table in tables.items():
            content = [row["row"] for row in rows if row["table"] == name]
            if content:
                connection.execute(sa.insert(table), content)
        return len(rows)

    return database.write(work)


def copy_file(database: Database, path: Path) -> None:
    """A copy of a SQLite database by its online backup: a database itself; StoreError if it is no SQLite or exists."""
    if not database.sqlite:
        raise StoreError(f"{database} is no SQLite database", hint="back it up as text")
    if path.exists():
        raise StoreError(f"{path} exists", hint="name another file")
    with closing(sqlite3.connect(database.path)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)


def _line(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise FormatError("not a backup of a director", hint="make one with `lanewise director backup`")
    return value


def _migration(connection: sa.Connection) -> str:
    version: str = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one()
    return version


def _check_empty(connection: sa.Connection, database: Database) -> None:
    used = [row.name for row in connection.execute(sa.select(counters).where(counters.c.value > 0))]
    tables = [table for table in metadata.sorted_tables if table is not counters]
    used += [table.name for table in tables if connection.execute(sa.select(table).limit(1)).first() is not None]
    if used:
        raise StoreError(f"{database} is not empty: it has {', '.join(sorted(used))}", hint="restore into a new one")
