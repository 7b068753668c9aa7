"""One emulated server: devices come and go while it runs, its own `lanewise discover` agrees with the director."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from director.qemu.emulated import ONE_SERVER, director_drives, guest_drives, need_guests

from lanewise.director.drivers.base import Busy, FabricEventKind, Gone, HolderKind, LinkStatus
from lanewise.director.drivers.qemu.driver import QemuDriver
from lanewise.director.drivers.qemu.machine import MachineSize
from lanewise.topology.read import read_system

pytestmark = pytest.mark.guest

SERVER = "server0"


def test_a_server_that_runs_takes_devices_in_and_gives_them_back() -> None:
    kernel = need_guests()
    system = read_system(ONE_SERVER, "one-server.yaml")
    with (
        tempfile.TemporaryDirectory() as name,
        QemuDriver(system, Path(name), kernel=kernel, size=MachineSize(memory=384)) as driver,
    ):
        driver.start()
        assert driver.health().ok
        attach_and_detach(driver)
        refuse_a_mounted_drive(driver)
        another_driver_takes_over(driver, QemuDriver(system, Path(name), kernel=kernel))
        driver.stop()
        assert not driver.health().ok
        with pytest.raises(Gone, match="does not answer"):
            driver.observe(SERVER)


def attach_and_detach(driver: QemuDriver) -> None:
    empty = driver.room(SERVER)
    assert empty.slots == 4
    driver.bind("a", SERVER, "ssd0")
    driver.bind("a", SERVER, "ssd0")  # the same operation again changes nothing
    driver.bind("b", SERVER, "nic0")
    assert driver.observe(SERVER) == {"ssd0", "nic0"}
    assert guest_drives(driver, SERVER) == director_drives(driver, SERVER) == {("ssd0", 1, 1, 2)}
    assert driver.link("ssd0") == LinkStatus(1, 1, 1, 1)
    assert driver.link("ssd1") is None
    room = driver.room(SERVER)
    assert (room.slots, room.buses) == (2, 2)
    driver.unbind("c", SERVER, "nic0")
    driver.unbind("c", SERVER, "nic0")
    driver.unbind("d", SERVER, "ssd0")
    assert driver.observe(SERVER) == frozenset()
    assert driver.room(SERVER) == empty
    kinds = [(event.kind, event.device) for event in driver.events()]
    attached, detached = FabricEventKind.ATTACHED, FabricEventKind.DETACHED
    assert kinds == [(attached, "ssd0"), (attached, "nic0"), (detached, "nic0"), (detached, "ssd0")]


def refuse_a_mounted_drive(driver: QemuDriver) -> None:
    """A drive keeps what was written to it, and is not taken away while it is in use."""
    driver.bind("e", SERVER, "ssd1")
    shell(driver, "mkdir /tmp/disk && busybox mke2fs -q /dev/nvme0n1 8192 && mount -t ext4 /dev/nvme0n1 /tmp/disk")
    shell(driver, "echo data >/tmp/disk/file && sync")
    with pytest.raises(Busy, match="ssd1 is in use on server0: mount /tmp/disk") as busy:
        driver.unbind("f", SERVER, "ssd1")
    assert [(holder.kind, holder.name) for holder in busy.value.holders] == [(HolderKind.MOUNT, "/tmp/disk")]
    assert driver.observe(SERVER) == {"ssd1"}
    shell(driver, "umount /tmp/disk")
    reader = "(exec 3</dev/nvme0n1; exec sleep 1000) >/dev/null 2>&1 & echo $! >/tmp/pid"
    shell(driver, f"{reader}; while [ $(cat /proc/$!/comm) != sleep ]; do :; done")
    holders = driver.holders("ssd1")
    assert [(holder.kind, holder.name) for holder in holders] == [(HolderKind.PROCESS, "sleep")]
    shell(driver, "kill $(cat /tmp/pid)")
    driver.unbind("g", SERVER, "ssd1")
    driver.bind("h", SERVER, "ssd1")
    assert shell(driver, "mount -t ext4 /dev/nvme0n1 /tmp/disk && cat /tmp/disk/file && umount /tmp/disk") == "data\n"


def another_driver_takes_over(driver: QemuDriver, other: QemuDriver) -> None:
    """The machines outlive the driver: another one, after a crash of the director, finds what is attached."""
    for channel in (driver.machines[SERVER].qmp(), driver.machines[SERVER].agent()):
        channel.close()
    other.start()
    assert other.observe(SERVER) == {"ssd1"}
    other.unbind("i", SERVER, "ssd1")
    assert other.observe(SERVER) == frozenset()
    for channel in (other.machines[SERVER].qmp(), other.machines[SERVER].agent()):
        channel.close()


def shell(driver: QemuDriver, line: str) -> str:
    done = driver.machines[SERVER].agent().execute("run", {"argv": ["sh", "-ec", line]}, timeout=120)
    assert done["status"] == 0, done
    return str(done["stdout"])
