"""Blocks between memory and a test file: by io_uring past the page cache, and from GPUs by cuFile as well."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from lanewise._native import StorageData, StorageTask
from lanewise.blocks.pieces import Pieces
from lanewise.errors import CannotMeasure, InputError, Location
from lanewise.options.measure_kv import MeasureKvOptions
from lanewise.options.measure_storage import MeasureStorageOptions
from lanewise.probes.gpu.gpus import Gpus
from lanewise.probes.machine import numa_nodes
from lanewise.probes.sampling import sample_until
from lanewise.probes.storage.files import StorageFile, make_files
from lanewise.probes.storage.session import StorageProgress, StorageSession, run_together
from lanewise.results.block_rows import GOODPUT, block_scenario, block_settings, block_values
from lanewise.results.sample import Sample

_PEAK_PIECE = 1 << 20
_LEAST_COMPARED, _MOST_COMPARED, _COMPARED_BYTES = 16, 65_536, 1 << 30
_NO_FLUSH = "none: the drive may still hold what was written"
_WRITE, _READ, _BOTH = "write", "read", "both"
Report = Callable[[StorageProgress], None]


def block_files(options: MeasureKvOptions, pieces: Pieces, gpus: Gpus | None, on_progress: Report) -> Iterator[Sample]:
    """Samples of every software, written, read and both at once, after long I/Os whose rate is the peak."""
    folder, name = test_place(options.to)
    long = Pieces(-(-max(round(pieces.total), options.peak_bytes) // _PEAK_PIECE), float(_PEAK_PIECE))
    peaks: dict[str, dict[str, float]] = {}
    with make_files((folder, folder), round(max(pieces.total, long.total))) as files:
        for file in files:
            file.name = name
        for number, software in enumerate(options.software or options.possible_software):
            for some in (pieces,) if peaks else (long, pieces):
                series = _BlockFiles(options, some, software, files, gpus, on_progress)
                try:
                    series.open()
                except CannotMeasure as error:
                    series.close()
                    if software in options.software or software != "cuFile":  # measured where it is installed
                        raise
                    yield series.not_measured(str(error))
                    break
                with closing(series):
                    series.warm_up(salt=(number + 1) << 20)
                    values: dict[str, dict[str, list[float]]] = {}
                    for direction, sample in series.samples({} if some is long else peaks):
                        if some is long and sample.metric == GOODPUT and sample.value:
                            values.setdefault(direction, {}).setdefault(sample.flow, []).append(sample.value)
                        yield sample
                    for direction, flows in values.items():
                        peaks[direction] = {flow: statistics.median(own) for flow, own in flows.items()}


def test_place(target: str) -> tuple[str, str]:
    """The folder of the test files, and the name of a file in flows; InputError for a file that exists."""
    path = Path(target)
    if path.is_dir():
        return target, Path(os.path.abspath(target)).name or "root"
    if path.exists():
        hint = f"name its folder: --to {path.parent}"
        raise InputError("exists, and nothing of yours is written to", location=Location(target), hint=hint)
    return str(path.parent), path.name


class _BlockFiles:
    """One software over two test files, one to write and one to read, each with its buffers and threads."""

    def __init__(
        self, options: MeasureKvOptions, pieces: Pieces, software: str, files: Sequence[StorageFile],
        gpus: Gpus | None, on_progress: Report,
    ) -> None:  # fmt: skip
        self._options, self._pieces, self._software, self._files = options, pieces, software, files
        self._memory, self._gpus, self._on_progress = options.start, gpus, on_progress
        self._stack = ExitStack()
        self._sessions: list[StorageSession] = []
        self._runs = 0
        start, name = self._memory.name, files[0].name
        self._flows = {_WRITE: f"{start}->{name}", _READ: f"{name}->{start}"}

    def open(self) -> None:
        """Buffers and threads for both files; CannotMeasure where this machine cannot."""
        size = round(self._pieces.size)
        target = self._memory.name
        if self._gpus is not None and self._memory.gpu is not None:
            target = f"gpu{self._gpus.device(target).ordinal}"
        storage = MeasureStorageOptions(
            (self._options.to,), to=target, io=size, size=round(self._pieces.total), threads=self._options.threads,
            depth=self._options.depth, make=self._files[0].bytes,
        )  # fmt: skip
        mode = "cuFile" if self._software == "cuFile" else "direct" if self._memory.gpu is None else "bounce"
        for file in self._files:
            session = StorageSession(storage, mode, [file], self._on_progress)
            self._sessions.append(self._stack.enter_context(closing(session)))

    def close(self) -> None:
        """Buffers are freed, threads end."""
        self._sessions.clear()
        self._stack.close()

    def warm_up(self, salt: int) -> None:
        """Write both files once, and compare what is read back with what was written."""
        count = self._pieces.count
        most = max(_LEAST_COMPARED, min(_MOST_COMPARED, round(_COMPARED_BYTES // self._pieces.size)))
        for number, session in enumerate(self._sessions):
            own = salt + number
            session.run("writing", StorageTask(count, write=True, random=True, salt=own, data=StorageData.FILLED))
            check = StorageTask(count, most=min(count, most), random=True, salt=own, data=StorageData.FILLED)
            session.run("reading it back", check)

    def samples(self, peaks: dict[str, dict[str, float]]) -> Iterator[tuple[str, Sample]]:
        """Each direction's samples until the rule has enough, with the direction."""
        for direction in (_WRITE, _READ, _BOTH):
            peak = peaks.get(direction, {})
            measure = partial(self._measure, direction, peak)
            for sample in sample_until(self._options.rule, GOODPUT, measure):
                yield direction, sample

    def _measure(self, direction: str, peak: dict[str, float]) -> Iterator[Sample]:
        self._runs += 1
        ways = (_WRITE, _READ) if direction == _BOTH else (direction,)
        sessions = [self._sessions[way == _READ] for way in ways]
        tasks = [
            StorageTask(self._pieces.count, write=way == _WRITE, random=True, seed=self._runs, data=StorageData.ANY)
            for way in ways
        ]
        seconds = [outcome.makespan for outcome in run_together(sessions, tasks)]
        for way, own in zip(ways, seconds, strict=True):
            for metric, value, unit in block_values(self._pieces, own):
                yield self._sample(self._flows[way], metric, value, unit, ways)
            if self._flows[way] in peak:
                share = self._pieces.total / own / peak[self._flows[way]]
                yield self._sample(self._flows[way], "share", share, "%", ways, "of I/Os of 1 MiB")
        if len(ways) > 1:
            total = self._pieces.total * len(ways) / max(seconds)
            yield self._sample(", ".join(self._flows.values()), "total", total, "GB/s", ways)

    def not_measured(self, reason: str) -> Sample:
        """The row of software that this machine does not have."""
        how = {"engine": self._software, "mode": self._software}
        return Sample(
            block_scenario(self._software, both_ways=False), self._flows[_WRITE], GOODPUT, None, "GB/s",
            block_settings(self._pieces, self._options.threads), how, "storage", reason,
        )  # fmt: skip

    def _sample(
        self, flow: str, metric: str, value: float, unit: str, ways: Sequence[str], note: str = ""
    ) -> Sample:  # fmt: skip
        session = self._sessions[0]
        name = session.actual_mode if self._software == "cuFile" else session.engine.partition(",")[0].split()[0]
        how = {
            "flows": ", ".join(self._flows[way] for way in ways), "engine": session.engine,
            "mode": session.actual_mode, "in flight": f"{self._options.depth} a thread", "data": "verified",
        }  # fmt: skip
        if self._software != "cuFile":
            how["NUMA node"] = numa_nodes(session.nodes())
        if _WRITE in ways:
            how["flush"] = _NO_FLUSH
        return Sample(
            block_scenario(name, len(ways) > 1), flow, metric, value, unit,
            block_settings(self._pieces, self._options.threads), how, "storage", note,
        )  # fmt: skip
