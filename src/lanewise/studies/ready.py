"""The studies that ship with Lanewise."""

from __future__ import annotations

from lanewise import package_data

_ORDER = ("composable-server", "gpu-server-routes", "expansion-chassis", "network-division", "storage-fabric")


def ready_studies() -> list[str]:
    """Names of the ready studies: the five published evaluations first, others by name."""
    names = package_data.names("studies")
    return [name for name in _ORDER if name in names] + [name for name in names if name not in _ORDER]


def ready_text(name: str) -> tuple[str, str]:
    """The text of a ready study and the file name to show in errors; UnknownName otherwise."""
    return package_data.text("studies", name, "study")
