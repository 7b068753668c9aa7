"""The connection to a director's database: SQLite or PostgreSQL, migrated, one writer at a time, one director."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from lanewise.director.errors import StoreError
from lanewise.director.store.group_commit import GroupCommit
from lanewise.director.store.tables import counters
from lanewise.errors import LanewiseError, MissingDependency

_Result = TypeVar("_Result")
HOLD_NUMBER = 0x6C616E65  # of PostgreSQL's advisory lock: 'lane'
BUSY_SECONDS = 30.0  # another process may hold SQLite's write lock for so long


class Database:
    """An open database at the newest migration; `url` is as given, without its password in messages."""

    def __init__(self, url: str | Path) -> None:
        """A path or `sqlite:///path`, or `postgresql://user@host/name`; StoreError if it cannot be opened."""
        self._url = _parsed(url)
        self.sqlite = self._url.get_backend_name() == "sqlite"
        self._group = GroupCommit(self._writing)
        self._hold: Any = None
        with self._explained("cannot be opened"):
            self._engine = _engine(self._url)
            self._upgrade()

    def __str__(self) -> str:
        return self._url.render_as_string(hide_password=True)

    def close(self) -> None:
        """Give up the hold and close every connection."""
        self.release_hold()
        self._engine.dispose()

    def hold(self, patience: float = 3.0) -> None:
        """Make this process the only director of the database until `close`, or its end; StoreError if one is there.

        A PostgreSQL server is given `patience` s to notice that an earlier director was killed. Only directors ask for
        this; clients of the tables alone, such as a backup, do not need it.
        """
        if self._hold is None:
            with self._explained("cannot be locked"):
                self._hold = _file_hold(self._url) if self.sqlite else _server_hold(self._engine, patience)
        if self._hold is None:
            hint = "end that director first, or give this one a database of its own"
            raise StoreError(f"another director uses {self}", hint=hint)

    def release_hold(self) -> None:
        """Let another director have the database."""
        if self._hold is not None:
            hold, self._hold = self._hold, None
            if not self.sqlite:
                hold.invalidate()  # ends the connection, and with it the lock, where a pool would keep both
            hold.close()

    def write(
        self, work: Callable[[sa.Connection], _Result], after: Callable[[_Result], None] = lambda _: None
    ) -> _Result:
        """What `work` returns once all it wrote is committed; what it raises otherwise, with nothing kept.

        `after` is called with it, in the order of commits, before any caller that waits for a later one goes on.
        """
        with self._explained("failed"):
            return self._group.run(work, after)

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with self._engine.connect() as connection, connection.execution_options(lanewise_writes=True).begin():
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """One transaction that reads."""
        with self._explained("failed"), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        """One transaction that reads one state of the database, also over several statements."""
        with self.reading() as connection:
            if not self.sqlite:  # SQLite's transactions are so by themselves
                connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
            yield connection

    @property
    def path(self) -> str:
        """The file of a SQLite database."""
        return self._url.database or ""

    def next_number(self, connection: sa.Connection, counter: str) -> int:
        """The next number of a counter; whoever takes it first in a transaction commits before all who ask later."""
        number: int = connection.execute(NEXT_NUMBER, {"counter": counter}).scalar_one()
        return number

    def _upgrade(self) -> None:
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", "lanewise.director.store:migrations")
        with self._writing() as connection:
            if not self.sqlite:  # two processes may start at once
                connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({HOLD_NUMBER + 1})"))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            present = set(connection.execute(sa.select(counters.c.name)).scalars())
            missing = [{"name": name, "value": 0} for name in ("version", "audit") if name not in present]
            if missing:
                connection.execute(sa.insert(counters), missing)

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """A StoreError in place of what SQLAlchemy or the driver says, but for conflicts of unique indexes."""
        try:
            yield
        except sa.exc.IntegrityError:
            raise
        except (DBAPIError, OSError) as error:
            cause = str(getattr(error, "orig", error)).strip().split("\n")[0]
            raise StoreError(f"the director's database {self} {what}: {cause}") from error


NEXT_NUMBER = (
    sa.update(counters)
    .where(counters.c.name == sa.bindparam("counter"))
    .values(value=counters.c.value + 1)
    .returning(counters.c.value)
)


def _parsed(url: str | Path) -> sa.URL:
    text = str(url)
    if "://" not in text:
        return sa.URL.create("sqlite", database=text)
    try:
        parsed = sa.make_url(text)
    except sa.exc.ArgumentError:
        raise StoreError(f"'{text}' is no URL of a database", hint=_HINT) from None
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise StoreError(f"a director keeps its state in SQLite or PostgreSQL, not {parsed.drivername}", hint=_HINT)
    return parsed.set(drivername="postgresql+psycopg") if parsed.drivername == "postgresql" else parsed


_HINT = "write a path, sqlite:///PATH or postgresql://USER@HOST/NAME"


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        try:
            return sa.create_engine(url, pool_pre_ping=True)
        except ImportError:
            raise MissingDependency("PostgreSQL needs psycopg", hint="pip install 'lanewise[postgresql]'") from None
    if not url.database or url.database == ":memory:":
        raise LanewiseError("a director's database is a file", hint="name one: director.db")
    engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS}, pool_size=8, max_overflow=-1)
    sa.event.listen(engine, "connect", _configure)
    sa.event.listen(engine, "begin", _begin)
    return engine


def _configure(connection: Any, _: object) -> None:
    """What every SQLite connection needs: our own BEGIN, readers beside a writer, commits that survive a power cut."""
    connection.isolation_level = None
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: sa.Connection) -> None:
    """A writer takes the write lock at once: one that reads first and then writes may be refused by SQLite."""
    immediate = connection.get_execution_options().get("lanewise_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _file_hold(url: sa.URL) -> Any:
    """The open lock file beside a SQLite database, None if another process has it; the kernel frees it at its end."""
    import fcntl

    file = Path(f"{url.database}.lock").open("a")  # noqa: SIM115 - open until the hold is given up
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _server_hold(engine: sa.Engine, patience: float) -> Any:
    """A connection that has the advisory lock, None if another has it; the server frees it when the connection ends."""
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        connection.execute(sa.text(f"SET lock_timeout = {max(1, round(1000 * patience))}"))
        connection.execute(sa.text(f"SELECT pg_advisory_lock({HOLD_NUMBER})"))
    except sa.exc.OperationalError:
        connection.invalidate()
        connection.close()
        return None
    return connection
