"""Which drives a file lies on, over trees of /sys as kernels lay them out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lanewise.probes.storage.files import drive_counters, drives_of, drives_of_number


def device(sys: Path, name: str, number: str, inside: str = "", slaves: tuple[str, ...] = ()) -> Path:
    """A block device as /sys shows it: a folder, and a link named by its number."""
    home = sys / "devices" / inside / name
    home.mkdir(parents=True)
    (sys / "dev" / "block").mkdir(parents=True, exist_ok=True)
    (sys / "dev" / "block" / number).symlink_to(home)
    if slaves:
        (home / "slaves").mkdir()
        for slave in slaves:
            (home / "slaves" / Path(slave).name).symlink_to(sys / "devices" / slave)
    return home


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    """Two NVMe drives with a partition each; md0 over one whole and one partition; a mapping over md0."""
    root = tmp_path / "sys"
    for i in (0, 1):
        device(root, f"nvme{i}n1", f"259:{2 * i}")
        part = device(root, f"nvme{i}n1p1", f"259:{2 * i + 1}", inside=f"nvme{i}n1")
        (part / "partition").write_text("1\n")
    device(root, "md0", "9:0", slaves=("nvme0n1/nvme0n1p1", "nvme1n1"))
    device(root, "dm-0", "253:0", slaves=("md0",))
    return root


@pytest.mark.parametrize(
    ("number", "drives"),
    [("259:0", ("nvme0n1",)), ("259:3", ("nvme1n1",)), ("9:0", ("nvme0n1", "nvme1n1")),
     ("253:0", ("nvme0n1", "nvme1n1"))],
    ids=["drive", "partition", "md", "dm over md"],
)  # fmt: skip
def test_drives_are_found_below_partitions_arrays_and_mappings(sys, number, drives):
    major, minor = map(int, number.split(":"))
    assert drives_of_number(major, minor, sys) == drives


def test_a_loop_device_leads_to_the_drives_of_its_file(sys, tmp_path):
    loop = device(sys, "loop0", "7:0")
    (loop / "loop").mkdir()
    backing = tmp_path / "disk.img"
    backing.touch()
    (loop / "loop" / "backing_file").write_text(f"{backing}\n")
    number = os.stat(backing).st_dev
    device(sys, "sda", f"{os.major(number)}:{os.minor(number)}")
    assert drives_of_number(7, 0, sys) == ("sda",)


def test_a_file_system_without_a_device_has_no_drives(sys, tmp_path):
    mounts = tmp_path / "mountinfo"
    mounts.write_text("22 1 0:45 / /mnt rw - tmpfs tmpfs rw\n")
    assert drives_of_number(0, 45, sys, mounts) == ()
    assert drives_of(tmp_path, sys, mounts) == ()


def test_counters_are_in_bytes_whatever_the_sector_of_the_drive(tmp_path):
    stat = tmp_path / "block" / "sda" / "stat"
    stat.parent.mkdir(parents=True)
    stat.write_text("     100  0  2048  5  10  0  512  7  0  0  0\n")
    assert drive_counters(("sda", "gone"), tmp_path) == {"sda": (2048 * 512, 512 * 512)}
