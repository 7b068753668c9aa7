"""The driver `qemu`: attaches and detaches emulated devices while their servers run, by QEMU's hot-plug."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from lanewise.director.drivers.base import (
    Busy,
    DeviceHolder,
    DriverError,
    DriverHealth,
    FabricEvent,
    FabricEventKind,
    Gone,
    HolderKind,
    HotplugRoom,
    LinkStatus,
    Retryable,
    Unknown,
)
from lanewise.director.drivers.qemu.boot import find_software, initramfs
from lanewise.director.drivers.qemu.channel import CommandChannel, CommandFailed, Message
from lanewise.director.drivers.qemu.machine import Machine, MachineSize
from lanewise.director.drivers.qemu.passthrough import check_passthrough
from lanewise.director.drivers.qemu.tree import EmulatedSlot, emulated_tree, pool_devices
from lanewise.errors import unknown_name
from lanewise.topology.model import Kind, System
from lanewise.topology.speeds import generation

_GUEST_LIMIT = 60.0  # s for a guest to take a device in, or to let go of one
_SPARE = 30.0  # s more for the reply itself
_DRIVE_SIZE = 1 << 30  # B, of a file without content
TESTED_ON = "QEMU 7.2 without KVM, guests with Linux 6.1; no hardware"


class QemuDriver:
    """Servers and boxes of a description as QEMU machines with emulated switches; drives are files in `folder`.

    A drive keeps its data when it moves, and QEMU locks its file, so no two servers have it at once. The machines live
    on when the driver ends without `stop`; the next one with the same folder takes them over.
    """

    def __init__(
        self,
        system: System,
        folder: Path,
        *,
        kernel: Path | None = None,
        size: MachineSize | None = None,
        limits: Mapping[str, float] | None = None,
        hardware: Mapping[str, str] | None = None,
    ) -> None:
        """Describe the machines without starting them; `limits` are B/s of data through a switch, by its name.

        `hardware` names devices that are functions of this machine (0000:03:00.0), which guests get through VFIO in
        place of emulated ones. Contradiction for a device that QEMU does not emulate.
        """
        self.system = system
        self.folder = folder
        self._kernel, self._size, self._limits = kernel, size or MachineSize(), dict(limits or {})
        self._hardware = dict(hardware or {})
        self._devices = pool_devices(system, self._hardware)
        trees = {name: emulated_tree(system, name, self._devices) for name in system.hosts}
        self.machines = {name: Machine(name, folder / name, tree) for name, tree in trees.items()}
        self._events: list[FabricEvent] = []
        self._lock = threading.Lock()

    def __enter__(self) -> QemuDriver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the machines that do not run, and return when every guest answers; MissingDependency without QEMU."""
        software = find_software(self._kernel)
        self.folder.mkdir(parents=True, exist_ok=True)
        archive = self.folder / "initramfs"
        archive.write_bytes(initramfs(software))
        for machine in self.machines.values():
            machine.start(software, archive, self._size)
        for machine in self.machines.values():
            machine.await_boot()

    def stop(self) -> None:
        """End the machines; drives keep their data."""
        for machine in self.machines.values():
            machine.stop()

    def discover(self) -> System:
        """The description, with each device bound to the server that has it now."""
        servers = {device: server for server in self.machines for device in self._attached(server)}
        devices = dict(self.system.devices)
        for name in self._devices:
            devices[name] = replace(devices[name], host=servers.get(name))
        return replace(self.system, devices=devices)

    def observe(self, server: str) -> frozenset[str]:
        """The devices that QEMU has plugged into the server's slots; Gone if the server does not run."""
        children = self._machine(server).qmp().execute("qom-list", {"path": "/machine/peripheral"})
        return frozenset(row["name"] for row in children) & set(self._devices)

    def bind(self, operation: str, server: str, device: str) -> None:
        """Plug a device into its slot of a server; returns when the guest's driver has it."""
        machine, slot = self._machine(server), self._slot(server, device)
        holder = self._holder(device)
        if holder not in (None, server):
            raise Busy(f"{device} is attached to {holder}", hint=f"detach it from {holder} first")
        if holder is None:
            self._plug(machine.qmp(), device, slot)
            self._note(FabricEventKind.ATTACHED, device, server)
        emulated = device not in self._hardware  # for which guests have drivers
        arguments = {"slot_number": slot.number, "present": True, "seconds": _GUEST_LIMIT, "usable": emulated}
        found = machine.agent().execute("await_slot", arguments, _GUEST_LIMIT + _SPARE)
        if not (found and (found["usable"] or not emulated)):
            raise Unknown(f"{device} is plugged into slot {slot.number} of {server}, whose guest has not taken it in")

    def unbind(self, operation: str, server: str, device: str) -> None:
        """Take a device out of its slot; Busy while something in the guest uses it, Retryable if the guest keeps it."""
        machine, slot = self._machine(server), self._slot(server, device)
        qmp = machine.qmp()
        if device in self.observe(server):
            if users := self._holders(machine, slot):
                raise Busy(f"{device} is in use on {server}: {', '.join(map(str, users))}", users)
            _press_button(qmp, device)
            with suppress(CommandFailed):  # spares the 5 s in which the guest would let a second press undo the first
                machine.agent().execute("power_off_slot", {"slot": slot.number}, _GUEST_LIMIT)
            if qmp.wait_for_event(lambda event: _deleted(event, device), _GUEST_LIMIT) is None:
                raise Retryable(f"{server}'s guest has not released {device} within {_GUEST_LIMIT:g} s")
            self._note(FabricEventKind.DETACHED, device, server)
        arguments = {"slot_number": slot.number, "present": False, "seconds": _GUEST_LIMIT}
        if machine.agent().execute("await_slot", arguments, _GUEST_LIMIT + _SPARE) is not None:
            raise Unknown(f"{device} is unplugged from {server}, whose guest still shows it")
        _remove_drive(qmp, device)

    def set_p2p(self, operation: str, server: str, allowed: bool) -> None:
        """Refuse to allow it, as emulated switches pass no traffic between devices; DriverError then."""
        self._machine(server)
        if allowed:
            raise DriverError("emulated switches pass no peer traffic", hint="leave peer-to-peer off on this fabric")

    def link(self, device: str) -> LinkStatus | None:
        """The link as the guest's kernel says; None while the device is attached to no server."""
        server = self._holder(device)
        if server is None:
            return None
        machine = self._machine(server)
        words = machine.agent().execute("link", {"slot": self._slot(server, device).number})
        return link_status(words) if words else None

    def holders(self, device: str) -> tuple[DeviceHolder, ...]:
        """What in the guest uses the device."""
        server = self._holder(device)
        return self._holders(self._machine(server), self._slot(server, device)) if server else ()

    def room(self, server: str) -> HotplugRoom:
        """The empty slots of the guest, the bus numbers and the BAR space set aside for them."""
        rows = [row for row in self._machine(server).agent().execute("slots") if row["function"] is None]
        return HotplugRoom(len(rows), sum(row["buses"] for row in rows), float(sum(row["bytes"] for row in rows)))

    def health(self) -> DriverHealth:
        """Whether every server runs."""
        ended = [name for name, machine in self.machines.items() if not machine.running()]
        return DriverHealth(not ended, f"not running: {', '.join(ended)}" if ended else "", TESTED_ON)

    def events(self) -> Iterator[FabricEvent]:
        """What was attached and detached, and what a guest gave up by itself, since the last call."""
        for name, machine in self.machines.items():
            with suppress(DriverError):
                for event in machine.qmp().take_events():
                    device = event.get("data", {}).get("device", "")
                    if event["event"] == "DEVICE_DELETED" and device in self._devices:
                        self._note(FabricEventKind.DEVICE_LOST, device, name)
        with self._lock:
            events, self._events = self._events, []
        yield from events

    def _plug(self, qmp: CommandChannel, device: str, slot: EmulatedSlot) -> None:
        options: Message = {"id": device, "bus": slot.port}
        if function := self._hardware.get(device):
            check_passthrough(device, function)
            options |= {"driver": "vfio-pci", "host": function}
        elif self.system.devices[device].kind is Kind.NIC:
            options |= {"driver": "e1000e", "mac": _hardware_address(self._devices.index(device))}
        else:
            self._add_drive(qmp, device, slot)
            options |= {"driver": "nvme", "drive": f"{device}.0", "serial": device}
        try:
            qmp.execute("device_add", options)
        except CommandFailed:
            _remove_drive(qmp, device)
            raise

    def _add_drive(self, qmp: CommandChannel, device: str, slot: EmulatedSlot) -> None:
        """The file of a drive as a block node, behind the limits of the switches on its path."""
        path = self.folder / f"{device}.img"
        with path.open("ab") as file:
            file.truncate(_DRIVE_SIZE)
        file_node = {"driver": "file", "filename": str(path), "locking": "on", "discard": "unmap"}
        node: Message = {"driver": "raw", "file": file_node}
        for switch in slot.switches:
            if switch in self._limits:
                _add_limit(qmp, f"{switch}.limit", self._limits[switch])
                node = {"driver": "throttle", "throttle-group": f"{switch}.limit", "file": node}
        _remove_drive(qmp, device)  # what an operation that was cut off has left
        try:
            qmp.execute("blockdev-add", {**node, "node-name": f"{device}.0"})
        except CommandFailed as error:
            if "lock" in error.description:
                raise Busy(f"{device} is attached to a server that this director does not know: {error}") from None
            raise

    def _holders(self, machine: Machine, slot: EmulatedSlot) -> tuple[DeviceHolder, ...]:
        rows = machine.agent().execute("holders", {"slot": slot.number})
        return tuple(DeviceHolder(HolderKind(kind), name, pid) for kind, name, pid in rows)

    def _holder(self, device: str) -> str | None:
        if device not in self._devices:
            raise unknown_name(f"device of {self.system.name}", device, self._devices)
        return next((server for server in self.machines if device in self._attached(server)), None)

    def _attached(self, server: str) -> frozenset[str]:
        """What a server has; nothing if it does not run."""
        try:
            return self.observe(server)
        except Gone:
            return frozenset()

    def _slot(self, server: str, device: str) -> EmulatedSlot:
        slot = self._machine(server).tree.slots.get(device)
        if slot is None:
            raise DriverError(f"{server} has no slot for {device}", hint=f"{device} is beyond the reach of {server}")
        return slot

    def _machine(self, server: str) -> Machine:
        if server not in self.machines:
            raise unknown_name(f"server of {self.system.name}", server, self.machines)
        return self.machines[server]

    def _note(self, kind: FabricEventKind, device: str, server: str) -> None:
        with self._lock:
            self._events.append(FabricEvent(kind, device, server))


def link_status(words: Mapping[str, str]) -> LinkStatus:
    """A link as the kernel's files say it; the most is what both the device and its port can do."""
    most_gen = [generation(words["max_speed"]), generation(words["port_speed"])]
    most_lanes = [_lanes(words["max_width"]), _lanes(words["port_width"])]
    return LinkStatus(
        generation(words["current_speed"]),
        _lanes(words["current_width"]),
        min((gen for gen in most_gen if gen), default=None),
        min((lanes for lanes in most_lanes if lanes), default=None),
    )


def _lanes(text: str) -> int | None:
    return int(text) if text.isdigit() and text != "0" and int(text) <= 32 else None


def _press_button(qmp: CommandChannel, device: str) -> None:
    """Ask the guest to release a device, as a press of its slot's attention button does."""
    try:
        qmp.execute("device_del", {"id": device})
    except CommandFailed as error:
        if "already in the process of unplug" not in error.description:
            raise


def _deleted(event: Mapping[str, Any], device: str) -> bool:
    return bool(event["event"] == "DEVICE_DELETED") and event.get("data", {}).get("device") == device


def _remove_drive(qmp: CommandChannel, device: str) -> None:
    with suppress(CommandFailed):  # there is none
        qmp.execute("blockdev-del", {"node-name": f"{device}.0"})


def _add_limit(qmp: CommandChannel, name: str, rate: float) -> None:
    with suppress(CommandFailed):  # it is there already
        limits = {"bps-total": round(rate)}
        qmp.execute("object-add", {"qom-type": "throttle-group", "id": name, "limits": limits})


def _hardware_address(number: int) -> str:
    return f"52:54:00:00:{number >> 8 & 255:02x}:{number & 255:02x}"
