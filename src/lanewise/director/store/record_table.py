"""A table whose rows are records: dataclasses with a field for each column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from pydantic import TypeAdapter

from lanewise.director.errors import StaleVersion
from lanewise.errors import UnknownName

_Record = TypeVar("_Record")


class RecordTable(Generic[_Record]):
    """Records of one type in one table, over a connection whose transaction the caller has begun."""

    def __init__(self, table: sa.Table, record: type[_Record]) -> None:
        self.table = table
        self._adapter: TypeAdapter[_Record] = TypeAdapter(record)
        self._many: TypeAdapter[list[_Record]] = TypeAdapter(list[record])  # type: ignore[valid-type]
        self._keys = [column.name for column in table.primary_key]
        names = [column.name for column in table.c if not column.primary_key]
        values: dict[str, Any] = {name: sa.bindparam(name) for name in names}
        self._insert = sa.insert(table)
        # With RETURNING several rows are one statement, which fails whole, where executemany is one statement a row.
        self._insert_many = self._insert.returning(next(iter(table.primary_key.columns)))
        self._update = sa.update(table).values(values)
        self._delete = sa.delete(table)
        for key in self._keys:  # a column's own name is taken by the values of an update
            self._update = self._update.where(table.c[key] == sa.bindparam(f"key_{key}"))
            self._delete = self._delete.where(table.c[key] == sa.bindparam(f"key_{key}"))

    def insert(self, connection: sa.Connection, records: Iterable[_Record]) -> None:
        """Add records; sqlalchemy's IntegrityError where a unique index forbids one."""
        rows = self._many.dump_python(list(records), mode="json")
        if len(rows) == 1:
            connection.execute(self._insert, rows[0])
        elif rows:
            connection.execute(self._insert_many, rows).all()

    def update(self, connection: sa.Connection, records: Iterable[_Record]) -> None:
        """Write records over those of the same primary key."""
        rows = self._many.dump_python(list(records), mode="json")
        values = [{**{f"key_{key}": row.pop(key) for key in self._keys}, **row} for row in rows]
        if values:
            connection.execute(self._update, values if len(values) > 1 else values[0])

    def delete(self, connection: sa.Connection, *key: Any) -> int:
        """Remove the record of that primary key; how many there were."""
        names = {f"key_{name}": value for name, value in zip(self._keys, key, strict=True)}
        return connection.execute(self._delete, names).rowcount

    def select(
        self, connection: sa.Connection, *where: Any, order: Sequence[Any] = (), most: int | None = None
    ) -> list[_Record]:
        """The records of which all these clauses hold, in the order of the primary key unless said."""
        query = sa.select(self.table).where(*where).order_by(*(order or self.table.primary_key.columns)).limit(most)
        return self.records(connection.execute(query))

    def one(self, connection: sa.Connection, *where: Any) -> _Record | None:
        """The record of which all these clauses hold, None if there is none."""
        row = connection.execute(sa.select(self.table).where(*where)).one_or_none()
        return None if row is None else self._adapter.validate_python(row._asdict())

    def records(self, result: sa.CursorResult[Any]) -> list[_Record]:
        """The records in the rows of a statement that returns whole rows."""
        return self._many.validate_python([row._asdict() for row in result])

    def put_version(self, connection: sa.Connection, record: _Record, version: int | None) -> _Record:
        """Add or replace a record that has a name and a version, which goes up by one; the record as kept.

        StaleVersion if the one there is not at `version` (0: there must be none; None: at any).
        """
        kept: Any = record
        before: Any = self.one(connection, self.table.c.name == kept.name)
        current = 0 if before is None else before.version
        if version is not None and version != current:
            kind = self.table.name.removesuffix("s")
            raise StaleVersion(f"{kind} {kept.name}", version, current)
        fresh: _Record = replace(kept, version=current + 1)
        (self.insert if before is None else self.update)(connection, [fresh])
        return fresh

    def named(self, connection: sa.Connection, name: str) -> _Record:
        """The record of that name; UnknownName if there is none."""
        record = self.one(connection, self.table.c.name == name)
        if record is None:
            raise UnknownName(f"unknown {self.table.name.removesuffix('s')} '{name}'")
        return record
