"""The processes below one, and the CPU time that each kind of them takes, read from /proc once a second."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def descendants(root: int) -> Iterator[int]:
    """The process and all below it."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    waiting = [root]
    while waiting:
        process = waiting.pop()
        yield process
        waiting += children.get(process, [])


def kind_of(process: int, root: int) -> str:
    """driver, raylet, gcs_server, worker, or other (agents and monitors of Ray)."""
    if process == root:
        return "driver"
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "other"
    name = words[0].rpartition("/")[2]
    if name in ("raylet", "gcs_server"):
        return name
    of_ray = (name.startswith("ray::") and "Agent" not in name) or any("default_worker.py" in word for word in words)
    return "worker" if of_ray or "--multiprocessing-fork" in words else "other"


class ProcessTimes:
    """CPU time of a process and all below it while this is entered."""

    def __init__(self, root: int) -> None:
        self._root, self._seconds = root, dict[int, tuple[str, float]]()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def by_kind(self) -> dict[str, float]:
        """Seconds of user and system time of each kind of process."""
        sums: dict[str, float] = {}
        for kind, seconds in self._seconds.values():
            sums[kind] = sums.get(kind, 0.0) + seconds
        return sums

    def __enter__(self) -> ProcessTimes:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(1.0):
            for process in descendants(self._root):
                try:
                    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                kind = kind_of(process, self._root)
                if kind == "other" and process in self._seconds:
                    kind = self._seconds[process][0]  # one that ends has lost its command line
                self._seconds[process] = (kind, (int(fields[11]) + int(fields[12])) / _TICK)
