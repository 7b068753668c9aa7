"""The YAML files that ship with Lanewise, by folder: parts, systems, studies, workloads and the starter of a study."""

from __future__ import annotations

from functools import cache

from lanewise.errors import unknown_name

_SUFFIX = ".yaml"


@cache
def names(folder: str) -> tuple[str, ...]:
    """The names of the files of a folder, without their suffix, sorted."""
    from importlib.resources import files  # here, so that importing the model stays cheap

    entries = (entry.name for entry in files("lanewise").joinpath("data", folder).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in entries if name.endswith(_SUFFIX)))


def text(folder: str, name: str, kind: str) -> tuple[str, str]:
    """The text of a file and its name with the suffix; UnknownName for a `kind` of thing that is not there."""
    from importlib.resources import files

    if name not in names(folder):
        raise unknown_name(kind, name, names(folder))
    file = name + _SUFFIX
    return files("lanewise").joinpath("data", folder, file).read_text(encoding="utf-8"), file
