"""The `sim` driver: a fabric in memory, or in a file that outlives the director, with faults that a seed decides."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from lanewise.director.attachments import placed
from lanewise.director.drivers.base import (
    Busy,
    DeviceHolder,
    DriverHealth,
    FabricEvent,
    FabricEventKind,
    Gone,
    HotplugRoom,
    LinkStatus,
    Retryable,
    Unknown,
)
from lanewise.pool.operations import pool_of
from lanewise.topology.model import LinkKind, System


@dataclass(frozen=True)
class SimFaults:
    """How often each fault happens, 0 to 1; the n-th operation on a device draws from the seed, its name and n.

    `trained_down`: the link of an attached device has half its lanes. `stuck_quiesce`: a device does not come to rest,
    and no try of that removal succeeds. `lost_reply`: the step happened, and the answer says Retryable or Unknown.
    `refused`: one try fails before anything happened. `unclear`: after a lost reply the server cannot be observed.
    """

    trained_down: float = 0.0
    stuck_quiesce: float = 0.0
    lost_reply: float = 0.0
    refused: float = 0.0
    unclear: float = 0.0


@dataclass
class OperationTries:
    """The latest operation on a device, which of them it is, and how often it was tried."""

    operation: str = ""
    number: int = 0
    attempts: int = 0


@dataclass
class SimState:
    """What the fabric remembers: who has which device, and the last operation on each that was carried out."""

    attached: dict[str, str] = field(default_factory=dict)
    operations: dict[str, str] = field(default_factory=dict)
    narrow: dict[str, int] = field(default_factory=dict)  # lanes of links that trained down
    p2p: dict[str, bool] = field(default_factory=dict)


class SimDriver:
    """A simulated fabric over a system; `state` is a file it is kept in, so that a killed director finds it again.

    `crash` is called with the name of each point at which a director may be killed: 'before bind gpu3', 'after bind
    gpu3'. `slots` is how many devices a server takes, None for any number; an operation takes `delay` s.
    """

    def __init__(
        self, system: System, *, faults: SimFaults = SimFaults(), seed: int = 0, state: Path | None = None,
        crash: Callable[[str], None] = lambda point: None, slots: int | None = None, delay: float = 0.0,
    ) -> None:  # fmt: skip
        self._faults, self._seed, self._path, self._crash, self._slots = faults, seed, state, crash, slots
        self._delay, self._guard = delay, threading.RLock()
        self._system = system
        self._holders: dict[str, tuple[DeviceHolder, ...]] = {}
        self._unclear: set[str] = set()
        self._lost: set[str] = set()
        self._tries: dict[str, OperationTries] = {}
        self._reports: deque[FabricEvent] = deque()
        self._devices = tuple(pool_of(system).blocks)
        attached = {name: host for name in self._devices if (host := system.devices[name].host) is not None}
        self._state = SimState(attached)
        if state is not None and state.exists():
            self._state = SimState(**json.loads(state.read_text(encoding="utf-8")))

    def discover(self) -> System:
        """The system with what is attached now, without the devices that were lost."""
        with self._guard:
            system = self._system
            for device in self._devices:
                system = placed(system, device, self._state.attached.get(device))
            if not self._lost:
                return system
            devices = {name: each for name, each in system.devices.items() if name not in self._lost}
            links = tuple(link for link in system.links if not {link.a, link.b} & self._lost)
            return replace(system, devices=devices, links=links)

    def observe(self, server: str) -> frozenset[str]:
        """The devices bound to a server; Unknown while `unclear` holds for it."""
        with self._guard:
            if server in self._unclear:
                raise Unknown(f"{server} does not answer")
            return frozenset(name for name, host in self._state.attached.items() if host == server)

    def bind(self, operation: str, server: str, device: str) -> None:
        """Attach a device, unless a fault of this operation says otherwise."""
        self._operate("bind", operation, server, device)

    def unbind(self, operation: str, server: str, device: str) -> None:
        """Detach a device that nothing uses, unless a fault of this operation says otherwise."""
        self._operate("unbind", operation, server, device)

    def set_p2p(self, operation: str, server: str, allowed: bool) -> None:
        """Note whether the devices of a server may reach each other."""
        with self._guard:
            self._state.p2p[server] = allowed
            self._save()

    def link(self, device: str) -> LinkStatus | None:
        """The link above a device as described, narrower where it trained down."""
        with self._guard:
            self._present(device)
            above = [link for link in self._system.links_at(device) if link.kind is LinkKind.PCIE and link.b == device]
            if not above or above[0].lanes is None:
                return None
            gen, lanes = above[0].gen, above[0].lanes
            return LinkStatus(gen, self._state.narrow.get(device, lanes), gen, lanes)

    def holders(self, device: str) -> tuple[DeviceHolder, ...]:
        """What `hold` put on a device."""
        with self._guard:
            self._present(device)
            return self._holders.get(device, ())

    def room(self, server: str) -> HotplugRoom:
        """The slots that are left of `slots`."""
        if self._slots is None:
            return HotplugRoom()
        with self._guard:
            return HotplugRoom(slots=self._slots - sum(host == server for host in self._state.attached.values()))

    def health(self) -> DriverHealth:
        """Always well: it is no fabric."""
        return DriverHealth(True, tested_on="a simulated fabric")

    def events(self) -> Iterator[FabricEvent]:
        """What `lose`, `find`, `meddle` and `narrow` did since the last call."""
        while self._reports:
            yield self._reports.popleft()

    def hold(self, device: str, *holders: DeviceHolder) -> None:
        """Let something use a device; nobody, without holders."""
        with self._guard:
            self._holders[device] = holders

    def blur(self, server: str, unclear: bool = True) -> None:
        """Let a server not be observable, or be so again."""
        with self._guard:
            (self._unclear.add if unclear else self._unclear.discard)(server)

    def lose(self, device: str) -> None:
        """Pull a device out of the fabric."""
        with self._guard:
            self._lost.add(device)
            server = self._state.attached.pop(device, None)
            self._save()
            self._reports.append(FabricEvent(FabricEventKind.DEVICE_LOST, device, server))

    def find(self, device: str) -> None:
        """Put a device back, free."""
        with self._guard:
            self._lost.discard(device)
            self._reports.append(FabricEvent(FabricEventKind.DEVICE_FOUND, device))

    def meddle(self, device: str, server: str | None) -> None:
        """Move a device as somebody would who goes round the director."""
        with self._guard:
            self._state.attached.pop(device, None)
            if server is not None:
                self._state.attached[device] = server
            self._save()
            kind = FabricEventKind.DETACHED if server is None else FabricEventKind.ATTACHED
            self._reports.append(FabricEvent(kind, device, server))

    def narrow(self, device: str, lanes: int) -> None:
        """Let the link of a device train again, with so many lanes."""
        with self._guard:
            self._state.narrow[device] = lanes
            self._save()
            self._reports.append(FabricEvent(FabricEventKind.LINK_CHANGED, device, self._state.attached.get(device)))

    def _operate(self, verb: str, operation: str, server: str, device: str) -> None:
        self._crash(f"before {verb} {device}")
        if self._delay:
            time.sleep(self._delay)
        with self._guard:
            tries = self._try(operation, device)
            origin = f"{self._seed}/{verb}/{device}/{tries.number}"
            chance = random.Random(f"{origin}/{tries.attempts}")
            stuck = random.Random(origin).random() < self._faults.stuck_quiesce
            if self._state.operations.get(device) != operation:
                self._present(device)
                self._refuse(verb, server, device)
                if chance.random() < self._faults.refused:
                    raise Retryable(f"{verb} of {device} on {server} was refused for now")
                if verb == "unbind" and stuck:
                    raise Retryable(f"{device} does not come to rest on {server}")
                self._carry_out(verb, operation, server, device, chance)
        self._crash(f"after {verb} {device}")
        if chance.random() < self._faults.lost_reply and tries.attempts == 1:
            with self._guard:
                if chance.random() < self._faults.unclear:
                    self._unclear.add(server)
            raise chance.choice((Retryable, Unknown))(f"no reply to {verb} of {device} on {server}")

    def _refuse(self, verb: str, server: str, device: str) -> None:
        """What stands against an operation by itself."""
        where = self._state.attached.get(device)
        if verb == "bind" and where is not None:
            raise Busy(f"{device} is bound to {where}")
        if verb == "unbind" and where not in (server, None):
            raise Busy(f"{device} is bound to {where}, not to {server}")
        if verb == "unbind" and self._holders.get(device):
            raise Busy(f"{device} is in use on {server}", self._holders[device])

    def _carry_out(self, verb: str, operation: str, server: str, device: str, chance: random.Random) -> None:
        self._state.attached.pop(device, None)
        self._state.narrow.pop(device, None)
        if verb == "bind":
            self._state.attached[device] = server
            status = self.link(device)
            if chance.random() < self._faults.trained_down and status and status.lanes and status.lanes > 1:
                self._state.narrow[device] = status.lanes // 2
        self._state.operations[device] = operation
        self._save()

    def _try(self, operation: str, device: str) -> OperationTries:
        """Count a try of an operation on a device."""
        before = self._tries.setdefault(device, OperationTries())
        same = before.operation == operation
        tries = OperationTries(operation, before.number + (not same), before.attempts + 1 if same else 1)
        self._tries[device] = tries
        return tries

    def _present(self, device: str) -> None:
        if device not in self._system.devices or device in self._lost:
            raise Gone(f"{device} is not on the fabric")

    def _save(self) -> None:
        """The file is whole at any moment: a kill leaves the old or the new one."""
        if self._path is not None:
            fresh = self._path.with_suffix(".new")
            fresh.write_text(json.dumps(vars(self._state)), encoding="utf-8")
            os.replace(fresh, self._path)
