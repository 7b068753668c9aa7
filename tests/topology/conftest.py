"""What the topology tests share: a short way to write a system, and to compare two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

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


def facts(system: System) -> dict[str, Any]:
    """Everything a system states except the lines it was read from."""
    return {
        "name": system.name,
        "title": system.title,
        "source": system.source,
        "hosts": system.hosts,
        "devices": [replace(device, place=None) for device in system.devices.values()],
        "links": [replace(link, place=None) for link in system.links],
        "domains": [replace(domain, place=None) for domain in system.domains],
        "volumes": [replace(volume, place=None) for volume in system.volumes.values()],
        "policies": system.policies,
        "parameters": dict(system.parameters),
        "settings": dict(system.settings),
        "assumptions": system.assumptions,
    }
