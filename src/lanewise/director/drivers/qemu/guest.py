"""The agent in a guest: answers commands of the driver over a virtio serial port, as JSON lines (see `channel`).

It starts as the guest's first process, with the standard library alone; `discover` imports the rest on its first use.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lanewise.director.drivers import linux

PORT_NAME = "lanewise"
_PORTS = Path("/sys/class/virtio-ports")
_NVME = "0x0108"
_PAUSE = 0.02  # s, between two looks


def ping() -> dict[str, Any]:
    """The seconds since the guest booted."""
    return {"uptime": float(linux.text(Path("/proc/uptime")).split()[0])}


def discover(name: str = "guest") -> dict[str, Any]:
    """The description that `lanewise discover` writes of this guest, and the addresses of its devices by name."""
    import lanewise  # as a user of the package: the guest is another machine

    discovery = lanewise.discover([], None, name)
    return {"text": discovery.text(), "addresses": {key: list(names) for key, names in discovery.dump_names.items()}}


def slot(slot: int) -> dict[str, Any] | None:
    """The function in a physical slot, the driver bound to it and its serial number; None if the slot is empty."""
    function = linux.function_in_slot(slot)
    if function is None:
        return None
    folder = linux.ROOT / "sys/bus/pci/devices" / function
    serial = next((linux.text(path) for path in folder.glob("nvme/nvme*/serial")), "")
    driver = os.path.basename(os.path.realpath(folder / "driver")) if (folder / "driver").exists() else ""
    usable = bool(driver) and (not linux.text(folder / "class").startswith(_NVME) or bool(linux.disks(function)))
    return {"function": function, "driver": driver, "serial": serial, "usable": usable, "disks": linux.disks(function)}


def await_slot(slot_number: int, present: bool, seconds: float, usable: bool = True) -> dict[str, Any] | None:
    """What is in a slot, once a function is there (a `usable` one), or once it is empty, or after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        function = slot(slot_number)
        if (function is not None and (function["usable"] or not usable)) if present else function is None:
            return function
        if time.monotonic() > end:
            return function
        time.sleep(_PAUSE)


def holders(slot: int) -> list[linux.Holder]:
    """What uses the function in a slot."""
    function = linux.function_in_slot(slot)
    return linux.holders(function) if function else []


def link(slot: int) -> dict[str, str] | None:
    """The link of the function in a slot."""
    function = linux.function_in_slot(slot)
    return linux.link(function) if function else None


def power_off_slot(slot: int) -> None:
    """Have the kernel release the function in a slot and switch the slot off."""
    (linux.ROOT / f"sys/bus/pci/slots/{slot}/power").write_text("0", encoding="ascii")


def run(argv: list[str], seconds: float = 60.0) -> dict[str, Any]:
    """What a program returned and printed; a program that is still running is ended then."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, check=False, cwd="/tmp")
    return {"status": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def power_off() -> None:
    """End the guest."""
    os.sync()
    Path("/proc/sysrq-trigger").write_text("o", encoding="ascii")


COMMANDS: dict[str, Callable[..., Any]] = {
    "ping": ping, "discover": discover, "slot": slot, "await_slot": await_slot, "holders": holders, "link": link,
    "slots": linux.slots, "run": run, "power_off": power_off,
    "power_off_slot": power_off_slot,
}  # fmt: skip


class Agent:
    """Reads commands from a port, answers each in a thread of its own."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Answer for as long as the guest runs."""
        self.send({"event": "READY", "data": {}})
        rest = b""
        while True:
            data = os.read(self.port, 65536)
            if not data:  # no driver is connected: what it had begun to send is void
                rest = b""
                time.sleep(_PAUSE)
                continue
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                threading.Thread(target=self.answer, args=(line,), daemon=True).start()

    def answer(self, line: bytes) -> None:
        """Carry out one command and send what it returns."""
        name = None
        try:
            message = json.loads(line)
            name = message.get("id")
            reply = {"return": COMMANDS[message["execute"]](**message.get("arguments", {})), "id": name}
        except Exception as error:  # whatever it is belongs to the caller
            reply = {"error": {"class": type(error).__name__, "desc": str(error) or type(error).__name__}, "id": name}
        self.send(reply)

    def send(self, message: dict[str, Any]) -> None:
        """Send one line; whole, as several threads do."""
        data = json.dumps(message).encode() + b"\n"
        with self._lock:
            while data:
                data = data[os.write(self.port, data) :]


def main() -> None:
    """Serve on the port that carries the agent's name."""
    while True:
        ports = [path.name for path in _PORTS.glob("*") if linux.text(path / "name") == PORT_NAME]
        if ports:
            break
        time.sleep(_PAUSE)
    with contextlib.suppress(KeyboardInterrupt):
        Agent(os.open(f"/dev/{ports[0]}", os.O_RDWR)).serve()


if __name__ == "__main__":
    main()
