"""One mode of a storage measurement set up: files, buffers, threads; and the runs on them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lanewise import _native, installed
from lanewise.errors import CannotMeasure
from lanewise.options.measure_storage import MeasureStorageOptions
from lanewise.probes.machine import ROOT, available, cpus_of, native_errors, text
from lanewise.probes.storage.files import StorageFile

_PROGRESS_S = 0.1  # between two reports of progress
_SLEEP_S = 0.005
_PAUSE_S = 0.001
_SPAN_S = 0.5  # over which a current rate is taken


@dataclass(frozen=True, slots=True)
class StorageProgress:
    """The current `stage` in words, and the `rates` (B/s) of each volume by name over the last half second."""

    stage: str
    rates: dict[str, float]


class StorageSession:
    """A mode with its files, buffers and threads; `run` makes one run, which Ctrl-C ends in order."""

    def __init__(
        self, options: MeasureStorageOptions, mode: str, files: Sequence[StorageFile],
        on_progress: Callable[[StorageProgress], None],
    ) -> None:  # fmt: skip
        self.options = options
        self.mode = mode
        self.files = files
        self.volumes = volumes(options, files)
        self._on_progress = on_progress
        _check_memory(options, mode)
        with contextlib.ExitStack() as names, native_errors():
            for file in files if mode == "cuFile" else ():
                names.enter_context(file.named())
            self._runner = _native.StorageRunner(self._job())

    @property
    def count(self) -> int:
        """I/Os of a run on each volume."""
        share = self.options.size // len(self.volumes)
        return max(1, min(share, *(volume.bytes for volume in self.volumes)) // self.options.io)

    @property
    def names(self) -> list[str]:
        """What each volume is called."""
        if self.options.stripe is not None:
            return ["volume"]
        return [file.name for file in self.files]

    @property
    def actual_mode(self) -> str:
        """The mode, or cuFile's compatibility mode, in which it does no more than a bounce."""
        return "cuFile compat" if "COMPAT MODE" in self._runner.how else self.mode

    @property
    def engine(self) -> str:
        """The interface of the kernel, and if it is not io_uring, why."""
        if self.mode == "cuFile":
            return self._runner.how
        reason = _native.io_uring_missing() if self.options.engine == "auto" else ""
        return f"{self._runner.how}; no io_uring: {reason}{_disabled()}" if reason else self._runner.how

    def nodes(self) -> dict[int, int]:
        """Pages of the memory that is read into, by NUMA node."""
        return self._runner.nodes()

    def cached(self) -> float | None:
        """The share of the data in the page cache, 0..1; None where the kernel does not tell this user."""
        if not all(file.cache_visible for file in self.files):
            return None
        size = self.count * self.options.io * len(self.volumes) // len(self.files)
        shares = [_native.in_page_cache(file.buffered, min(size, file.bytes)) for file in self.files]
        return None if min(shares) < 0 else sum(shares) / len(shares)

    def run(self, stage: str, task: _native.StorageTask) -> _native.StorageOutcome:
        """One run; CannotMeasure with the file and the offset where something fails."""
        progress = _ProgressReporter(stage, self._on_progress, self.names, self.volumes)
        try:
            with native_errors():
                self._runner.start(task)
                while self._runner.running:
                    time.sleep(_SLEEP_S)
                    progress.update(self._runner.seconds, self._runner.bytes)
                return self._runner.finish()
        finally:
            self._runner.stop()

    def close(self) -> None:
        """Threads end, buffers are freed."""
        with contextlib.suppress(AttributeError):
            del self._runner

    def _job(self) -> _native.StorageJob:
        options, job = self.options, _native.StorageJob()
        job.volumes = self.volumes
        job.files = [file.buffered if self.mode == "cached" else file.open_direct() for file in self.files]
        job.second_files = self._second_files()
        job.names = [file.path for file in self.files]
        job.io, job.threads, job.depth = options.io, options.threads, options.depth
        job.engine = engine(options.engine)
        job.bounce = self.mode == "bounce"
        job.gpu = -1 if options.target.gpu is None else options.target.gpu
        job.cuda = installed.cuda_driver()
        if self.mode == "cuFile":
            job.engine, job.cufile = _native.StorageEngine.CUFILE, installed.cufile()
        job.node = -1 if options.target.node is None else options.target.node
        job.cpus = sorted(cpus_of(job.node))  # threads stay where the memory is
        return job

    def _second_files(self) -> list[int]:
        """The files opened the other way round, direct for cached; none where that is not possible."""
        if self.mode != "cached":
            return [file.buffered for file in self.files]
        try:
            return [file.open_direct() for file in self.files] if self.options.io % 4096 == 0 else []
        except CannotMeasure:
            return []

    @property
    def has_second_path(self) -> bool:
        """Whether the data can be read a second time by another path, for comparison."""
        return self.mode != "cached" or bool(self._second_files())


def run_together(
    sessions: Sequence[StorageSession], tasks: Sequence[_native.StorageTask]
) -> list[_native.StorageOutcome]:
    """The task of each session, all at the same time; CannotMeasure where one of them fails."""
    runners = [session._runner for session in sessions]
    try:
        with native_errors():
            for runner, task in zip(runners, tasks, strict=True):
                runner.start(task)
            while any(runner.running for runner in runners):
                time.sleep(_PAUSE_S)
            return [runner.finish() for runner in runners]
    finally:
        for runner in runners:
            runner.stop()


def volumes(options: MeasureStorageOptions, files: Sequence[StorageFile]) -> list[_native.StorageVolume]:
    """One volume of all files in stripes, or a volume for each file."""
    if options.stripe is None:
        return [_native.StorageVolume([i], 0, file.bytes) for i, file in enumerate(files)]
    size = min(file.bytes for file in files) // options.stripe * options.stripe * len(files)
    if size < options.io:
        raise CannotMeasure("the striped volume is smaller than one I/O", hint="use larger files or a smaller --io")
    return [_native.StorageVolume(list(range(len(files))), options.stripe, size)]


def engine(name: str) -> _native.StorageEngine:
    """io_uring, or threads that call pread for psync and where the kernel offers nothing else."""
    missing = _native.io_uring_missing() if name != "psync" else "not selected"
    if name == "io_uring" and missing:
        hint = f"use --engine psync{_disabled()}"
        raise CannotMeasure(f"there is no io_uring here: {missing}", hint=hint)
    return _native.StorageEngine.SYNC if missing else _native.StorageEngine.RING


class _ProgressReporter:
    """Turns the bytes moved so far into rates of the last half second."""

    def __init__(
        self, stage: str, report: Callable[[StorageProgress], None], names: list[str],
        volumes: Sequence[_native.StorageVolume],
    ) -> None:  # fmt: skip
        self._stage, self._report, self._names, self._volumes = stage, report, names, volumes
        self._history: list[tuple[float, list[int]]] = [(0.0, [0] * sum(len(volume.files) for volume in volumes))]

    def update(self, now: float, moved: list[int]) -> None:
        if now - self._history[-1][0] < _PROGRESS_S:
            return
        while len(self._history) > 1 and now - self._history[1][0] >= _SPAN_S:
            self._history.pop(0)
        since, before = self._history[0]
        rates = {
            name: sum(moved[i] - before[i] for i in volume.files) / (now - since)
            for name, volume in zip(self._names, self._volumes, strict=True)
        }
        self._history.append((now, moved))
        self._report(StorageProgress(self._stage, rates))


def _check_memory(options: MeasureStorageOptions, mode: str) -> None:
    """Buffers are touched, and a machine without the memory would kill processes rather than refuse it."""
    needed = options.threads * options.depth * options.io * (2 if mode == "bounce" else 1)
    free = available()
    if free is not None and needed > free:
        cause = f"buffers of {needed / 1e9:.2f} GB are needed, {free / 1e9:.2f} GB of memory are free"
        raise CannotMeasure(cause, hint="lower --threads, --depth or --io")


def _disabled() -> str:
    value = text(ROOT / "proc/sys/kernel/io_uring_disabled")
    return f" (kernel.io_uring_disabled={value})" if value not in ("", "0") else ""
