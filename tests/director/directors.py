"""Directors of a small pool for tests: a simulated fabric, a database made by copying an empty one."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lanewise.api.loading import load_system
from lanewise.director.drivers.sim import SimDriver, SimFaults
from lanewise.director.engine import Director
from lanewise.director.store.database import Store
from lanewise.pool.model import CompositionRequest
from lanewise.pool.states import inconsistencies
from lanewise.topology.model import System


@cache
def small_pool() -> System:
    """Two servers and eight GPUs in a box, all free."""
    return load_system("composable-server-two-hosts", settings={"bound": 0})


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Crash(BaseException):
    """A director ends here, as by SIGKILL; nothing catches it."""


@dataclass
class Running:
    """A director with what it runs over."""

    director: Director
    driver: SimDriver
    store: Store
    clock: Clock

    def close(self) -> None:
        """End the director as a process does: the database is free for the next."""
        self.director.close()
        self.store.close()


def running(path: Path, driver: SimDriver, clock: Clock | None = None) -> Running:
    """A director that has started over a database and a fabric."""
    clock = clock or Clock()
    store = Store(path)
    director = Director(store, driver, clock, pause=lambda attempt: None)
    director.start()
    return Running(director, driver, store, clock)


def simulated(**changes: float) -> SimDriver:
    """The small pool's fabric with faults."""
    return SimDriver(small_pool(), faults=SimFaults(**changes))


def request(*blocks: str, server: str = "host0", name: str = "", extends: str | None = None) -> CompositionRequest:
    """A request for exactly these blocks."""
    return CompositionRequest(blocks=blocks, server=None if extends else server, name=name, extends=extends)


def check(one: Running) -> None:
    """What must hold whenever no operation runs: memory, database and fabric agree, and events have no gaps."""
    view = one.director.view()
    assert inconsistencies(view.pool) == []
    fresh = type(one.director._mirror)()
    fresh.load(one.store.pool_rows())
    fresh.discovered(view.pool.system, view.pool.servers)
    assert fresh.view().blocks == view.blocks
    assert fresh.view().compositions == view.compositions
    assert fresh.view().pool.reservations == view.pool.reservations
    assert [event.id for event in one.store.events()] == list(range(1, view.version + 1))


def copied(template: Path, path: Path) -> Path:
    """A new database: making the tables by their migrations takes longer than a test."""
    return Path(shutil.copyfile(template, path))
