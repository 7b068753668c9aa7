"""What a node says of its host: free memory, NUMA nodes, network interfaces, RDMA devices."""

from __future__ import annotations

import os
import re
import resource
import socket
from pathlib import Path

from lanewise.control.rdma import RdmaPort, usable_ports
from lanewise.control.sysfs import node_in, text
from lanewise.dispatch.messages import HostFacts, NetworkCard
from lanewise.errors import CannotMeasure

ROOT = Path("/")
_CAP_IPC_LOCK = 14
MOST = 64  # interfaces and devices that are named


def host_facts(root: Path = ROOT, device: str | None = None, gid_index: int | None = None) -> HostFacts:
    """The facts of this host; of RDMA those of `device` alone if it is named, with that GID."""
    ports: list[RdmaPort] = []
    missing = ""
    try:
        ports = usable_ports(device, gid_index)[:MOST]
    except CannotMeasure as error:
        missing = str(error)
    nodes = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    return HostFacts(
        name=socket.gethostname()[:64], boot=boot_id(root), memory=available_memory(root), nodes=max(1, len(nodes)),
        cards=_cards(root / "sys/class/net"), rdma=ports, no_rdma=missing, lockable=lockable_memory(root),
        process=os.getpid(),
    )  # fmt: skip


def boot_id(root: Path = ROOT) -> str:
    """What is new at each boot of a kernel, '' if unknown."""
    return text(root / "proc/sys/kernel/random/boot_id")[:64]


def available_memory(root: Path = ROOT) -> int | None:
    """Bytes to be had without swapping, of the machine or of this control group if that is less; None if unknown."""
    free = re.search(r"MemAvailable:\s*(\d+) kB", text(root / "proc/meminfo"))
    limits = [int(free[1]) * 1024] if free else []
    most, used = (text(root / f"sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if most.isdigit() and used.isdigit():
        limits.append(max(0, int(most) - int(used)))
    return min(limits, default=None)


def lockable_memory(root: Path = ROOT) -> int | None:
    """Bytes that this process may lock in memory, as RDMA does; None without a limit."""
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    held = re.search(r"^CapEff:\s*([0-9a-f]+)", text(root / "proc/self/status"), re.MULTILINE)
    if limit == resource.RLIM_INFINITY or (held and int(held[1], 16) >> _CAP_IPC_LOCK & 1):
        return None
    return limit


def check_slots(needed: int, free: int | None) -> None:
    """CannotMeasure where `needed` bytes of slots are more than half of what is free."""
    if free is not None and 2 * needed > free:
        raise CannotMeasure(
            f"{needed / 1e9:.3g} GB for queries in flight, {free / 1e9:.3g} GB are free and half of that may be taken",
            hint="fewer --connections, or a smaller --depth",
        )


def _cards(net: Path) -> list[NetworkCard]:
    cards = []
    for name in _names(net):
        speed = text(net / name / "speed")
        rate = int(speed) * 10**6 if speed.isdecimal() else None
        cards.append(NetworkCard(name=name, rate=rate, node=node_in(net / name)))
    return cards


def _names(folder: Path) -> list[str]:
    names = sorted(path.name[:64] for path in folder.iterdir()) if folder.is_dir() else []
    return [name for name in names if name != "lo"][:MOST]
