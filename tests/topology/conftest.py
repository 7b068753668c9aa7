"""What the topology tests share: a short way to write a system, and to compare two."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lanewise.errors import LanewiseError
from lanewise.topology.model import System
from lanewise.topology.read import read_system

Shown = Callable[..., str]
HEAD = "lanewise: 1\nsystem: test\n"


@pytest.fixture
def read() -> Callable[..., System]:
    """Reads a description whose first two lines are given."""

    def reader(body: str, **settings: int) -> System:
        return read_system(HEAD + body, "s.yaml", settings)

    return reader


@pytest.fixture
def refused() -> Shown:
    """What a user sees when a description is refused."""

    def shown(body: str, head: str = HEAD, **settings: int) -> str:
        with pytest.raises(LanewiseError) as caught:
            read_system(head + body, "s.yaml", settings)
        return caught.value.show()

    return shown
