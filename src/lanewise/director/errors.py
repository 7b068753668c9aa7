"""What the director refuses, each with what it would take: errors of claims, versions and repeated requests.

LanewiseError
└── Refused              nothing was changed
    ├── BlockInUse       somebody else has the block or the server (Redfish: ResourceBlockInUse, 409)
    ├── DeviceInUse      a process, mount or array uses the device on its server (409)
    ├── OperationRunning an operation on the same composition has not ended (409)
    ├── StaleVersion     the If-Match of a change is not the current version (412)
    ├── KeyReused        an idempotency key was used before, for another request (409)
    ├── Expired          a reservation whose time is over (410)
    └── NoSpace          the server has no slot, bus number or BAR space left for the device (409)
StoreError               the database cannot be opened, is in use by another director, or is not empty for a restore
Names that nothing bears are `errors.UnknownName`, states that forbid a change `errors.Contradiction`.
"""

from __future__ import annotations

from lanewise.director.drivers.base import DeviceHolder
from lanewise.errors import LanewiseError


class Refused(LanewiseError):
    """The director did not begin what was requested, and nothing was changed."""


class BlockInUse(Refused):
    """Somebody else has the block or the server `name`: `holder` is a composition or reservation."""

    def __init__(self, name: str, holder: str, *, hint: str = "") -> None:
        super().__init__(f"{name} is in use by {holder}", hint=hint or "choose a free one, or release this one first")
        self.name = name
        self.holder = holder


class DeviceInUse(Refused):
    """A device is in use on its server: `holders` says by what."""

    def __init__(self, device: str, server: str, holders: tuple[DeviceHolder, ...]) -> None:
        users = ", ".join(map(str, holders)) or "something the driver cannot name"
        super().__init__(f"{device} is in use on {server}: {users}", hint=f"stop what uses it on {server}, then repeat")
        self.device = device
        self.holders = holders


class OperationRunning(Refused):
    """An operation on the composition has not ended: `task` is its task, '' if not known."""

    def __init__(self, composition: str, task: str = "") -> None:
        super().__init__(f"an operation on {composition} has not ended", hint="repeat once its task has ended")
        self.composition = composition
        self.task = task


class StaleVersion(Refused):
    """A change was requested of a version that is not the current one."""

    def __init__(self, name: str, version: int, current: int) -> None:
        super().__init__(f"{name} is at version {current}, not {version}", hint="read it again, then repeat")
        self.name = name
        self.version = version
        self.current = current


class KeyReused(Refused):
    """An idempotency key was used before, for another request."""


class Expired(Refused):
    """The reservation's time is over, and its blocks are free for anybody."""


class NoSpace(Refused):
    """The server has no slot, bus number or BAR space left for a device."""


class StoreError(LanewiseError):
    """The database cannot be opened, is in use by another director, or does not fit."""
