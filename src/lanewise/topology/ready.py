"""The systems that ship with Lanewise."""

from __future__ import annotations

from collections.abc import Mapping

from lanewise import package_data
from lanewise.catalog import Catalog
from lanewise.topology.model import System


def ready_systems() -> list[str]:
    """The names of the ready systems, sorted."""
    return list(package_data.names("systems"))


def ready_text(name: str) -> tuple[str, str]:
    """The text of a ready system's description and the name of its file; UnknownName if there is none."""
    return package_data.text("systems", name, "ready system")


def ready_system(name: str, settings: Mapping[str, int] | None = None, catalog: Catalog | None = None) -> System:
    """A ready system at these parameter values; UnknownName, or InputError as `read_system` raises it."""
    from lanewise.topology.read import read_system

    return read_system(*ready_text(name), settings or {}, catalog)
