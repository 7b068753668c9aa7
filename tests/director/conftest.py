"""An empty database for every test, copied from one that is made once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from director.directors import Clock, Running, copied, running

pytest.importorskip("sqlalchemy", reason="needs lanewise[director]")
pytest.importorskip("alembic", reason="needs lanewise[director]")

from lanewise.director.drivers.sim import SimDriver
from lanewise.director.store.database import Store


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without a row, whole in its one file."""
    path = tmp_path_factory.mktemp("director") / "empty.db"
    Store(path).close()
    return path


@pytest.fixture
def database(template: Path) -> Iterator[Path]:
    """A database of its own, in memory where Linux offers that: a test does not wait for a busy disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield copied(template, Path(folder) / "director.db")


@pytest.fixture
def start(database: Path) -> Iterator[Callable[..., Running]]:
    """Starts directors over the test's database; all are closed at its end."""
    begun: list[Running] = []

    def begin(driver: SimDriver, clock: Clock | None = None) -> Running:
        begun.append(running(database, driver, clock))
        return begun[-1]

    yield begin
    for one in begun:
        one.close()
