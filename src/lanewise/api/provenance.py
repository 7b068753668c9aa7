"""What a run records of its making: this machine, the time, the version, the command; and what is installed."""

from __future__ import annotations

import datetime
import os
import platform
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.probes.machine import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lanewise.installed import Dependency
    from lanewise.results.observation import Observation
    from lanewise.results.run import Run, StudyRun
    from lanewise.results.service_result import ServiceResult


def doctor() -> tuple[Dependency, ...]:
    """Every optional dependency: whether it is installed, and what is disabled without it.

    >>> [dependency.piece for dependency in lanewise.doctor()][:2]
    ['native core', 'scipy']
    """
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
    """What this machine is, recorded with results: no names, no addresses, no serial numbers, no environment.

    Read from /proc and /sys below `root`; what they do not say is left out.
    """
    root = Path(root)
    cpu, memory = text(root / "proc/cpuinfo"), _first(r"^MemTotal:\s*(\d+) kB$", text(root / "proc/meminfo"))
    facts = {
        "python": platform.python_version(),
        "system": platform.system(),
        "kernel": text(root / "proc/sys/kernel/osrelease"),
        "architecture": platform.machine(),
        "cpu": _first(r"^model name\s*:\s*(.+)$", cpu),
        "sockets": str(len({*re.findall(r"^physical id\s*:\s*(\d+)$", cpu, re.MULTILINE)}) or ""),
        "logical CPUs": str(os.cpu_count() or ""),
        "NUMA nodes": str(len(_names(root / "sys/devices/system/node", r"node\d+")) or ""),
        "memory": f"{int(memory) / 2**20:.1f} GiB" if memory else "",
        "IOMMU": _iommu(root),
        "transparent huge pages": _first(r"\[(\w+)\]", text(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        "CPU governor": _governors(root / "sys/devices/system/cpu"),
        "virtual machine": _virtual(cpu),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _names(folder: Path, pattern: str) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if re.fullmatch(pattern, entry.name))
    except OSError:
        return []


def _first(pattern: str, lines: str) -> str:
    match = re.search(pattern, lines, re.MULTILINE)
    return " ".join(match[1].split()) if match else ""


def _iommu(root: Path) -> str:
    """'off', or the kinds of its groups' domains: identity passes addresses through, DMA and DMA-FQ translate."""
    if not (root / "sys/class").is_dir():
        return ""
    groups = root / "sys/kernel/iommu_groups"
    kinds = {text(groups / name / "type") or "on" for name in _names(groups, r"\d+")}
    return ", ".join(sorted(kinds)) or ("on" if _names(root / "sys/class/iommu", r".+") else "off")


def _governors(cpus: Path) -> str:
    kinds = {text(cpus / name / "cpufreq/scaling_governor") for name in _names(cpus, r"cpu\d+")}
    return ", ".join(sorted(kinds - {""}))


def _virtual(cpuinfo: str) -> str:
    flags = _first(r"^flags\s*:\s*(.+)$", cpuinfo).split()
    return "" if not flags else "yes" if "hypervisor" in flags else "no"


def now() -> str:
    """The time of a record, in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def command() -> str:
    """The command of this process."""
    return " ".join(["lanewise", *sys.argv[1:]])


def new_run(
    *, studies: tuple[StudyRun, ...] = (), services: tuple[ServiceResult, ...] = (),
    rows: tuple[Observation, ...] = (), machine_facts: Mapping[str, str] | None = None,
) -> Run:  # fmt: skip
    """A run of these results, made now, by this command on this machine; `machine_facts` go with those of `machine`."""
    from lanewise.results.run import Run

    return Run(
        studies, created=now(), version=version(), command=command(),
        machine_facts={**machine(), **(machine_facts or {})}, services=services, rows=rows,
    )  # fmt: skip
