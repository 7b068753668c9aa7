"""What drivers read of a Linux machine's devices, in a made /sys and /proc."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lanewise.director.drivers import linux

DRIVE, CARD, EMPTY = "0000:03:00.0", "0000:04:00.0", "0000:05:00"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A root port with three slots: an NVMe drive with a partition in md0, a network card that is up, and nothing."""
    pci = tmp_path / "sys/devices/pci0000:00"
    for number, function in enumerate((DRIVE, CARD, None), 1):
        port = pci / f"0000:00:0{number}.0"
        write(port, secondary_bus_number=str(number + 2), subordinate_bus_number=str(number + 3))
        write(port, max_link_speed="16.0 GT/s PCIe", max_link_width="8", resource="0x0 0x0 0x0\n" * 13 + WINDOWS)
        link(tmp_path / "sys/bus/pci/devices" / port.name, port)
        write(tmp_path / f"sys/bus/pci/slots/{number}", address=f"0000:0{number + 2}:00")
        if function:
            write(port / function, current_link_speed="8.0 GT/s PCIe", current_link_width="4")
            write(port / function, max_link_speed="32.0 GT/s PCIe", max_link_width="4")
            link(tmp_path / "sys/bus/pci/devices" / function, port / function)
    drive = pci / "0000:00:01.0" / DRIVE
    controller = drive / "nvme/nvme0"
    write(controller, dev="240:0")
    write(controller / "nvme0n1", dev="259:0")
    write(controller / "nvme0n1/nvme0n1p1", dev="259:1")
    (controller / "nvme0n1/nvme0n1p1/holders/md0").mkdir(parents=True)
    link(tmp_path / "sys/block/nvme0n1", controller / "nvme0n1")
    write(pci / "0000:00:02.0" / CARD / "net/eth0", flags="0x1003")
    (tmp_path / "proc").mkdir()
    return tmp_path


WINDOWS = "0x1000 0x1fff 0x101\n0xfe000000 0xfe1fffff 0x200\n0x8000000000 0x80000fffff 0x102201\n"


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content + "\n")


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def test_slots_say_what_is_in_them_and_what_is_set_aside(top: Path) -> None:
    rows = linux.slots(top)
    assert [(row["slot"], row["function"]) for row in rows] == [(1, DRIVE), (2, CARD), (3, None)]
    assert {(row["buses"], row["bytes"]) for row in rows} == {(2, 0x200000 + 0x100000)}


def test_a_link_is_read_at_both_ends(top: Path) -> None:
    assert linux.link(DRIVE, top) == {
        "current_speed": "8.0 GT/s PCIe", "current_width": "4", "max_speed": "32.0 GT/s PCIe", "max_width": "4",
        "port_speed": "16.0 GT/s PCIe", "port_width": "8",
    }  # fmt: skip


def test_holders_are_arrays_interfaces_mounts_swap_and_processes(top: Path) -> None:
    assert linux.holders(DRIVE, top) == [("raid", "md0", None)]
    assert linux.holders(CARD, top) == [("interface", "eth0", None)]
    mounts = "36 25 259:1 / /data rw - ext4 /dev/nvme0n1p1 rw\n36 25 8:1 / / rw - ext4 /dev/sda1 rw\n"
    write(top / "proc/7", mountinfo=mounts, comm="fio")
    write(top / "proc", swaps="Filename Type Size\n/dev/nvme0n1p1 partition 1\n")
    (top / "proc/7/fd").mkdir()
    (top / "proc/7/fd/3").symlink_to("/dev/null")
    null = os.stat("/dev/null").st_rdev
    write(top / "sys/block/nvme0n1", dev=f"{os.major(null)}:{os.minor(null)}")
    assert linux.holders(DRIVE, top) == [
        ("raid", "md0", None), ("mount", "/data", None), ("mount", "swap on nvme0n1p1", None), ("process", "fio", 7),
    ]  # fmt: skip


def test_a_drive_with_several_paths_is_found_by_its_subsystem(top: Path) -> None:
    controller = (top / "sys/bus/pci/devices" / DRIVE / "nvme/nvme0").resolve()
    (top / "sys/block/nvme0n1").unlink()
    (controller / "nvme0n1").rename(controller / "nvme0c3n1")
    head = top / "sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1"
    write(head, dev="259:4")
    (head / "holders/dm-0").mkdir(parents=True)
    link(top / "sys/block/nvme0n1", head)
    assert linux.disks(DRIVE, top) == ["nvme0n1"]
    assert ("raid", "dm-0", None) in linux.holders(DRIVE, top)


def test_a_machine_without_slots_has_none(tmp_path: Path) -> None:
    assert linux.slots(tmp_path) == []
    assert linux.function_in_slot(1, tmp_path) is None
    assert linux.holders(DRIVE, tmp_path) == []
