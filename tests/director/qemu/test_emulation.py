"""What the driver `qemu` makes without a machine: its tree of ports, its archive to boot, its channels."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from director.qemu.emulated import ONE_SERVER

from lanewise import api
from lanewise.director.drivers.base import DriverError, Gone, Unknown
from lanewise.director.drivers.qemu import driver as qemu_driver
from lanewise.director.drivers.qemu.boot import GuestSoftware, find_software, initramfs, kept_folders
from lanewise.director.drivers.qemu.channel import CommandChannel, CommandFailed
from lanewise.director.drivers.qemu.driver import QemuDriver, link_status
from lanewise.director.drivers.qemu.tree import emulated_tree, pool_devices
from lanewise.errors import Contradiction, InputError, MissingDependency, UnknownName
from lanewise.topology.read import read_system

# A peer's answer to a message, in lines; None ends the connection.
Answer = Callable[[dict[str, Any]], list[dict[str, Any]] | None]


def test_every_device_has_a_slot_below_the_switches_of_its_path() -> None:
    system = read_system(ONE_SERVER, "one-server.yaml")
    tree = emulated_tree(system, "server0", pool_devices(system))
    assert tree.options[1::2] == [
        "pcie-root-port,id=cpu0.hba0,chassis=1,slot=1,hotplug=off", "x3130-upstream,id=hba0,bus=cpu0.hba0",
        "xio3130-downstream,id=hba0.box0,bus=hba0,chassis=1,slot=2,hotplug=off", "x3130-upstream,id=box0,bus=hba0.box0",
        "xio3130-downstream,id=box0.ssd0,bus=box0,chassis=1,slot=3,hotplug=on",
        "xio3130-downstream,id=box0.ssd1,bus=box0,chassis=1,slot=4,hotplug=on",
        "xio3130-downstream,id=box0.ssd2,bus=box0,chassis=1,slot=5,hotplug=on",
        "xio3130-downstream,id=box0.nic0,bus=box0,chassis=1,slot=6,hotplug=on",
    ]  # fmt: skip
    assert tree.slots["ssd1"].number == 4
    assert tree.slots["ssd1"].switches == ("hba0", "box0")
    assert pool_devices(system) == ("ssd0", "ssd1", "ssd2", "nic0")


def test_each_server_sees_its_own_cables() -> None:
    system = api.load_system("emulated-two-servers")
    trees = [emulated_tree(system, server, pool_devices(system)) for server in system.hosts]
    assert [tree.slots["ssd5"].switches for tree in trees] == [("a_hba1", "box1"), ("b_hba1", "box1")]
    assert all(set(tree.slots) == set(pool_devices(system)) for tree in trees)


def test_what_cannot_be_emulated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Contradiction, match="'gpu0' is a gpu, which QEMU does not emulate"):
        QemuDriver(api.load_system("composable-server-two-hosts"), tmp_path)
    many = read_system(ONE_SERVER.replace("ssd[0-2]", "ssd[0-249]"), "many.yaml")
    with pytest.raises(Contradiction, match="server0 reaches 251 devices; an emulated server has 200 slots"):
        QemuDriver(many, tmp_path)
    with pytest.raises(InputError, match="too long for a Unix socket"):
        QemuDriver(read_system(ONE_SERVER, "s"), tmp_path / ("folder" * 20))


def test_devices_of_this_machine_are_passed_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, Any]] = []

    class Channel:
        def execute(self, command: str, arguments: Any) -> None:
            sent.append((command, arguments))

    checked: list[tuple[str, str]] = []
    monkeypatch.setattr(qemu_driver, "check_passthrough", lambda device, function: checked.append((device, function)))
    system = read_system(ONE_SERVER.replace('"ssd[0-2]": {ssd', "gpu0: {gpu").replace('"ssd[0-2]"', "gpu0"), "s")
    driver = QemuDriver(system, tmp_path, hardware={"gpu0": "0000:41:00.0"})
    driver._plug(Channel(), "gpu0", driver.machines["server0"].tree.slots["gpu0"])  # type: ignore[arg-type]
    options = {"id": "gpu0", "bus": "box0.gpu0", "driver": "vfio-pci", "host": "0000:41:00.0"}
    assert (checked, sent) == ([("gpu0", "0000:41:00.0")], [("device_add", options)])
    with pytest.raises(UnknownName, match="unknown device of one-server 'gpu1'"):
        QemuDriver(system, tmp_path, hardware={"gpu0": "0000:41:00.0", "gpu1": "0000:42:00.0"})


def test_what_is_not_there_has_no_slot_and_no_channel(tmp_path: Path) -> None:
    apart = ONE_SERVER.replace("hosts: [server0]", "hosts: [server0, server1]").replace(
        "  hba0:", "  cpu1: {cpu: null, host: server1}\n  hba0:"
    )
    driver = QemuDriver(read_system(apart, "s"), Path("q"))
    with pytest.raises(DriverError, match="server1 has no slot for ssd0"):
        driver.bind("a", "server1", "ssd0")
    with pytest.raises(UnknownName, match="unknown server of one-server 'server2'"):
        driver.observe("server2")
    with pytest.raises(UnknownName, match="unknown device of one-server 'ssd9'"):
        driver.link("ssd9")
    with pytest.raises(Gone, match="server0 does not answer: No such file"):
        driver.bind("a", "server0", "ssd0")
    with pytest.raises(DriverError, match="emulated switches pass no peer traffic"):
        driver.set_p2p("a", "server0", True)
    health = driver.health()
    assert (health.ok, health.reason) == (False, "not running: server0, server1")


def test_a_process_that_has_the_number_of_an_ended_server_is_left_alone(tmp_path: Path) -> None:
    driver = QemuDriver(read_system(ONE_SERVER, "s"), tmp_path)
    with subprocess.Popen(["sleep", "1000"]) as other:
        (tmp_path / "server0").mkdir()
        (tmp_path / "server0/pid").write_text(f"{other.pid}\n")
        driver.stop()
        assert other.poll() is None
        other.kill()


def test_modules_are_loaded_after_those_they_depend_on(tmp_path: Path) -> None:
    for name, depends in (("nvme", "nvme-core"), ("nvme-core", "t10-pi"), ("t10-pi", "")):
        (tmp_path / f"{name}.ko").write_bytes(b"ELF\0license=GPL\0depends=" + depends.encode() + b"\0name=x\0")
    busybox = tmp_path / "busybox"
    busybox.write_bytes(b"#!")
    archive = initramfs(GuestSoftware("qemu", tmp_path / "vmlinuz-1", tmp_path, busybox))
    assert archive.startswith(b"070701")
    assert len(archive) % 4 == 0
    assert b"for module in t10_pi.ko nvme_core.ko nvme.ko; do" in archive


def test_a_guest_keeps_what_lies_where_it_may_write() -> None:
    folders = [Path("/tmp/clone/src"), Path("/usr"), Path("/mnt/data/venv"), Path("/tmp/clone/src"), Path("/")]
    assert kept_folders(folders) == ["/mnt/data/venv", "/tmp/clone/src"]


def test_a_missing_kernel_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(MissingDependency, match="qemu-system-x86_64 is not installed"):
        find_software()
    monkeypatch.setattr("shutil.which", lambda _: "qemu")
    with pytest.raises(MissingDependency, match=r"no kernel that can be read at .*vmlinuz-9"):
        find_software(tmp_path / "vmlinuz-9")
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/vmlinuz-9").write_bytes(b"")
    with pytest.raises(MissingDependency, match=r"no modules of .*lib/modules/9"):
        find_software(tmp_path / "boot/vmlinuz-9")


def test_links_are_what_both_ends_can_do() -> None:
    words = {"current_speed": "8.0 GT/s PCIe", "current_width": "4", "max_speed": "32.0 GT/s PCIe", "max_width": "16"}
    status = link_status({**words, "port_speed": "16.0 GT/s PCIe", "port_width": "8"})
    assert (status.gen, status.lanes, status.most_gen, status.most_lanes) == (3, 4, 4, 8)
    assert status.trained_down
    unknown = link_status({**dict.fromkeys(words, "Unknown"), "port_speed": "", "port_width": "0"})
    assert (unknown.gen, unknown.lanes, unknown.most_gen, unknown.most_lanes) == (None, None, None, None)


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Callable[[Answer], CommandChannel]]:
    """Opens a channel to a peer that answers as the test says."""
    ends: list[Any] = []

    def open_channel(answer: Answer) -> CommandChannel:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        thread = threading.Thread(target=_serve, args=(listener, answer))
        thread.start()
        channel = CommandChannel(tmp_path / "s", "peer")
        ends.extend((channel.close, thread.join, listener.close))
        return channel

    yield open_channel
    for end in ends:
        end()


def _serve(listener: socket.socket, answer: Answer) -> None:
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as lines:
        connection.sendall(b'{"QMP": {}}\nno JSON\n{"return": "late", "id": "of another client"}\n')
        for line in lines:
            messages = answer(json.loads(line))
            if messages is None:
                return
            connection.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))


def test_replies_find_their_command_and_events_are_kept(peer: Callable[[Answer], CommandChannel]) -> None:
    def answer(message: dict[str, Any]) -> list[dict[str, Any]]:
        if message["execute"] == "refuse":
            return [{"error": {"class": "GenericError", "desc": "no"}, "id": message["id"]}]
        events = [{"event": "DEVICE_DELETED", "data": {"device": name}} for name in ("ssd0", "ssd1")]
        return [*events, {"return": message["arguments"], "id": message["id"]}]

    channel = peer(answer)
    assert channel.execute("echo", {"a": 1}) == {"a": 1}
    with pytest.raises(CommandFailed, match="peer: refuse: no") as refused:
        channel.execute("refuse")
    assert refused.value.kind == "GenericError"
    event = channel.wait_for_event(lambda event: event["data"]["device"] == "ssd1", 10)
    assert event is not None
    assert [event["data"]["device"] for event in channel.take_events()] == ["ssd0"]
    assert channel.wait_for_event(lambda event: True, 0) is None


def test_a_lost_reply_is_unknown(peer: Callable[[Answer], CommandChannel]) -> None:
    def answer(message: dict[str, Any]) -> list[dict[str, Any]] | None:
        return [] if message["execute"] == "ignore" else None

    channel = peer(answer)
    with pytest.raises(Unknown, match=r"peer: ignore: no reply within 0\.01 s"):
        channel.execute("ignore", timeout=0.01)
    with pytest.raises(Unknown, match="peer: end: the connection was lost"):
        channel.execute("end")
    assert channel.ended
    with pytest.raises(Unknown, match="the connection was lost"):
        channel.execute("more")
