"""What several rooms read of /sys: texts, and the NUMA node and CPUs of a device."""

from __future__ import annotations

import re
from pathlib import Path

SYS = Path("/sys")


def text(path: Path) -> str:
    """A file's text without the white space around it, '' where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def cpus(cpulist: str) -> set[int]:
    """'0-3,8' as numbers."""
    ranges = re.findall(r"(\d+)(?:-(\d+))?", cpulist)
    return {cpu for first, last in ranges for cpu in range(int(first), int(last or first) + 1)}


def cpus_of(node: int, sys: Path = SYS) -> set[int]:
    """The CPUs of a NUMA node; empty if there is no such node."""
    return cpus(text(sys / f"devices/system/node/node{node}/cpulist"))


def node_in(folder: Path) -> int | None:
    """The NUMA node of the device in a folder of /sys; None if it has none."""
    node = text(folder / "device" / "numa_node")
    return int(node) if node.isdecimal() else None
