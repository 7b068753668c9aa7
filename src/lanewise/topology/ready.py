"""The systems that ship with Lanewise, as package data."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from lanewise.errors import unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lanewise.catalog import Catalog
    from lanewise.topology.model import System

_SUFFIX = ".yaml"


@cache
def _names() -> tuple[str, ...]:
    from importlib.resources import files  # here, so that importing the model stays cheap

    folder = files("lanewise").joinpath("data", "systems")
    return tuple(sorted(entry.name.removesuffix(_SUFFIX) for entry in folder.iterdir() if entry.name.endswith(_SUFFIX)))


def ready_systems() -> list[str]:
    """The names of the ready systems, sorted."""
    return list(_names())


def ready_text(name: str) -> tuple[str, str]:
    """The text of a ready system's description and the name of its file; UnknownName if there is none."""
    from importlib.resources import files

    if name not in _names():
        raise unknown_name("ready system", name, _names())
    file = name + _SUFFIX
    return files("lanewise").joinpath("data", "systems", file).read_text(encoding="utf-8"), file


def ready_system(name: str, settings: Mapping[str, int] | None = None, catalog: Catalog | None = None) -> System:
    """A ready system at these parameter values; UnknownName, or InputError as `read_system` raises it."""
    from lanewise.topology.read import read_system

    text, file = ready_text(name)
    return read_system(text, file, settings or {}, catalog)
