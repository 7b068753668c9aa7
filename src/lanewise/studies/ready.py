"""The studies that come with Lanewise."""

from __future__ import annotations

from importlib import resources

from lanewise.errors import unknown_name

_ORDER = ("composable-server", "gpu-server-routes", "expansion-chassis", "network-division", "storage-fabric")


def ready_studies() -> list[str]:
    """Names of the ready studies: the five published evaluations first, others by name."""
    folder = resources.files("lanewise") / "data" / "studies"
    names = sorted(path.name.removesuffix(".yaml") for path in folder.iterdir() if path.name.endswith(".yaml"))
    return [n for n in _ORDER if n in names] + [n for n in names if n not in _ORDER]


def ready_text(name: str) -> tuple[str, str]:
    """The text of a ready study and the file name to show in errors; UnknownName otherwise."""
    if name not in ready_studies():
        raise unknown_name("study", name, ready_studies())
    return (resources.files("lanewise") / "data" / "studies" / f"{name}.yaml").read_text(
        encoding="utf-8"
    ), f"{name}.yaml"
