"""What a running Linux says of a PCI function in /sys and /proc: its link, who uses it, slots left for others.

Plain types from the standard library alone: this is also what runs in the guests of the driver `qemu`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path("/")
_PARTITION_OR_DISK = re.compile(r"nvme(\d+)(?:c\d+)?(n\d+)")
_WINDOWS = slice(13, 16)  # of a bridge's file `resource`: after 6 BARs, the ROM and 6 SR-IOV BARs (linux/pci.h)
_MEMORY = 0x200
_UP = 1

Holder = tuple[str, str, int | None]  # kind, name, pid


def text(path: Path) -> str:
    """The content of a small file, stripped; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip().strip("\0")
    except OSError:
        return ""


def functions(top: Path = ROOT) -> list[str]:
    """The addresses of all PCI functions."""
    return sorted(path.name for path in (top / "sys/bus/pci/devices").glob("*"))


def function_in_slot(slot: int, top: Path = ROOT) -> str | None:
    """The address of the function in a physical slot; None if the slot is empty, unknown or not yet scanned."""
    address = text(top / f"sys/bus/pci/slots/{slot}/address")
    return f"{address}.0" if address and (top / f"sys/bus/pci/devices/{address}.0").exists() else None


def link(function: str, top: Path = ROOT) -> dict[str, str]:
    """Speed and width of a function's link as the kernel writes them: its own, its port's, trained and most."""
    folder = top / "sys/bus/pci/devices" / function
    port = folder.resolve().parent
    named = {f"{word}_{key}": text(folder / f"{word}_link_{key}") for word in ("current", "max") for key in _LINK}
    return named | {f"port_{key}": text(port / f"max_link_{key}") for key in _LINK}


_LINK = ("speed", "width")


def slots(top: Path = ROOT) -> list[dict[str, Any]]:
    """The hot-plug slots: number, function (None: empty), the bus numbers and bytes of BAR space set aside."""
    ports = {}
    for bridge in (top / "sys/bus/pci/devices").glob("*"):
        bus = text(bridge / "secondary_bus_number")
        if bus.isdigit():
            ports[f"{bridge.name[:4]}:{int(bus):02x}"] = bridge
    rows = []
    for slot in sorted((top / "sys/bus/pci/slots").glob("*")):
        address = text(slot / "address")
        port = ports.get(address.rpartition(":")[0])
        if port is not None and slot.name.isdigit():
            function = function_in_slot(int(slot.name), top)
            room = {"buses": _buses(port), "bytes": _window(port)}
            rows.append({"slot": int(slot.name), "function": function, **room})
    return rows


def _buses(port: Path) -> int:
    first, last = text(port / "secondary_bus_number"), text(port / "subordinate_bus_number")
    return int(last) - int(first) + 1 if first.isdigit() and last.isdigit() else 0


def _window(port: Path) -> int:
    size = 0
    for line in text(port / "resource").splitlines()[_WINDOWS]:
        start, end, flags = (int(word, 16) for word in line.split())
        size += end - start + 1 if flags & _MEMORY and end > start else 0
    return size


def holders(function: str, top: Path = ROOT) -> list[Holder]:
    """What uses a PCI function: mounts and swap, RAID and mapper devices, network interfaces that are up, processes.

    Processes of other users are seen by root only.
    """
    nodes = dict(_nodes(function, top))
    rows: list[Holder] = [("interface", name, None) for name in _interfaces(function, top)]
    rows += [("raid", path.name, None) for block in _blocks(function, top) for path in _stacked(block)]
    rows += [("mount", place, None) for place in _mounts(set(nodes), top)]
    rows += [("mount", f"swap on {name}", None) for name in _swaps(set(nodes.values()), top)]
    rows += [("process", name, pid) for pid, name in _processes(set(nodes), top)]
    return list(dict.fromkeys(rows))


def disks(function: str, top: Path = ROOT) -> list[str]:
    """The names of a function's block devices, such as nvme0n1."""
    return [path.name for path in _blocks(function, top)]


def _blocks(function: str, top: Path) -> list[Path]:
    """The block devices of a function; those of NVMe with several paths are in another folder than its controller."""
    folder = top / "sys/bus/pci/devices" / function
    names = {path.name for pattern in ("nvme/nvme*/nvme*", "**/block/*") for path in folder.glob(pattern)}
    disks = {f"nvme{match[1]}{match[2]}" if (match := _PARTITION_OR_DISK.fullmatch(name)) else name for name in names}
    return [path for name in sorted(disks) if (path := top / "sys/block" / name).exists()]


def _stacked(block: Path) -> Iterator[Path]:
    """The md and mapper devices over a disk or its partitions."""
    for pattern in ("holders/*", f"{block.name}*/holders/*"):
        yield from sorted(block.glob(pattern))


def _nodes(function: str, top: Path) -> Iterator[tuple[str, str]]:
    """The device numbers (major:minor) of everything a function gives to programs, with their names."""
    folder = (top / "sys/bus/pci/devices" / function).resolve()
    places = [folder, *(block.resolve() for block in _blocks(function, top))]
    for place in places:
        for current, inner, files in os.walk(place):
            inner[:] = [name for name in inner if not re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:.*", name)]
            if "dev" in files and (number := text(Path(current) / "dev")):
                yield number, os.path.basename(current)


def _interfaces(function: str, top: Path) -> Iterator[str]:
    folder = top / "sys/bus/pci/devices" / function
    for path in sorted([*folder.glob("net/*"), *folder.glob("virtio*/net/*")]):
        with contextlib.suppress(ValueError):
            if int(text(path / "flags"), 16) & _UP:
                yield path.name


def _mounts(numbers: set[str], top: Path) -> Iterator[str]:
    """Where file systems of these devices are mounted, in the mount namespaces of all processes."""
    for table in {text(path) for path in (top / "proc").glob("[0-9]*/mountinfo")}:
        for line in table.splitlines():
            fields, _, source = line.partition(" - ")
            words, number = fields.split(), _number(source.split()[1:2])
            if len(words) > 4 and (words[2] in numbers or number in numbers):
                yield words[4]


def _number(path: list[str]) -> str:
    """The device number of a node such as /dev/nvme0n1; empty if it is none."""
    try:
        number = os.stat(path[0]).st_rdev if path and path[0].startswith("/dev/") else 0
    except OSError:
        number = 0
    return f"{os.major(number)}:{os.minor(number)}" if number else ""


def _swaps(names: set[str], top: Path) -> Iterator[str]:
    for line in text(top / "proc/swaps").splitlines()[1:]:
        if (name := os.path.basename(line.split()[0])) in names:
            yield name


def _processes(numbers: set[str], top: Path) -> Iterator[tuple[int, str]]:
    for folder in sorted((top / "proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        with contextlib.suppress(OSError):  # it ended, or is another user's
            if any(_open_number(path) in numbers for path in (folder / "fd").iterdir()):
                yield int(folder.name), text(folder / "comm")


def _open_number(path: Path) -> str:
    """The device number behind an open file of a process; empty if it is none."""
    try:
        number = path.stat().st_rdev
    except OSError:
        return ""
    return f"{os.major(number)}:{os.minor(number)}" if number else ""
