"""Collects what discovery reads of a running machine, or of a folder that holds its /sys, into a capture."""

from __future__ import annotations

import os
import posixpath
from contextlib import suppress
from pathlib import Path
from typing import Any

from lanewise.discovery import nvml
from lanewise.discovery.capture import GROUPS, LINKS, MAX_KEPT, WANTED, Capture, clean, limit, name_of
from lanewise.errors import FormatError, Location

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


def collect(top: Path, file: str) -> Capture:
    """What lies under `top`, a folder with `sys` (or `/`), without what tells one machine from its twin.

    Only what is wanted and can be read: much of /sys may be closed.
    """
    texts: dict[str, bytes] = {}
    links: dict[str, str] = {}
    names: set[str] = set()
    kept = 0

    def add(path: Path) -> None:
        nonlocal kept
        inside = path.relative_to(top).as_posix()
        names.add(name_of(inside))
        with suppress(OSError):
            if path.is_symlink():
                if LINKS.fullmatch(inside):
                    links[inside] = os.readlink(path)
            elif WANTED.fullmatch(inside) and path.is_file():
                with path.open("rb") as stream:
                    texts[inside] = stream.read(limit(inside))
        kept += len(inside) + len(texts.get(inside, ""))
        if kept > MAX_KEPT:
            cause = f"more than {MAX_KEPT >> 20} MiB of what discovery reads"
            raise FormatError(cause, location=Location(file), hint="name the folder of one machine's /sys")

    for pattern, below in _CLASSES.items():
        for path in sorted(top.glob(pattern)):
            add(path)
            inside = path.relative_to(top).as_posix()
            if path.is_symlink():
                inside = posixpath.normpath(posixpath.join(posixpath.dirname(inside), os.readlink(path)))
            if inside.startswith("sys/") and (top / inside).is_dir():
                for wanted in below:
                    for inner in (top / inside).glob(wanted):
                        add(inner)
    for pattern in _GLOBS:
        for path in sorted(top.glob(pattern)):
            add(path)
    if (top / GROUPS).is_dir():
        names.add(GROUPS)
    return clean(Capture(file, texts, links, frozenset(names - {""})))


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
