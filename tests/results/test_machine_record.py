"""What is recorded of a machine beside results: enough to judge a number by, and nothing that tells whose it is."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from lanewise.api.provenance import machine

SECRET = "payroll-db-07"
FILES = {
    "proc/cpuinfo": (
        "processor : 0\nmodel name\t: Made-up  CPU @ 3 GHz\nphysical id\t: 0\nflags\t\t: fpu sse hypervisor\n"
        f"processor : 1\nmodel name\t: Made-up  CPU @ 3 GHz\nphysical id\t: 1\nSerial : {SECRET}\n"
    ),
    "proc/meminfo": "MemTotal:       67108864 kB\nMemFree: 5 kB\n",
    "proc/sys/kernel/osrelease": "9.9.9-test\n",
    "proc/sys/kernel/hostname": SECRET,
    "proc/self/environ": SECRET,
    "etc/hostname": SECRET,
    "etc/machine-id": SECRET,
    "sys/class/dmi/id/product_serial": SECRET,
    "sys/class/net/eth0/address": SECRET,
    "sys/devices/system/node/node0/meminfo": "",
    "sys/devices/system/node/node1/meminfo": "",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/kernel/iommu_groups/0/type": "identity\n",
    "sys/kernel/iommu_groups/1/type": "DMA-FQ\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_a_number_can_be_judged_by_what_is_recorded(root: Path) -> None:
    found = machine(root)
    told = {name: found[name] for name in found if name not in ("python", "system", "architecture", "logical CPUs")}
    assert told == {
        "kernel": "9.9.9-test", "cpu": "Made-up CPU @ 3 GHz", "sockets": "2", "NUMA nodes": "2", "memory": "64.0 GiB",
        "IOMMU": "DMA-FQ, identity", "transparent huge pages": "madvise", "CPU governor": "performance, powersave",
        "virtual machine": "yes",
    }  # fmt: skip


def test_no_name_address_or_serial_number_is_in_it(root: Path) -> None:
    assert SECRET not in " ".join(machine(root).values())


def test_neither_this_hosts_name_nor_its_user_nor_its_environment_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_TEST_SECRET", SECRET)
    monkeypatch.setattr(platform, "node", lambda: SECRET)
    text = "\n".join(machine().values())
    assert SECRET not in text
    name = os.uname().nodename
    assert len(name) < 4 or name not in text


def test_what_a_machine_does_not_say_is_left_out(tmp_path: Path) -> None:
    assert set(machine(tmp_path)) <= {"python", "system", "architecture", "logical CPUs"}


def test_an_iommu_that_is_off_is_recorded_as_off(tmp_path: Path) -> None:
    (tmp_path / "sys/class").mkdir(parents=True)
    assert machine(tmp_path)["IOMMU"] == "off"
