"""One mode of a storage measurement made ready: files, buffers, threads; and the rounds that run on them."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise import _native, installed
from lanewise.errors import CannotMeasure
from lanewise.probes.machine import ROOT, available, cpus_of, in_words, text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lanewise.probes.storage.files import Source
    from lanewise.probes.storage.options import Reading

_LOOK = 0.1  # s between two looks at the bytes so far
_NAP = 0.005
_SPAN = 0.5  # s over which a live rate is taken
_CHECKED_BYTES = 256 << 20
_LEAST_CHECKED, _MOST_CHECKED = 16, 4096


@dataclass(frozen=True, slots=True)
class Live:
    """What goes on right now: `what` in words, and B/s of each volume by name, over the last half second."""

    what: str
    rates: dict[str, float]


class Bench:
    """A mode with everything it needs; `run` makes one round, which Ctrl-C ends in order."""

    def __init__(self, asked: Reading, mode: str, sources: Sequence[Source], live: Callable[[Live], None]) -> None:
        self.asked = asked
        self.mode = mode
        self.sources = sources
        self.volumes = volumes(asked, sources)
        self._live = live
        job = self._job()
        _check_room(asked, mode)
        with in_words():
            self._runner = _native.StorageRunner(job)

    @property
    def count(self) -> int:
        """I/Os that make up each volume, as far as the data asked for goes."""
        share = self.asked.size // len(self.volumes)
        return max(1, min(share, *(volume.bytes for volume in self.volumes)) // self.asked.io)

    @property
    def names(self) -> list[str]:
        """What each volume is called."""
        if self.asked.stripe is not None:
            return ["volume"]
        return [source.name for source in self.sources]

    @property
    def says(self) -> str:
        """The mode as it really is: cuFile has one in which it does no more than a bounce."""
        return "cuFile compat" if "COMPAT MODE" in self._runner.how else self.mode

    @property
    def engine(self) -> str:
        """How the kernel is asked, and if not by io_uring, why."""
        if self.mode == "cuFile":
            return self._runner.how
        why = _native.io_uring_missing() if self.asked.engine == "auto" else ""
        return f"{self._runner.how}; no io_uring: {why}{_switched_off()}" if why else self._runner.how

    def nodes(self) -> dict[int, int]:
        """How many pages of the memory that data ends in lie on which NUMA node."""
        return self._runner.nodes()

    def cached(self) -> float | None:
        """Which share of the data lies in the page cache, 0..1; None where the kernel does not tell this user."""
        if not all(source.knows_cache for source in self.sources):
            return None
        taken = self.count * self.asked.io * len(self.volumes) // len(self.sources)
        shares = [_native.in_page_cache(source.buffered, min(taken, source.bytes)) for source in self.sources]
        return None if min(shares) < 0 else sum(shares) / len(shares)

    def run(self, what: str, task: _native.StorageTask) -> _native.StorageOutcome:
        """One round; CannotMeasure with the file and the offset where something fails."""
        watch = _Watch(what, self._live, self.names, self.volumes)
        try:
            with in_words():
                self._runner.start(task)
                while self._runner.running:
                    time.sleep(_NAP)
                    watch.look(self._runner.seconds, self._runner.bytes)
                return self._runner.finish()
        finally:
            self._runner.stop()

    def close(self) -> None:
        """Threads end, buffers are given back."""
        with contextlib.suppress(AttributeError):
            del self._runner

    def _job(self) -> _native.StorageJob:
        asked, job = self.asked, _native.StorageJob()
        job.volumes = self.volumes
        job.files = [s.buffered if self.mode == "cached" else s.open_direct() for s in self.sources]
        job.second_files = self._second()
        job.names = [source.path for source in self.sources]
        job.io, job.threads, job.depth = asked.io, asked.threads, asked.depth
        job.engine = engine(asked.engine)
        job.bounce = self.mode == "bounce"
        job.gpu = -1 if asked.to.gpu is None else asked.to.gpu
        job.cuda = installed.cuda_driver()
        if self.mode == "cuFile":
            job.engine, job.cufile = _native.StorageEngine.CUFILE, installed.cufile()
        job.node = -1 if asked.to.node is None else asked.to.node
        job.cpus = sorted(cpus_of(job.node))  # threads stay where the memory is
        return job

    def _second(self) -> list[int]:
        """The files by other means than those that are measured; none where there are no other means."""
        if self.mode != "cached":
            return [source.buffered for source in self.sources]
        try:
            return [source.open_direct() for source in self.sources] if self.asked.io % 4096 == 0 else []
        except CannotMeasure:
            return []

    @property
    def second(self) -> bool:
        """Whether the data can be read a second time by other means."""
        return self.mode != "cached" or bool(self._second())


def volumes(asked: Reading, sources: Sequence[Source]) -> list[_native.StorageVolume]:
    """One volume of all files in stripes, or one a file."""
    if asked.stripe is None:
        return [_native.StorageVolume([i], 0, source.bytes) for i, source in enumerate(sources)]
    rows = min(source.bytes for source in sources) // asked.stripe
    if rows * asked.stripe * len(sources) < asked.io:
        raise CannotMeasure("the striped volume is smaller than one I/O", hint="use larger files or a smaller --io")
    return [_native.StorageVolume(list(range(len(sources))), asked.stripe, rows * asked.stripe * len(sources))]


def checked(count: int, io: int) -> int:
    """How many I/Os of a file are compared with what they should be, outside of the timed runs."""
    return min(count, max(_LEAST_CHECKED, min(_MOST_CHECKED, _CHECKED_BYTES // io)))


def engine(asked: str) -> _native.StorageEngine:
    """io_uring, or threads where it is asked for or the kernel offers nothing else."""
    missing = _native.io_uring_missing() if asked != "psync" else "not wanted"
    if asked == "io_uring" and missing:
        hint = f"use --engine psync{_switched_off()}"
        raise CannotMeasure(f"there is no io_uring here: {missing}", hint=hint)
    return _native.StorageEngine.SYNC if missing else _native.StorageEngine.RING


class _Watch:
    """Turns bytes so far into rates of the last half second."""

    def __init__(
        self, what: str, live: Callable[[Live], None], names: list[str], parts: Sequence[_native.StorageVolume]
    ) -> None:
        self._what, self._live, self._names, self._parts = what, live, names, parts
        self._seen: list[tuple[float, list[int]]] = [(0.0, [0] * sum(len(part.files) for part in parts))]

    def look(self, now: float, done: list[int]) -> None:
        if now - self._seen[-1][0] < _LOOK:
            return
        while len(self._seen) > 1 and now - self._seen[1][0] >= _SPAN:
            self._seen.pop(0)
        since, before = self._seen[0]
        rates = {
            name: sum(done[i] - before[i] for i in part.files) / (now - since)
            for name, part in zip(self._names, self._parts, strict=True)
        }
        self._seen.append((now, done))
        self._live(Live(self._what, rates))


def _check_room(asked: Reading, mode: str) -> None:
    """Buffers are touched, and a machine without the room would kill processes rather than say no."""
    needed = asked.threads * asked.depth * asked.io * (2 if mode == "bounce" else 1)
    there = available()
    if there is not None and needed > there:
        cause = f"buffers of {needed / 1e9:.2f} GB are needed, {there / 1e9:.2f} GB of memory are free"
        raise CannotMeasure(cause, hint="lower --threads, --depth or --io")


def _switched_off() -> str:
    value = text(ROOT / "proc/sys/kernel/io_uring_disabled")
    return f" (kernel.io_uring_disabled={value})" if value not in ("", "0") else ""
