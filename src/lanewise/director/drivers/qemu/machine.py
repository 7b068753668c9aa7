"""One server of an emulated fabric: a QEMU process, the channel to QEMU and the one to the agent in its guest."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from lanewise.director.drivers.base import DriverError, Gone
from lanewise.director.drivers.qemu.boot import GuestSoftware
from lanewise.director.drivers.qemu.channel import CommandChannel, CommandFailed
from lanewise.director.drivers.qemu.guest import PORT_NAME
from lanewise.director.drivers.qemu.tree import EmulatedTree
from lanewise.errors import InputError

BOOT_LIMIT = 300.0  # s; a boot takes 3 to 10 s, many at once on few cores longer
_START_LIMIT = 30.0
_LONGEST_SOCKET = 107  # bytes of a path of a Unix socket (unix(7))
_PAUSE = 0.02
# With the kernel's own hot-plug driver for PCIe slots, as on hardware; QEMU's default goes through ACPI.
_OPTIONS = (
    "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-cpu", "max", "-smp", "1", "-machine", "q35",
    "-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
)  # fmt: skip
_KERNEL_LINE = "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on"


@dataclass(frozen=True, slots=True)
class MachineSize:
    """What one server takes of this machine: memory in MiB, and how its instructions run (tcg: anywhere)."""

    memory: int = 512
    accelerator: str = "tcg"


class Machine:
    """A server. It lives on when this process ends, so that another director finds it by its folder."""

    def __init__(self, name: str, folder: Path, tree: EmulatedTree) -> None:
        self.name = name
        self.folder = folder
        self.tree = tree
        self._qmp: CommandChannel | None = None
        self._agent: CommandChannel | None = None
        self._lock = threading.Lock()
        if len(os.fsencode(self._path("agent.sock"))) > _LONGEST_SOCKET:
            cause = f"{folder}: the path is too long for a Unix socket"
            raise InputError(cause, hint="name a folder nearer to the root")

    def running(self) -> bool:
        """Whether QEMU answers."""
        try:
            return bool(self.qmp().execute("query-status").get("running"))
        except DriverError:
            return False

    def start(self, software: GuestSoftware, initramfs: Path, size: MachineSize) -> None:
        """Start QEMU, unless it runs; CommandFailed with what QEMU printed if it ends at once."""
        if self.running():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("qmp.sock", "agent.sock"):
            self._path(name).unlink(missing_ok=True)
        with self._path("qemu.log").open("wb") as log:
            process = subprocess.Popen(
                self._command(software, initramfs, size), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + _START_LIMIT
        while not self.running():
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                printed = self._path("qemu.log").read_text(errors="replace").strip()
                raise CommandFailed(self.name, "start", "", printed.splitlines()[-1] if printed else "QEMU ended")
            time.sleep(_PAUSE)

    def await_boot(self) -> None:
        """Return when the guest's agent answers."""
        self.agent().execute("ping", timeout=BOOT_LIMIT)

    def stop(self) -> None:
        """End QEMU, whatever the guest does."""
        pid = self._pid()  # QEMU removes the file when it ends
        with contextlib.suppress(DriverError):
            self.qmp().execute("quit", timeout=5.0)
        if pid is not None:
            _await_end(pid)
        for channel in (self._qmp, self._agent):
            if channel is not None:
                channel.close()

    def qmp(self) -> CommandChannel:
        """The channel to QEMU; connects again if it was lost, Gone if QEMU does not run."""
        with self._lock:
            if self._qmp is None or self._qmp.ended:
                self._qmp = CommandChannel(self._path("qmp.sock"), self.name)
                self._qmp.execute("qmp_capabilities")
            return self._qmp

    def agent(self) -> CommandChannel:
        """The channel to the agent in the guest; Gone if QEMU does not run."""
        with self._lock:
            if self._agent is None or self._agent.ended:
                self._agent = CommandChannel(self._path("agent.sock"), f"{self.name}'s guest")
            return self._agent

    def console(self) -> str:
        """What the guest's kernel printed."""
        try:
            return self._path("console.log").read_text(errors="replace")
        except OSError:
            raise Gone(f"{self.name} has not been started") from None

    def _pid(self) -> int | None:
        """The process of QEMU; None if it ended, be it that another process has its number now."""
        try:
            pid = int(self._path("pid").read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if os.fsencode(self._path("pid")) in command.split(b"\0") else None

    def _path(self, name: str) -> Path:
        return self.folder / name

    def _command(self, software: GuestSoftware, initramfs: Path, size: MachineSize) -> list[str]:
        folder = str(self.folder).replace(",", ",,")  # QEMU's way to write a comma in a value
        sockets = {name: f"path={folder}/{name}.sock,server=on,wait=off" for name in ("qmp", "agent")}
        return [
            software.qemu, *_OPTIONS, "-name", self.name, "-m", str(size.memory), "-accel", size.accelerator,
            "-kernel", str(software.kernel), "-initrd", str(initramfs), "-append", _KERNEL_LINE,
            "-pidfile", str(self._path("pid")), "-serial", f"file:{self._path('console.log')}",
            "-fsdev", "local,id=host,path=/,readonly=on,security_model=none,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
            "-chardev", f"socket,id=qmp,{sockets['qmp']}", "-mon", "chardev=qmp,mode=control",
            "-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,{sockets['agent']}",
            "-device", f"virtserialport,chardev=agent,name={PORT_NAME}", *self.tree.options,
        ]  # fmt: skip


def _await_end(pid: int) -> None:
    """Wait for a process to end; after 5 s it is killed."""
    end = time.monotonic() + 5.0
    while _alive(pid):
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)


def _alive(pid: int) -> bool:
    """Whether a process runs; a child that ended is taken leave of."""
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return Path(f"/proc/{pid}").exists()
