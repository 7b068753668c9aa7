"""Where this machine's memory and CPUs are, as /sys and /proc say: NUMA nodes, cores, the last-level cache."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

_CACHE_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "": 1}


@dataclass(frozen=True, slots=True)
class Layout:
    """`cores`: by NUMA node one CPU for each core that this process may use; `memory`: the nodes that have memory.

    `cache` is all last-level cache of the node that has most, in bytes; `available` the memory to be had; None where
    unknown.
    """

    cores: Mapping[int, tuple[int, ...]]
    memory: tuple[int, ...]
    cache: int | None = None
    available: int | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        """Every node, with memory or CPUs."""
        return tuple(sorted({*self.memory, *(node for node, cores in self.cores.items() if cores)}))


def read_layout(root: Path = Path("/"), usable: Collection[int] | None = None) -> Layout:
    """The layout below `root`; a machine that shows no nodes is one node. `usable`: CPUs this process may use."""
    allowed = set(os.sched_getaffinity(0) if usable is None else usable)
    top = root / "sys/devices/system"
    nodes = {int(path.name[4:]): path for path in sorted(top.glob("node/node[0-9]*"))}
    cores = {node: _cores(_cpus(_text(path / "cpulist")) & allowed, top) for node, path in nodes.items()}
    if not any(cores.values()):
        cores, nodes = {0: _cores(allowed, top)}, {0: top}
    told = _cpus(_text(top / "node/has_memory")) & nodes.keys()
    caches = [found for each in cores.values() if (found := _cache(each, top)) is not None]
    return Layout(cores, tuple(sorted(told or nodes)), max(caches, default=None), _available(root))


def _cores(cpus: Collection[int], top: Path) -> tuple[int, ...]:
    """One CPU of each core, as threads of one core share what they can load and store."""
    taken: set[int] = set()
    found = []
    for cpu in sorted(cpus):
        if cpu not in taken:
            found.append(cpu)
            taken |= _cpus(_text(top / f"cpu/cpu{cpu}/topology/thread_siblings_list"))
    return tuple(found)


def _cpus(text: str) -> set[int]:
    """'0-3,8' as numbers."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found.update(range(int(first), int(last or first) + 1))
    return found


def _cache(cpus: Collection[int], top: Path) -> int | None:
    """The last-level caches of these CPUs together; some CPUs have one for every few cores."""
    found: dict[str, int] = {}
    for cpu in cpus:
        levels = [(_text(path / "level"), path) for path in top.glob(f"cpu/cpu{cpu}/cache/index*")]
        _, last = max(levels, default=("", None))
        size = re.fullmatch(r"(\d+)([KMG]?)", _text(last / "size")) if last else None
        if last and size:
            found[_text(last / "shared_cpu_list")] = int(size[1]) * _CACHE_UNITS[size[2]]
    return sum(found.values()) or None


def _available(root: Path) -> int | None:
    """What can be had without swapping, of the machine or of this control group if that is less."""
    free = re.search(r"MemAvailable:\s*(\d+) kB", _text(root / "proc/meminfo"))
    limits = [int(free[1]) * 1024] if free else []
    most, used = (_text(root / f"sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if most.isdigit() and used.isdigit():
        limits.append(max(0, int(most) - int(used)))
    return min(limits, default=None)


def huge_pages(root: Path = Path("/")) -> int | None:
    """Bytes of this process in huge pages, None where the kernel does not say."""
    found = re.search(r"AnonHugePages:\s*(\d+) kB", _text(root / "proc/self/smaps_rollup"))
    return int(found[1]) * 1024 if found else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
