"""How much CPU time others took during a run: what they take, a load test may be refused for."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

# The columns of /proc/stat that others may need: user, system, irq, softirq, steal (man 5 proc_stat). Work of low
# priority, nice, gives way.
_BUSY, _ALL = (0, 2, 5, 6, 7), 8
IDLE = 0.25  # with more of the CPU time left than this, others took nobody's
DISTURBED = 0.1  # others that took more than this share may be why a run was refused


@dataclass(frozen=True, slots=True)
class Used:
    """CPU time so far in s, of the cores that this process may use: all, what was not idle, and its own."""

    all: float
    busy: float
    own: float

    def others_since(self, before: Used) -> float | None:
        """The share (0 to 1) that others and the hypervisor took, 0 where enough was left; None: too short to tell."""
        passed, busy = self.all - before.all, self.busy - before.busy
        if passed < 0.1:  # ten ticks
            return None
        if 1.0 - busy / passed > IDLE:
            return 0.0
        return min(max((busy - (self.own - before.own)) / passed, 0.0), 1.0)


def used(stat: Path = Path("/proc/stat")) -> Used | None:
    """What was used until now; None where the system does not tell."""
    try:
        text = stat.read_text(encoding="ascii")
    except OSError:
        return None
    mine = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    cores = [line.split()[1:] for line in re.findall(r"^cpu\d+ .*$", text, re.MULTILINE)]
    numbers = [int(number) for number in re.findall(r"^cpu(\d+) ", text, re.MULTILINE)]
    ticks = [[int(word) for word in core[:_ALL]] for number, core in zip(numbers, cores, strict=True) if number in mine]
    if not ticks or any(len(core) < _ALL for core in ticks):
        return None
    tick = float(os.sysconf("SC_CLK_TCK"))
    busy = sum(core[column] for core in ticks for column in _BUSY)
    return Used(sum(map(sum, ticks)) / tick, busy / tick, time.process_time())


__all__ = ["DISTURBED", "Used", "used"]
