"""The load probe: safetensors files to GPUs or host memory, by several modes and beside other loaders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial

from lanewise import _native, units
from lanewise.errors import CannotMeasure, InputError, Location
from lanewise.options.measure_load import LOAD_LIBRARIES, LOAD_MODES, MeasureLoadOptions
from lanewise.probes.load.header import tensors_of
from lanewise.probes.load.layout import LoadLayout, layout
from lanewise.probes.load.libraries import LoadLibrary, missing_module
from lanewise.probes.load.session import LoadProgress, LoadSession
from lanewise.probes.machine import UNKNOWN
from lanewise.probes.sampling import sample_until
from lanewise.probes.storage.files import StorageFile, drive_counters, open_files
from lanewise.results.sample import Sample

_OVERLAP = 0.9  # of the slower stage's rate; below it the two hinder each other
# What the reads of a mode are limited by, and what its copies are.
_READS = {
    "direct": "drive",
    "bounce": "drive",
    "buffered": "drive and page cache",
    "cached": "CPU copies from page cache",
}
_COPIES = {True: "link to GPU", False: "CPU copies"}


class LoadProbe:
    """Measures loads; `on_progress` gets what is going on about ten times a second."""

    def __init__(self, on_progress: Callable[[LoadProgress], None] | None = None) -> None:
        self._on_progress = on_progress or (lambda _: None)

    def run(self, options: MeasureLoadOptions) -> Iterator[Sample]:
        """The samples of each run of each mode, as soon as it ends; closing it closes files and frees memory."""
        folder = next((path for path in options.files if os.path.isdir(path)), None)
        if folder is not None:
            raise InputError("is a folder", location=Location(folder), hint=f"name its files: {folder}/*.safetensors")
        with open_files(options.files, 0) as files:
            tensors = [tensors_of(file.buffered, file.path) for file in files]
            plan = layout(tensors, len(options.target_names), options.io, options.replicated)
            for mode in options.modes or _possible(options):
                rows = _LoadRows(options, mode, files, plan)
                missing = "" if mode in options.modes else _not_here(mode, files)
                if missing:
                    yield rows.sample("total", None, "GB/s", {}, missing)
                elif mode in LOAD_LIBRARIES:
                    yield from self._library(rows)
                else:
                    yield from self._mode(rows)

    def _mode(self, rows: _LoadRows) -> Iterator[Sample]:
        """A mode of ours: everything compared once, then the runs."""
        options = rows.options
        with closing(LoadSession(options, rows.mode, rows.files, rows.plan, self._on_progress)) as session:
            session.fill_cache()
            session.load(f"{rows.mode}: loading once")
            data = "not verified"
            if not options.skip_verify:
                session.verify()
                data = "verified" if session.is_verified_otherwise else "verified through the page cache"
            how = {"engine": session.engine, "data": data}
            yield from sample_until(options.rule, "total", partial(rows.of_run, session, how))

    def _library(self, rows: _LoadRows) -> Iterator[Sample]:
        """A library, cold and from the page cache; unless it was named, one that fails is a row that says so."""
        try:
            yield from self._states(rows, LoadLibrary(rows.mode, rows.options, rows.plan))
        except CannotMeasure as error:
            if rows.mode in rows.options.modes:
                raise
            yield rows.sample("total", None, "GB/s", {}, str(error))

    def _states(self, rows: _LoadRows, library: LoadLibrary) -> Iterator[Sample]:
        tensors = sum(map(len, rows.plan.names))
        for state in ("cold", "warm"):
            stage = f"{rows.mode} {state}"

            def report(count: int, stage: str = stage) -> None:
                moved = rows.plan.data * count // tensors
                self._on_progress(LoadProgress(stage, moved, rows.plan.data, 0.0))

            def measure(state: str = state, report: Callable[[int], None] = report) -> Iterator[Sample]:
                if state == "cold":
                    _evict(rows.files)
                before = _share_cached(rows.files)
                seconds = library.load(report)
                how = {"engine": f"{library.name} {library.version}", "in cache before": before, "data": "not verified"}
                yield from rows.of_load(seconds, how, f" {state}")

            if state == "warm":
                library.load(report)
            yield from sample_until(rows.options.rule, "total", measure)


class _LoadRows:
    """One mode's samples: names, settings, and what is said of how they were obtained."""

    def __init__(self, options: MeasureLoadOptions, mode: str, files: Sequence[StorageFile], plan: LoadLayout) -> None:
        self.options, self.mode, self.files, self.plan = options, mode, files, plan
        self._drives = list(dict.fromkeys(drive for file in files for drive in file.drives))
        name = files[0].name if len(files) == 1 else "weights"
        self._flow = ", ".join(f"{name}->{target}" for target in options.target_names)

    def of_run(self, session: LoadSession, how: Mapping[str, str]) -> Iterator[Sample]:
        """The samples of one run of a mode of ours: its stages alone, then the load."""
        stages = _stages(session)
        cached = session.cached() if self.mode == "cached" else None
        before = drive_counters(self._drives)
        seconds = session.load(f"{self.mode}: loading")
        after = drive_counters(self._drives)
        moved = sum(after[name][0] - before[name][0] for name in before if name in after)
        facts = dict(how) | {"limit": _limit(self.mode, stages, seconds, bool(self.options.gpus), bool(self._drives))}
        if before:
            facts["read from drives"] = f"{100 * moved / self.plan.data:.0f} % of the bytes"
        if self.mode == "cached":
            facts["in cache before"] = UNKNOWN if cached is None else f"{100 * cached:.0f} %"
        yield from self.of_load(seconds, facts)
        for name, alone in stages.items():
            yield self.sample(f"{name}_alone", self.plan.data / alone, "GB/s", facts)
        # Reads of the page cache alone go into buffers that the CPU's cache holds: no measure of a load to host memory.
        if len(stages) > 1 or self.mode == "direct":
            yield self.sample("of_slower_stage", max(stages.values()) / seconds, "1", facts)

    def of_load(self, seconds: float, how: Mapping[str, str], state: str = "") -> Iterator[Sample]:
        """Rate and time of one load."""
        facts = {"data size": units.show(self.plan.data, "GB"), "tensors": f"{sum(map(len, self.plan.names)):,}"}
        yield self.sample("total", self.plan.data / seconds, "GB/s", facts | dict(how), state=state)
        yield self.sample("makespan", seconds, "s", facts | dict(how), state=state)

    def sample(
        self, metric: str, value: float | None, unit: str, how: Mapping[str, str], note: str = "", state: str = ""
    ) -> Sample:
        """One value of this mode."""
        options = self.options
        settings = {"bytes": options.io, "readers": options.readers, "depth": options.depth}
        if self.mode in LOAD_LIBRARIES:
            settings = {}
        how = {"flows": self._flow, "mode": self.mode + state, **how}
        return Sample(f"load {self.mode}{state}", self._flow, metric, value, unit, settings, how, "load", note)


def _possible(options: MeasureLoadOptions) -> tuple[str, ...]:
    """All modes, and the libraries that are installed."""
    return (*LOAD_MODES, *(name for name in LOAD_LIBRARIES if not missing_module(name, bool(options.gpus))))


def _not_here(mode: str, files: Sequence[StorageFile]) -> str:
    """Why the file system does not allow a mode; '' where it does."""
    if mode in ("direct", "bounce"):
        try:
            for file in files:
                file.open_direct()
        except CannotMeasure as error:
            return str(error)
    return ""


def _stages(session: LoadSession) -> dict[str, float]:
    """Seconds of each stage alone; into host memory reads are all there is, but for a bounce."""
    stages = {"reads": session.read_alone()}
    if session.options.gpus or session.mode == "bounce":
        stages["copies"] = session.copy_alone()
    return stages


def _limit(mode: str, stages: Mapping[str, float], seconds: float, gpus: bool, drives: bool) -> str:
    """What the load waits for: its slower stage, or that the two hinder each other."""
    slower = max(stages, key=lambda name: stages[name])
    name = _READS[mode] if drives else _READS[mode].replace("drive", "storage")
    name = name if slower == "reads" else _COPIES[gpus and mode != "bounce"]
    if slower == "copies" and gpus and mode == "bounce":
        name = "CPU copies and link to GPU"
    if len(stages) > 1 and stages[slower] < _OVERLAP * seconds:
        return f"reads and copies hinder each other ({name} is the slower alone)"
    return name


def _evict(files: Sequence[StorageFile]) -> None:
    for file in files:
        os.posix_fadvise(file.buffered, 0, 0, os.POSIX_FADV_DONTNEED)


def _share_cached(files: Sequence[StorageFile]) -> str:
    shares = [_native.in_page_cache(file.buffered, file.bytes) for file in files if file.cache_visible]
    return UNKNOWN if len(shares) < len(files) or min(shares) < 0 else f"{100 * sum(shares) / len(shares):.0f} %"
