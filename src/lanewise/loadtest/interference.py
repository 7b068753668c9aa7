"""How much CPU time others took during a run: what they take, a load test may be refused for."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

# The columns of /proc/stat that are not idle: user, nice, system, irq, softirq, steal (man 5 proc_stat).
_BUSY, _ALL = (0, 1, 2, 5, 6, 7), 8
# Of a process's stat, behind its name: user and system time, and the policy (man 5 proc_pid_stat).
_USER, _SYSTEM, _POLICY, _IDLE_CLASS = 11, 12, 38, "5"
IDLE = 0.25  # with more of the CPU time left than this, others took nobody's
DISTURBED = 0.1  # others that took more than this share may be why a run was refused


@dataclass(frozen=True, slots=True)
class CpuUsage:
    """CPU time so far in s, of the cores that this process may use: all, what was not idle, and the load test's own."""

    all: float
    busy: float
    own: float

    def interference_since(self, before: CpuUsage) -> float | None:
        """The share (0 to 1) that others and the hypervisor took, 0 where enough was left; None: too short to tell."""
        passed, busy = self.all - before.all, self.busy - before.busy
        if passed < 0.1:  # ten ticks
            return None
        if 1.0 - busy / passed > IDLE:
            return 0.0
        return min(max((busy - (self.own - before.own)) / passed, 0.0), 1.0)


def cpu_usage(proc: Path = Path("/proc"), nodes: Collection[int] = ()) -> CpuUsage | None:
    """What was used until now; None where the system does not tell.

    The load test's own is the time of this process and of `nodes`, its nodes on this host by process number. Processes
    of the idle class (SCHED_IDLE) run where nobody else wants to, and do not count.
    """
    try:
        text = (proc / "stat").read_text(encoding="ascii")
    except OSError:
        return None
    mine = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    cores = [line.split()[1:] for line in re.findall(r"^cpu\d+ .*$", text, re.MULTILINE)]
    numbers = [int(number) for number in re.findall(r"^cpu(\d+) ", text, re.MULTILINE)]
    ticks = [[int(word) for word in core[:_ALL]] for number, core in zip(numbers, cores, strict=True) if number in mine]
    if not ticks or any(len(core) < _ALL for core in ticks):
        return None
    tick = float(os.sysconf("SC_CLK_TCK"))
    busy = sum(core[column] for core in ticks for column in _BUSY) - _yielding(proc)
    own = time.process_time() + sum(_ticks(proc / f"{node}" / "stat")[0] for node in nodes) / tick
    return CpuUsage(sum(map(sum, ticks)) / tick, busy / tick, own)


def _yielding(proc: Path) -> int:
    """Ticks of all processes of the idle class; of one that ends they are missing, and count as others' again."""
    ticks = 0
    for process in proc.glob("[0-9]*/stat"):
        spent, policy = _ticks(process)
        if policy == _IDLE_CLASS:
            ticks += spent
    return ticks


def _ticks(process: Path) -> tuple[int, str]:
    """What the process of a stat file has spent, and its policy; nothing of one that has ended."""
    try:
        fields = process.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0, ""
    return (int(fields[_USER]) + int(fields[_SYSTEM]), fields[_POLICY]) if len(fields) > _POLICY else (0, "")
