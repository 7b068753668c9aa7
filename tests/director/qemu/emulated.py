"""Emulated servers for tests and benchmarks: what they need, and what guest and director say of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from lanewise.director.drivers.qemu.boot import find_software
from lanewise.director.drivers.qemu.driver import QemuDriver
from lanewise.errors import MissingDependency
from lanewise.topology.model import Kind, System
from lanewise.topology.read import read_system

ROOT = Path(__file__).parents[3]
ONE_SERVER = """
lanewise: 1
system: one-server
hosts: [server0]
devices:
  cpu0: {cpu: null, host: server0}
  hba0: {switch: null, host: server0}
  box0: {switch: null}
  "ssd[0-2]": {ssd: null, host: null}
  nic0: {nic: null, host: null}
links:
  - {from: cpu0, to: hba0, pcie: gen1 x1}
  - {from: hba0, to: box0, fabric: gen1 x1}
  - {from: box0, to: "ssd[0-2]", pcie: gen1 x1}
  - {from: box0, to: nic0, pcie: gen1 x1}
"""

# Of a drive: generation, lanes and number of switches between CPU and drive.
AttachedDrive = tuple[str, int | None, int | None, int]


def guest_kernel() -> Path | None:
    """The kernel that tests/director/qemu/kernel unpacked; None, which leaves it to the driver, if one is named."""
    unpacked = sorted((ROOT / "build/qemu/boot").glob("vmlinuz-*"))
    return unpacked[-1] if unpacked and not os.environ.get("LANEWISE_GUEST_KERNEL") else None


def need_guests() -> Path | None:
    """The kernel for guests; skips the test where QEMU, a kernel or busybox is absent."""
    kernel = guest_kernel()
    try:
        find_software(kernel)
    except MissingDependency as missing:
        pytest.skip(f"no emulated servers: {missing}; tests/director/qemu/kernel unpacks a kernel")
    return kernel


def director_drives(driver: QemuDriver, server: str) -> set[AttachedDrive]:
    """The drives of a server as the driver says."""
    return drives(driver.discover(), server, {})


def guest_drives(driver: QemuDriver, server: str) -> set[AttachedDrive]:
    """The drives of a server as `lanewise discover` in its guest says, by the names of the slots they are in."""
    machine = driver.machines[server]
    answer = machine.agent().execute("discover", timeout=300)
    slots = {row["function"]: row["slot"] for row in machine.agent().execute("slots")}
    devices = {slot.number: name for name, slot in machine.tree.slots.items()}
    names = {
        name: devices[slots[address]]
        for name, addresses in answer["addresses"].items() for address in addresses if address in slots
    }  # fmt: skip
    return drives(read_system(answer["text"], "guest"), None, names)


def drives(system: System, server: str | None, names: dict[str, str]) -> set[AttachedDrive]:
    """The drives of a description that are bound to a server, renamed."""
    paths = _paths(system, system.of_kind(Kind.CPU, host=server))
    rows = set()
    for drive in system.of_kind(Kind.SSD, host=server):
        link = system.links_at(drive)[0]
        rows.add((names.get(drive, drive), link.gen, link.lanes, len(paths[drive]) - 2))
    return rows


def _paths(system: System, cpus: Iterable[str]) -> dict[str, tuple[str, ...]]:
    from lanewise.topology.trees import PCIE_AND_FABRIC, Graph

    graph = Graph(system.devices, system.links, PCIE_AND_FABRIC)
    return {name: path for cpu in cpus for name, path in graph.reach(cpu).items()}
