"""The drives that hold a file, and the bytes that each has read and written, from /sys/block."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lanewise.probes.machine import SYS

MOUNTS = Path("/proc/self/mountinfo")
_SECTOR = 512  # the unit of /sys/block/*/stat, whatever the drive's own
_READ, _WRITTEN = 2, 6


def drives_of(path: str | Path, sys: Path = SYS, mounts: Path = MOUNTS) -> tuple[str, ...]:
    """The drives below a file or block device, through partitions, md, device mapper and loop; () if unknown."""
    status = os.stat(path)
    number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    return drives_of_number(os.major(number), os.minor(number), sys, mounts)


def drives_of_number(major: int, minor: int, sys: Path = SYS, mounts: Path = MOUNTS) -> tuple[str, ...]:
    """The same for a device number; that of a file system without one (btrfs) is looked up among the mounts."""
    device = sys / "dev" / "block" / f"{major}:{minor}"
    if not device.exists():
        source = _mounted_from(f"{major}:{minor}", mounts)
        return drives_of(source, sys, mounts) if source and stat.S_ISBLK(os.stat(source).st_mode) else ()
    return tuple(dict.fromkeys(_below(device.resolve(), sys, mounts)))


def delivered(drives: tuple[str, ...], sys: Path = SYS) -> dict[str, tuple[int, int]]:
    """Bytes read from and written to each drive since the machine started."""
    counted = {}
    for drive in drives:
        try:
            fields = (sys / "block" / drive / "stat").read_text().split()
            counted[drive] = (int(fields[_READ]) * _SECTOR, int(fields[_WRITTEN]) * _SECTOR)
        except (OSError, IndexError, ValueError):
            continue  # a drive that went away, or a kernel without block statistics
    return counted


def _below(device: Path, sys: Path, mounts: Path) -> list[str]:
    if (device / "partition").exists():
        device = device.parent
    slaves = sorted((device / "slaves").glob("*")) if (device / "slaves").is_dir() else []
    if slaves:
        return [name for slave in slaves for name in _below(slave.resolve(), sys, mounts)]
    try:
        backing = (device / "loop" / "backing_file").read_text().strip()
        return list(drives_of(backing, sys, mounts)) or [device.name]
    except OSError:
        return [device.name]


def _mounted_from(number: str, mounts: Path) -> str:
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, rest = before.split(), after.split()
        if len(fields) > 2 and fields[2] == number and len(rest) > 1 and os.path.exists(rest[1]):
            return rest[1]
    return ""
