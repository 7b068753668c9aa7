"""The interface every driver has, what it reports of a fabric, and its errors.

DriverError
├── Retryable   nothing is wrong but now: the same operation may be sent again
├── Busy        the device is in use on its server: its holders
├── Gone        the device or its server has left the fabric
└── Unknown     the driver cannot say what the operation did, nor what state the device is in
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from lanewise.errors import LanewiseError, Location
from lanewise.topology.model import System


class DriverError(LanewiseError):
    """A fabric, a switch or a server did not do what was requested."""


class Retryable(DriverError):
    """The operation failed for now; sending the same operation again may succeed."""


class Busy(DriverError):
    """A device is in use on its server and was not removed; `holders` are what uses it."""

    def __init__(
        self, cause: str, holders: tuple[DeviceHolder, ...] = (), *, location: Location | None = None, hint: str = ""
    ) -> None:
        super().__init__(cause, location=location, hint=hint)
        self.holders = holders


class Gone(DriverError):
    """The device or the server is no longer part of the fabric."""


class Unknown(DriverError):
    """The state of the device cannot be read; it must not be given to anyone."""


class HolderKind(StrEnum):
    """What uses a device on its server."""

    PROCESS = "process"
    MOUNT = "mount"
    RAID = "raid"
    INTERFACE = "interface"  # a network interface that is up


@dataclass(frozen=True, slots=True)
class DeviceHolder:
    """One process, mount, RAID array or network interface that uses a device; `pid` of a process, else None."""

    kind: HolderKind
    name: str
    pid: int | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f" (pid {self.pid})" if self.pid is not None else "")


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """The PCIe link of a device: trained generation and lanes, and the most both ends could train; None: unknown."""

    gen: int | None
    lanes: int | None
    most_gen: int | None = None
    most_lanes: int | None = None

    @property
    def trained_down(self) -> bool:
        """Whether the link runs at a lower generation or with fewer lanes than both its ends could."""
        pairs = ((self.gen, self.most_gen), (self.lanes, self.most_lanes))
        return any(now is not None and most is not None and now < most for now, most in pairs)

    def __str__(self) -> str:
        return _speed(self.gen, self.lanes)

    @property
    def most(self) -> str:
        """The most both ends could train, as text: 'Gen4 x16'."""
        return _speed(self.most_gen, self.most_lanes)


def _speed(gen: int | None, lanes: int | None) -> str:
    return f"Gen{gen or '?'} x{lanes or '?'}"


@dataclass(frozen=True, slots=True)
class HotplugRoom:
    """What a server has left for devices added while it runs: slots, PCIe bus numbers, bytes of BAR space.

    None where the driver does not know; that refuses nothing.
    """

    slots: int | None = None
    buses: int | None = None
    bar_space: float | None = None


@dataclass(frozen=True, slots=True)
class DriverHealth:
    """Whether the driver reaches its fabric, and the reason if not; `tested_on` says where the driver has run."""

    ok: bool
    reason: str = ""
    tested_on: str = ""


class FabricEventKind(StrEnum):
    """What a fabric reports by itself."""

    ATTACHED = "attached"
    DETACHED = "detached"
    LINK_CHANGED = "link changed"
    DEVICE_LOST = "device lost"
    DEVICE_FOUND = "device found"


@dataclass(frozen=True, slots=True)
class FabricEvent:
    """Something that happened on the fabric, to a device, perhaps on a server."""

    kind: FabricEventKind
    device: str
    server: str | None = None
    text: str = ""


class Driver(Protocol):
    """One fabric: what it has, and how devices are given to servers.

    Every method may raise a DriverError. `bind`, `unbind` and `set_p2p` are idempotent by their operation id: a second
    call with the same id changes nothing and succeeds if the first one did. Methods are called from several threads,
    but never two operations on one device at once.
    """

    def discover(self) -> System:
        """Everything the fabric has, with the devices bound to the servers that hold them now."""
        ...

    def observe(self, server: str) -> frozenset[str]:
        """The devices that the fabric says are bound to a server; Unknown if it cannot say."""
        ...

    def bind(self, operation: str, server: str, device: str) -> None:
        """Give a device to a server that runs; returns when the server's side has it."""
        ...

    def unbind(self, operation: str, server: str, device: str) -> None:
        """Quiesce a device and take it from its server; Busy, and nothing changed, while it is in use."""
        ...

    def set_p2p(self, operation: str, server: str, allowed: bool) -> None:
        """Allow or forbid that the devices of a server reach each other without its CPU."""
        ...

    def link(self, device: str) -> LinkStatus | None:
        """The trained link of a device; None if the driver cannot read it."""
        ...

    def holders(self, device: str) -> tuple[DeviceHolder, ...]:
        """What uses a device on its server now; empty if nothing does, or if the device is free."""
        ...

    def room(self, server: str) -> HotplugRoom:
        """What the server has left for devices that are added while it runs."""
        ...

    def health(self) -> DriverHealth:
        """Whether the fabric can be reached; never raises."""
        ...

    def events(self) -> Iterator[FabricEvent]:
        """What the fabric reported since the last call, oldest first; ends when nothing is left."""
        ...
