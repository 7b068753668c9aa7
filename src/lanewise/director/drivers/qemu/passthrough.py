"""Devices of this machine that emulated servers are given through VFIO: whether a function can be handed over.

Never run on hardware: the machines it was written on have no IOMMU.
"""

from __future__ import annotations

import os
from pathlib import Path

from lanewise.director.drivers import linux
from lanewise.director.drivers.base import Busy, DeviceHolder, DriverError, Gone, HolderKind

VFIO = "vfio-pci"
_BRIDGE = "0x0604"


def check_passthrough(device: str, function: str, top: Path = linux.ROOT) -> None:
    """Whether `function` (0000:03:00.0) can be given to a guest, with everything of its IOMMU group.

    Gone if it is not there, Busy if something on this machine uses it, DriverError if it, or another function of its
    group, is bound to another driver than vfio-pci.
    """
    folder = top / "sys/bus/pci/devices" / function
    if not folder.exists():
        raise Gone(f"{device}: this machine has no PCI function {function}")
    users = tuple(DeviceHolder(HolderKind(kind), name, pid) for kind, name, pid in linux.holders(function, top))
    if users:
        raise Busy(f"{device} ({function}) is in use on this machine: {', '.join(map(str, users))}", users)
    group = folder / "iommu_group"
    if not group.exists():
        cause = f"{device}: {function} is in no IOMMU group"
        raise DriverError(cause, hint="switch the IOMMU on in the firmware and the kernel (intel_iommu=on)")
    for path in sorted((group / "devices").iterdir()):
        if not linux.text(path / "class").startswith(_BRIDGE) and (driver := _driver(path)) != VFIO:
            other = "" if path.name == function else f"{path.name}, of the IOMMU group of "
            cause = f"{device}: {other}{function} is bound to {driver or 'no driver'}, not to {VFIO}"
            raise DriverError(cause, hint=f"driverctl set-override {path.name} {VFIO}")


def _driver(folder: Path) -> str:
    link = folder / "driver"
    return os.path.basename(os.path.realpath(link)) if link.exists() else ""
