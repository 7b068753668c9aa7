"""Whether a function of this machine can be given to a guest, in a made /sys."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise.director.drivers.base import Busy, DriverError, Gone
from lanewise.director.drivers.qemu.passthrough import check_passthrough

CARD, AUDIO, BRIDGE = "0000:41:00.0", "0000:41:00.1", "0000:40:01.0"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A GPU with its audio function and the bridge above them in one IOMMU group."""
    group = tmp_path / "sys/kernel/iommu_groups/7"
    for name, kind in ((CARD, "0x030000"), (AUDIO, "0x040300"), (BRIDGE, "0x060400")):
        folder = tmp_path / "sys/devices/pci0000:40" / name
        folder.mkdir(parents=True)
        (folder / "class").write_text(kind)
        (folder / "iommu_group").symlink_to(group)
        for place in (tmp_path / "sys/bus/pci/devices" / name, group / "devices" / name):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(folder)
        bind(tmp_path, name, "vfio-pci")
    (tmp_path / "proc").mkdir()
    return tmp_path


def bind(top: Path, function: str, driver: str) -> None:
    link = top / "sys/devices/pci0000:40" / function / "driver"
    link.unlink(missing_ok=True)
    target = top / "sys/bus/pci/drivers" / driver
    target.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


def test_a_function_with_all_of_its_group_at_vfio_is_given(top: Path) -> None:
    bind(top, BRIDGE, "pcieport")  # bridges stay with the kernel
    check_passthrough("gpu0", CARD, top)


def test_a_function_of_another_driver_is_refused_with_the_command_to_type(top: Path) -> None:
    bind(top, CARD, "nvidia")
    with pytest.raises(DriverError, match=r"gpu0: 0000:41:00\.0 is bound to nvidia, not to vfio-pci") as refusal:
        check_passthrough("gpu0", CARD, top)
    assert refusal.value.hint == "driverctl set-override 0000:41:00.0 vfio-pci"
    bind(top, CARD, "vfio-pci")
    (top / "sys/devices/pci0000:40" / AUDIO / "driver").unlink()
    with pytest.raises(DriverError, match=r"0000:41:00\.1, of the IOMMU group of 0000:41:00\.0 is bound to no driver"):
        check_passthrough("gpu0", CARD, top)


def test_a_function_that_is_gone_or_in_use_or_without_an_iommu_is_refused(top: Path) -> None:
    with pytest.raises(Gone, match=r"no PCI function 0000:99:00\.0"):
        check_passthrough("gpu0", "0000:99:00.0", top)
    (top / "sys/devices/pci0000:40" / CARD / "net/eth0").mkdir(parents=True)
    (top / "sys/devices/pci0000:40" / CARD / "net/eth0/flags").write_text("0x1003")
    with pytest.raises(Busy, match="in use on this machine: interface eth0"):
        check_passthrough("gpu0", CARD, top)
    (top / "sys/devices/pci0000:40" / AUDIO / "iommu_group").unlink()
    with pytest.raises(DriverError, match=r"0000:41:00\.1 is in no IOMMU group"):
        check_passthrough("gpu0", AUDIO, top)
