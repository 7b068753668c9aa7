"""The storage probe: reads files and volumes into memory, or writes test files, by several modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lanewise import units
from lanewise._native import StorageData, StorageOutcome, StorageTask
from lanewise.errors import CannotMeasure
from lanewise.options.measure_storage import MeasureStorageOptions
from lanewise.probes.machine import UNKNOWN, numa_nodes
from lanewise.probes.sampling import sample_until
from lanewise.probes.storage.files import StorageFile, drive_counters, make_files, open_files
from lanewise.probes.storage.session import StorageProgress, StorageSession
from lanewise.results.sample import Sample

_FILL_IO = 1 << 20
# Of a file, the I/Os that are compared with what they should be, outside of the timed runs.
_VERIFIED_BYTES, _LEAST_VERIFIED, _MOST_VERIFIED = 256 << 20, 16, 4096
PERCENTILES = (("latency_p50", 50.0), ("latency_p99", 99.0), ("latency_p99.9", 99.9))


class StorageProbe:
    """Measures files and block devices; `on_progress` gets the current rates about ten times a second."""

    def __init__(self, on_progress: Callable[[StorageProgress], None] | None = None) -> None:
        self._on_progress = on_progress or (lambda _: None)

    def run(self, options: MeasureStorageOptions) -> Iterator[Sample]:
        """The samples of each run of each mode, as soon as it ends; closing it closes files and removes test files."""
        make = -(-(options.make or 0) // _FILL_IO) * _FILL_IO
        with make_files(options.paths, make) if make else open_files(options.paths, options.io) as files:
            if make:
                _fill(options, files, self._on_progress)
            for number, mode in enumerate(options.modes or options.possible_modes):
                try:
                    session = StorageSession(options, mode, files, self._on_progress)
                except CannotMeasure as error:
                    if mode in options.modes or mode != "cuFile":  # cuFile is measured where it is installed
                        raise
                    yield _not_measured(options, mode, files, str(error))
                    continue
                with closing(session):
                    series = _StorageSeries(session, _warm_up(session, (number + 1) << 20))
                    metric = "total" if len(session.volumes) > 1 else "goodput"
                    yield from sample_until(options.rule, metric, series.measure)


def _warm_up(session: StorageSession, salt: int) -> str:
    """Run the path once without timing it, and compare its data: 'verified', or 'not verified'."""
    options, count = session.options, session.count
    some = min(count, max(_LEAST_VERIFIED, min(_MOST_VERIFIED, _VERIFIED_BYTES // options.io)))
    if options.write:
        session.run("writing once", StorageTask(count, write=True, salt=salt, data=StorageData.STAMPED))
        check = StorageTask(count, most=some, random=True, salt=salt, data=StorageData.STAMPED)
        session.run("reading it back", check)
        return "verified"
    if all(file.temporary for file in session.files):
        data, result = StorageData.FILLED, "verified"
    elif session.has_second_path:
        data, result = StorageData.REREAD, "verified"
    else:
        data, result = StorageData.ANY, "not verified"
    session.run("checking the data", StorageTask(count, most=some, random=True, data=data))
    if session.mode == "cached":
        session.run("filling the page cache", StorageTask(count))
    return result


def _fill(
    options: MeasureStorageOptions, files: Sequence[StorageFile], on_progress: Callable[[StorageProgress], None]
) -> None:
    """Test files get data that says where it belongs; all at a time, past the page cache where that is possible."""
    size = files[0].bytes * len(files)
    fill = replace(
        options, io=_FILL_IO, size=size, make=size, threads=len(files), depth=4, to="host0", modes=(), stripe=None,
        write=True,
    )  # fmt: skip
    try:
        for file in files:
            file.open_direct()
        mode = "direct"
    except CannotMeasure:
        mode = "cached"
    with closing(StorageSession(fill, mode, files, on_progress)) as session:
        session.run("making test files", StorageTask(session.count, write=True, data=StorageData.FILLED))


def percentile(times: NDArray[np.floating], share: float) -> float | None:
    """The smallest I/O time that `share` % of all do not exceed; None where too few I/Os were made to say."""
    if len(times) * (100.0 - share) < 100.0 - 1e-6:
        return None
    return float(np.percentile(times, share, method="inverted_cdf"))


class _StorageSeries:
    """A mode that is set up, and whose data was checked; `measure` makes one run."""

    def __init__(self, session: StorageSession, data: str) -> None:
        self._session, self._options = session, session.options
        self._scenario = f"{session.options.scenario} {session.actual_mode}"
        self._drives = list(dict.fromkeys(drive for file in session.files for drive in file.drives))
        self._flows = [self._flow(name) for name in session.names]
        self._runs = 0
        self._how = {
            "flows": ", ".join(self._flows),
            "engine": session.engine,
            "mode": session.actual_mode,
            "NUMA node": numa_nodes(session.nodes()),
            "data": data,
        }
        if session.mode == "cuFile":
            del self._how["NUMA node"]  # no memory of the host that one could place
        if self._options.stripe is not None:
            names = " ".join(file.name for file in session.files)
            self._how["volume"] = f"{names}, stripes of {units.show(self._options.stripe, 'KiB')}"
        if self._options.write:
            self._how["flush"] = "none: the drive, or the page cache, may still hold what was written"

    def measure(self) -> Iterator[Sample]:
        """The samples of one run: rates, I/O times, and the bytes that drives moved meanwhile."""
        session, options = self._session, self._options
        self._runs += 1
        cached = session.cached() if session.mode == "cached" else None
        before = drive_counters(self._drives)
        outcome = session.run(f"{self._scenario}, run {self._runs}", StorageTask(
            session.count, seconds=options.seconds or 0.0, write=options.write, random=options.random, seed=self._runs,
            data=StorageData.STAMPED if options.write else StorageData.ANY,
        ))  # fmt: skip
        after, column = drive_counters(self._drives), int(options.write)  # bytes read, bytes written
        moved = {name: after[name][column] - before[name][column] for name in before if name in after}
        how, together = self._how | self._run_facts(outcome, moved, cached), ", ".join(self._flows)
        rates = [sum(outcome.in_window[i] for i in volume.files) / outcome.window for volume in session.volumes]
        holes = "; ".join(
            f"{100 * file.holes:.0f} % of {file.name} are holes, which no drive reads"
            for file in session.files if file.holes > 0.01
        )  # fmt: skip
        for flow, rate in zip(self._flows, rates, strict=True):
            yield self._sample(flow, "goodput", rate, "GB/s", how, holes)
        if len(rates) > 1:
            yield self._sample(together, "total", sum(rates), "GB/s", how)
            yield self._sample(together, "makespan", outcome.makespan, "s", how)
        times = outcome.times
        for metric, share in PERCENTILES:
            value = percentile(times, share)
            note = "" if value is not None else f"{len(times)} I/Os a run are too few"
            yield self._sample(together, metric, value, "us", how, note)
        yield self._sample(together, "iops", len(times) / outcome.makespan, "1/s", how)
        for drive, size in moved.items():
            yield self._sample(self._flow(drive), "drive_rate", size / outcome.makespan, "GB/s", how)

    def _run_facts(self, outcome: StorageOutcome, moved: Mapping[str, int], cached: float | None) -> dict[str, str]:
        total = sum(outcome.bytes)
        facts = {"data size": units.show(total, "GB")}
        if moved:
            shares = [f"{name} {units.show(n, 'GB')} ({100 * n / total:.0f} %)" for name, n in moved.items()]
            facts["drives"] = ", ".join(shares)
        if self._session.mode == "cached" and not self._options.write:
            facts["in cache before"] = UNKNOWN if cached is None else f"{100 * cached:.0f} %"
        return facts

    def _flow(self, name: str) -> str:
        to = self._options.target.name
        return f"{to}->{name}" if self._options.write else f"{name}->{to}"

    def _sample(
        self, flow: str, metric: str, value: float | None, unit: str, how: Mapping[str, str], note: str = ""
    ) -> Sample:
        return Sample(self._scenario, flow, metric, value, unit, _settings(self._options), how, "storage", note)


def _not_measured(options: MeasureStorageOptions, mode: str, files: Sequence[StorageFile], reason: str) -> Sample:
    """The row of a mode that this machine does not have."""
    flows = ", ".join(f"{file.name}->{options.target.name}" for file in files)
    how = {"flows": flows, "engine": mode, "mode": mode}
    name = f"{options.scenario} {mode}"
    return Sample(name, flows, "goodput", None, "GB/s", _settings(options), how, "storage", reason)


def _settings(options: MeasureStorageOptions) -> dict[str, int]:
    return {"bytes": options.io, "threads": options.threads, "depth": options.depth}
