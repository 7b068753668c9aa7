"""A service for every test, over a director of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs lanewise[director]")
pytest.importorskip("argon2", reason="needs lanewise[director]")

from director.directors import Running, simulated
from director.redfish.services import Client, serving


@pytest.fixture
def client(start: Callable[..., Running], tmp_path: Path) -> Iterator[Client]:
    with serving(start(simulated()), tmp_path) as one:
        yield one
