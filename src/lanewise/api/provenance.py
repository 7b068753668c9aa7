"""This machine, for the record."""

from __future__ import annotations

import datetime
import os
import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lanewise.installed import Dependency


def doctor() -> tuple[Dependency, ...]:
    """Every optional dependency: whether it is installed, and what is disabled without it."""
    from lanewise.installed import dependencies

    return dependencies()


def version() -> str:
    """The version of Lanewise."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as of

    try:
        return of("lanewise")
    except PackageNotFoundError:
        return "unknown"


def machine(root: str | Path = "/") -> dict[str, str]:
    """What this machine is, for the record beside results: no names, no addresses, no serial numbers, no environment.

    Read from /proc and /sys below `root`; what they do not say is left out.
    """
    root = Path(root)
    cpu = _read(root / "proc/cpuinfo")
    facts = {
        "python": platform.python_version(),
        "system": platform.system(),
        "kernel": _read(root / "proc/sys/kernel/osrelease"),
        "architecture": platform.machine(),
        "cpu": _first(r"^model name\s*:\s*(.+)$", cpu),
        "sockets": _count(re.findall(r"^physical id\s*:\s*(\d+)$", cpu, re.MULTILINE)),
        "logical CPUs": str(os.cpu_count() or ""),
        "NUMA nodes": _count(_names(root / "sys/devices/system/node", r"node\d+")),
        "memory": _memory(_read(root / "proc/meminfo")),
        "IOMMU": _iommu(root),
        "transparent huge pages": _first(r"\[(\w+)\]", _read(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        "CPU governor": _governors(root / "sys/devices/system/cpu"),
        "virtual machine": _virtual(cpu),
    }
    return {name: text for name, text in facts.items() if text}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _names(folder: Path, pattern: str) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if re.fullmatch(pattern, entry.name))
    except OSError:
        return []


def _first(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return " ".join(match[1].split()) if match else ""


def _count(names: Iterable[str]) -> str:
    return str(len({*names}) or "")


def _memory(meminfo: str) -> str:
    kibibytes = _first(r"^MemTotal:\s*(\d+) kB$", meminfo)
    return f"{int(kibibytes) / 2**20:.1f} GiB" if kibibytes else ""


def _iommu(root: Path) -> str:
    """'off', or the kinds of its groups' domains: identity passes addresses through, DMA and DMA-FQ translate."""
    if not (root / "sys/class").is_dir():
        return ""
    groups = root / "sys/kernel/iommu_groups"
    kinds = {_read(groups / name / "type") or "on" for name in _names(groups, r"\d+")}
    return ", ".join(sorted(kinds)) or ("on" if _names(root / "sys/class/iommu", r".+") else "off")


def _governors(cpus: Path) -> str:
    kinds = {_read(cpus / name / "cpufreq/scaling_governor") for name in _names(cpus, r"cpu\d+")}
    return ", ".join(sorted(kinds - {""}))


def _virtual(cpuinfo: str) -> str:
    flags = _first(r"^flags\s*:\s*(.+)$", cpuinfo).split()
    return "" if not flags else "yes" if "hypervisor" in flags else "no"


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
