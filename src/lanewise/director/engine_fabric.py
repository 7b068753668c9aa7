"""What the director asks of its driver around an operation: who uses a device, how its link trained, what happened."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from lanewise.director.drivers.base import Driver, DriverError, FabricEvent, FabricEventKind, Retryable
from lanewise.director.engine_steps import ATTEMPTS
from lanewise.director.errors import DeviceInUse
from lanewise.topology.model import System

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class FabricReader:
    """Reads of a fabric; `pause` waits before the n-th retry."""

    driver: Driver
    pause: Callable[[int], None]

    def retried(self, call: Callable[[], _Result]) -> _Result:
        """What a call of the driver returns, tried again a few times while it is Retryable."""
        for attempt in range(1, ATTEMPTS):
            try:
                return call()
            except Retryable:
                self.pause(attempt)
        return call()

    def check_idle(self, device: str, server: str) -> None:
        """DeviceInUse if something on its server uses a device; what the driver cannot say, the removal itself will."""
        with contextlib.suppress(DriverError):
            holders = self.driver.holders(device)
            if holders:
                raise DeviceInUse(device, server, holders)

    def link_note(self, device: str) -> str:
        """What is wrong with the link of a device that was attached; '' if it is as it should be, or not known."""
        try:
            link = self.driver.link(device)
        except DriverError as error:
            return f"its link cannot be read: {error.cause}"
        if link is None or not link.trained_down:
            return ""
        return f"its link trained at {link}, of {link.most}"


def news(reports: Iterable[FabricEvent], system: System) -> list[FabricEvent]:
    """The reports without those of moves that the director made itself, which the system shows already."""
    return [report for report in reports if not _shown(report, system)]


def _shown(report: FabricEvent, system: System) -> bool:
    if report.kind not in (FabricEventKind.ATTACHED, FabricEventKind.DETACHED) or report.device not in system.devices:
        return False
    server = report.server if report.kind is FabricEventKind.ATTACHED else None
    return system.devices[report.device].host == server
