"""Reads a machine into a System: from dumps and captures, or this one from /sys."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.catalog import builtin
from lanewise.errors import InputError, MissingDependency, Place

if TYPE_CHECKING:
    from lanewise.catalog import Catalog
    from lanewise.discovery.build import Discovery
    from lanewise.discovery.capture import Capture
    from lanewise.discovery.facts import Reading

_LARGEST = 512 * 2**20
_GLOBS = (
    "sys/devices/system/node/node*/cpu*",
    "sys/kernel/iommu_groups/*/type",
    "sys/class/infiniband/*",
    "sys/class/nvme/*",
    "proc/driver/nvidia/gpus/*/information",
)


def discover(
    files: str | Path | Sequence[str | Path] = (), catalog: Catalog | None = None, name: str = ""
) -> Discovery:
    """The machine that dumps and captures describe together, or this machine where none is named.

    lanewise.discover(["lspci.txt", "topo.txt"]).system; InputError for a file that is no dump, or shows no devices.
    """
    from lanewise.discovery.build import discover as build

    several = [files] if isinstance(files, (str, Path)) else list(files)
    if several:
        readings = [reading for path in several for reading in _read(Path(path))]
        return build(readings, catalog if catalog is not None else builtin(), name or "machine")
    if not Path("/sys/bus/pci/devices").is_dir():
        hint = "name dumps of the machine with --from"
        raise MissingDependency("this machine shows no PCI devices under /sys", hint=hint)
    return build(_read(Path("/")), catalog if catalog is not None else builtin(), name or "this-machine")


def _read(path: Path) -> tuple[Reading, ...]:
    from lanewise.discovery.kinds import read_dump
    from lanewise.discovery.sysfs import read_sysfs

    if path.is_dir():
        return (read_sysfs(_folder(path)),)
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError("larger than any dump", place=Place(str(path)), hint="name a dump of one machine")
        return read_dump(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", place=Place(str(path)), hint="check the path") from None


def _folder(folder: Path) -> Capture:
    """The capture in a folder that holds `sys`, or in the one folder below it that does."""
    from lanewise.discovery.capture import Capture, gpu_of

    tops = [each for each in (folder, *sorted(folder.glob("*/"))) if (each / "sys/bus/pci").is_dir()][:1]
    texts: dict[str, bytes] = {}
    links: dict[str, str] = {}
    names: set[str] = set()
    for top in tops:
        for device in sorted((top / "sys/bus/pci/devices").glob("*")):
            _device(device, top, texts, links)
        for path in [path for pattern in _GLOBS for path in sorted(top.glob(pattern))]:
            inside = str(path.relative_to(top))
            if path.is_symlink():
                links[inside] = os.readlink(path)
            elif not inside.startswith("proc/"):
                _take(path, inside, texts)
            names.add(gpu_of(inside))
        _take(top / "proc/cpuinfo", "proc/cpuinfo", texts)
    return Capture(str(folder), texts, links, frozenset(names - {""}))


def _device(device: Path, top: Path, texts: dict[str, bytes], links: dict[str, str]) -> None:
    """The wanted attributes of one PCI function, under the path that its link leads to."""
    import posixpath

    from lanewise.discovery.capture import WANTED

    inside = str(device.relative_to(top))
    home = inside
    if device.is_symlink():
        links[inside] = os.readlink(device)
        home = posixpath.normpath(posixpath.join(posixpath.dirname(inside), links[inside]))
    if not (top / home).is_dir():
        return
    for each in os.listdir(top / home):
        if WANTED.fullmatch(f"{home}/{each}"):
            _take(top / home / each, f"{home}/{each}", texts)


def _take(path: Path, inside: str, texts: dict[str, bytes]) -> None:
    """One file, as far as it can be read: much of /sys may be closed to this user."""
    from contextlib import suppress

    from lanewise.discovery.capture import LIMIT, WANTED

    if WANTED.fullmatch(inside) and path.is_file():
        with suppress(OSError), path.open("rb") as stream:
            texts[inside] = stream.read(LIMIT)
