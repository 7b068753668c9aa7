"""What a node says of its host: free memory, NUMA nodes, network interfaces, RDMA devices."""

from __future__ import annotations

import re
import socket
from pathlib import Path

from lanewise.dispatch.messages import HostFacts, NetworkCard
from lanewise.errors import CannotMeasure

ROOT = Path("/")
MOST = 64  # interfaces and devices that are named


def host_facts(root: Path = ROOT) -> HostFacts:
    """The facts of this host."""
    nodes = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    return HostFacts(
        name=socket.gethostname()[:64], boot=boot_id(root), memory=available_memory(root), nodes=max(1, len(nodes)),
        cards=_cards(root / "sys/class/net"), rdma=_names(root / "sys/class/infiniband"),
    )  # fmt: skip


def boot_id(root: Path = ROOT) -> str:
    """What is new at each boot of a kernel, '' if unknown."""
    return _text(root / "proc/sys/kernel/random/boot_id").strip()[:64]


def available_memory(root: Path = ROOT) -> int | None:
    """Bytes to be had without swapping, of the machine or of this control group if that is less; None if unknown."""
    free = re.search(r"MemAvailable:\s*(\d+) kB", _text(root / "proc/meminfo"))
    limits = [int(free[1]) * 1024] if free else []
    most, used = (_text(root / f"sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if most.isdigit() and used.isdigit():
        limits.append(max(0, int(most) - int(used)))
    return min(limits, default=None)


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
        speed, node = _text(net / name / "speed").strip(), _text(net / name / "device/numa_node").strip()
        rate = int(speed) * 10**6 if speed.isdecimal() else None
        cards.append(NetworkCard(name=name, rate=rate, node=int(node) if node.isdecimal() else None))
    return cards


def _names(folder: Path) -> list[str]:
    names = sorted(path.name[:64] for path in folder.iterdir()) if folder.is_dir() else []
    return [name for name in names if name != "lo"][:MOST]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
