"""Where this machine's memory and CPUs are, from /sys and /proc: NUMA nodes, cores, the last-level cache."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from lanewise.probes.machine import ROOT, available, cpus, text

_CACHE_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "": 1}


@dataclass(frozen=True, slots=True)
class HostLayout:
    """`cores`: by NUMA node one CPU for each core that this process may use; `memory`: the nodes that have memory.

    `cache` is the last-level cache of the node that has most, `available` the free memory, both in bytes; None where
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


def read_layout(root: Path = ROOT, usable: Collection[int] | None = None) -> HostLayout:
    """The layout below `root`; a machine that shows no nodes is one node. `usable`: CPUs this process may use."""
    allowed = set(os.sched_getaffinity(0) if usable is None else usable)
    top = root / "sys/devices/system"
    nodes = {int(path.name[4:]): path for path in sorted(top.glob("node/node[0-9]*"))}
    cores = {node: _cores(cpus(text(path / "cpulist")) & allowed, top) for node, path in nodes.items()}
    if not any(cores.values()):
        cores, nodes = {0: _cores(allowed, top)}, {0: top}
    memory = cpus(text(top / "node/has_memory")) & nodes.keys()
    caches = [size for node_cores in cores.values() if (size := _cache(node_cores, top)) is not None]
    return HostLayout(cores, tuple(sorted(memory or nodes)), max(caches, default=None), available(root))


def _cores(usable: Collection[int], top: Path) -> tuple[int, ...]:
    """One CPU of each core, as threads of one core share what they can load and store."""
    siblings: set[int] = set()
    cores = []
    for cpu in sorted(usable):
        if cpu not in siblings:
            cores.append(cpu)
            siblings |= cpus(text(top / f"cpu/cpu{cpu}/topology/thread_siblings_list"))
    return tuple(cores)


def _cache(cores: Collection[int], top: Path) -> int | None:
    """The last-level caches of these cores together; some CPUs have one for every few cores."""
    sizes: dict[str, int] = {}
    for cpu in cores:
        levels = [(text(path / "level"), path) for path in top.glob(f"cpu/cpu{cpu}/cache/index*")]
        _, last = max(levels, default=("", None))
        size = re.fullmatch(r"(\d+)([KMG]?)", text(last / "size")) if last else None
        if last and size:
            sizes[text(last / "shared_cpu_list")] = int(size[1]) * _CACHE_UNITS[size[2]]
    return sum(sizes.values()) or None


def huge_pages(root: Path = ROOT) -> int | None:
    """Bytes of this process in huge pages, None where the kernel does not say."""
    match = re.search(r"AnonHugePages:\s*(\d+) kB", text(root / "proc/self/smaps_rollup"))
    return int(match[1]) * 1024 if match else None
