"""Work for the engines' tests: functions of a module, as workers import them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanewise.errors import InputError


@dataclass(frozen=True, slots=True)
class Rate:
    """An answer of a scenario."""

    name: str
    value: float


def square(number: int) -> int:
    """The number's square; InputError for a negative one."""
    if number < 0:
        raise InputError(f"{number} is negative", hint="give 0 or more")
    return number * number


def process(_: Any) -> int:
    """The process that the work runs in."""
    return os.getpid()


def kill_worker_once(item: tuple[str, int]) -> int:
    """The number; the first worker that comes here dies of it."""
    marker = Path(item[0])
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item[1]


def kill_worker(_: Any) -> None:
    """No worker survives this."""
    os.kill(os.getpid(), signal.SIGKILL)


def wait_for(path: str) -> None:
    """Return when the file exists."""
    while not Path(path).exists():
        time.sleep(0.005)


def announce_and_wait(path: str) -> None:
    """Write the process into the file, then never return."""
    part = Path(f"{path}.part")
    part.write_text(str(os.getpid()), encoding="utf-8")
    part.replace(path)
    wait_for(f"{path}.never")


CALLS: list[Any] = []  # of this process


def named_rate(number: int) -> Rate:
    """A rate of the number, and a note that it was computed."""
    CALLS.append(number)
    return Rate(f"row {number}", number / 3)


def named_rate_of_survivor(number: int) -> Rate:
    """The same; the number 13 kills its worker."""
    if number == 13:
        kill_worker(number)
    return named_rate(number)


def slow_rate(number: int) -> Rate:
    """The same after 20 ms."""
    time.sleep(0.02)
    return named_rate(number)
