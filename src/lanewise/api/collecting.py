"""Collects what discovery reads of a running machine, or of a folder that holds its /sys, into a capture."""

from __future__ import annotations

import os
import posixpath
from contextlib import suppress
from pathlib import Path
from typing import Any

from lanewise.discovery import nvml
from lanewise.discovery.capture import GROUPS, LINKS, WANTED, Capture, limit, name_of
from lanewise.discovery.clean import clean

_GLOBS = (
    "sys/devices/system/node/node*/cpu*",
    "sys/devices/system/node/node*/meminfo",
    "sys/devices/system/cpu/cpu*/topology/physical_package_id",
    "sys/kernel/iommu_groups/*/type",
    "sys/class/iommu/*",
    "sys/devices/virtual/nvme-subsystem/*/nvme*",
    "proc/driver/nvidia/gpus/*/information",
    "proc/cpuinfo",
    "capture.json",
    "nvml.json",
)
# Links by class, and what is wanted below the folder that each leads to.
_CLASSES = {
    "sys/bus/pci/devices/*": ("*",),
    "sys/class/infiniband/*": ("ports/*/*",),
    "sys/class/net/*": ("speed",),
    "sys/class/nvme/*": ("model",),
    "sys/block/*": ("size", "md/*", "slaves/*"),
}


class _Collector:
    """Texts and links below one folder, as far as they are wanted and can be read: much of /sys may be closed."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.texts: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        self.names: set[str] = set()

    def take(self, path: Path) -> None:
        """One file, one link, or the mere name."""
        inside = path.relative_to(self.top).as_posix()
        self.names.add(name_of(inside))
        with suppress(OSError):
            if path.is_symlink():
                if LINKS.fullmatch(inside):
                    self.links[inside] = os.readlink(path)
            elif WANTED.fullmatch(inside) and path.is_file():
                with path.open("rb") as stream:
                    self.texts[inside] = stream.read(limit(inside))

    def follow(self, path: Path, below: tuple[str, ...]) -> None:
        """A link of a class, and what is wanted of the device that it leads to."""
        self.take(path)
        inside = path.relative_to(self.top).as_posix()
        if path.is_symlink():
            inside = posixpath.normpath(posixpath.join(posixpath.dirname(inside), os.readlink(path)))
        home = self.top / inside
        if inside.startswith("sys/") and home.is_dir():
            for pattern in below:
                for file in home.glob(pattern):
                    self.take(file)


def collect(top: Path, file: str) -> Capture:
    """What lies under `top`, a folder with `sys` (or `/`), without what tells one machine from its twin."""
    collector = _Collector(top)
    for pattern, below in _CLASSES.items():
        for path in sorted(top.glob(pattern)):
            collector.follow(path, below)
    for pattern in _GLOBS:
        for path in sorted(top.glob(pattern)):
            collector.take(path)
    if (top / GROUPS).is_dir():
        collector.names.add(GROUPS)
    return clean(Capture(file, collector.texts, collector.links, frozenset(collector.names - {""})))


def query_nvml() -> dict[str, Any] | None:
    """What NVML says of this machine's GPUs; None where there is no driver to ask."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        return nvml.query_gpus(pynvml)
    except pynvml.NVMLError:
        return None
