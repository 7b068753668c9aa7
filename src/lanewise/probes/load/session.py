"""One mode of loading set up: files, readers, and the memory of the targets; and the runs on them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lanewise import _native, installed
from lanewise.errors import CannotMeasure
from lanewise.options.measure_load import MeasureLoadOptions
from lanewise.probes.load.layout import LoadLayout
from lanewise.probes.machine import available, native_errors
from lanewise.probes.storage.files import StorageFile
from lanewise.probes.storage.session import engine

_SLEEP_S = 0.002
_PROGRESS_S = 0.1


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """The current `stage` in words, the bytes `moved` of `total`, and the `rate` (B/s) since it began."""

    stage: str
    moved: int
    total: int
    rate: float


class LoadSession:
    """A mode with its readers and memory; `seconds` makes one run, which Ctrl-C ends in order."""

    def __init__(
        self, options: MeasureLoadOptions, mode: str, files: Sequence[StorageFile], plan: LoadLayout,
        on_progress: Callable[[LoadProgress], None],
    ) -> None:  # fmt: skip
        self.mode, self.options, self.files, self.plan = mode, options, files, plan
        self._on_progress = on_progress
        _check_memory(options, plan, mode)
        with native_errors():
            self._runner = _native.StorageRunner(self._job())

    @property
    def engine(self) -> str:
        """The interface of the kernel."""
        return self._runner.how

    @property
    def is_verified_otherwise(self) -> bool:
        """Whether the files are read by another path for the comparison: direct for cached modes, cached for others."""
        return self._second() != [file.buffered for file in self.files] or self.mode in ("direct", "bounce")

    def load(self, stage: str) -> float:
        """Seconds of loading everything; the page cache is empty of it before `buffered`."""
        if self.mode == "buffered":
            self.evict()
        return self._run(stage, _native.StorageTask(len(self.plan.chunks)))

    def read_alone(self) -> float:
        """Seconds of the reads without the copies to targets."""
        if self.mode == "buffered":
            self.evict()
        return self._run(f"{self.mode}: reads alone", _native.StorageTask(len(self.plan.chunks), keep=False))

    def copy_alone(self) -> float:
        """Seconds of the copies to targets without the reads."""
        return self._run(f"{self.mode}: copies alone", _native.StorageTask(len(self.plan.chunks), read=False))

    def verify(self) -> None:
        """Compare all that was loaded with the files; CannotMeasure with the file and the offset that differ."""
        task = _native.StorageTask(
            len(self.plan.chunks), read=False, keep=False, data=_native.StorageData.REREAD
        )  # fmt: skip
        self._run(f"{self.mode}: comparing with the files", task)

    def fill_cache(self) -> None:
        """Read everything once, so that the page cache has it."""
        if self.mode == "cached":
            self._run("filling the page cache", _native.StorageTask(len(self.plan.chunks), keep=False))

    def evict(self) -> None:
        """Drop the files from the page cache, as far as the kernel does."""
        for file in self.files:
            with contextlib.suppress(OSError):
                os.fsync(file.buffered)
            os.posix_fadvise(file.buffered, 0, 0, os.POSIX_FADV_DONTNEED)

    def cached(self) -> float | None:
        """The share of the files in the page cache, 0..1; None where the kernel does not tell this user."""
        shares = [_native.in_page_cache(file.buffered, file.bytes) for file in self.files if file.cache_visible]
        return None if len(shares) < len(self.files) or min(shares) < 0 else sum(shares) / len(shares)

    def close(self) -> None:
        """Readers end, memory is freed."""
        with contextlib.suppress(AttributeError):
            del self._runner

    def _run(self, stage: str, task: _native.StorageTask) -> float:
        total, next_report = sum(chunk[2] for chunk in self.plan.chunks), 0.0
        try:
            with native_errors():
                self._runner.start(task)
                while self._runner.running:
                    time.sleep(_SLEEP_S)
                    elapsed = self._runner.seconds
                    if elapsed >= next_report:
                        moved = sum(self._runner.bytes)
                        self._on_progress(LoadProgress(stage, moved, total, moved / max(elapsed, 1e-9)))
                        next_report = elapsed + _PROGRESS_S
                return self._runner.finish().makespan
        finally:
            self._runner.stop()

    def _job(self) -> _native.StorageJob:
        options, job = self.options, _native.StorageJob()
        direct = self.mode in ("direct", "bounce")
        job.files = [file.open_direct() if direct else file.buffered for file in self.files]
        job.second_files = self._second()
        job.names = [file.path for file in self.files]
        job.io, job.engine = options.io, engine("auto" if direct else "psync")
        job.threads, job.depth = _threads(options, direct and job.engine == _native.StorageEngine.RING, direct)
        job.bounce = self.mode == "bounce"
        job.cuda = installed.cuda_driver()
        numbers = options.gpus or (-1,)
        job.load(list(zip(numbers, self.plan.sizes, strict=True)), list(self.plan.chunks))
        return job

    def _second(self) -> list[int]:
        """The files opened the other way round; through the page cache where that is not possible."""
        if self.mode in ("direct", "bounce"):
            return [file.buffered for file in self.files]
        try:
            return [file.open_direct() for file in self.files]
        except CannotMeasure:
            return [file.buffered for file in self.files]


def _threads(options: MeasureLoadOptions, ring: bool, direct: bool) -> tuple[int, int]:
    """Threads and slots of each: a thread that calls pread has one read at a time, and copies from the slot before."""
    if ring:
        return options.readers, options.depth
    return options.readers * (options.depth if direct else 1), 2 if options.gpus else 1


def _check_memory(options: MeasureLoadOptions, plan: LoadLayout, mode: str) -> None:
    """Memory is touched, and a machine without it would kill processes rather than refuse it."""
    buffers = options.readers * max(options.depth, 2) * options.io * (2 if mode == "bounce" else 1)
    needed = buffers + (0 if options.gpus else sum(plan.sizes))
    free = available()
    if free is not None and needed > free:
        cause = f"{needed / 1e9:.2f} GB of host memory are needed, {free / 1e9:.2f} GB are free"
        raise CannotMeasure(cause, hint="load fewer files, or to a GPU; lower --readers, --depth or --io")
