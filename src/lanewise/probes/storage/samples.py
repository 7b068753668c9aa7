"""The samples of one run of a storage measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lanewise import units
from lanewise.probes.machine import UNKNOWN, numa_nodes
from lanewise.probes.storage.drives import delivered
from lanewise.results.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from lanewise._native import StorageOutcome
    from lanewise.options.measure_storage import MeasureStorageOptions
    from lanewise.probes.storage.files import StorageFile
    from lanewise.probes.storage.session import StorageSession

PERCENTILES = (("latency_p50", 50.0), ("latency_p99", 99.0), ("latency_p99.9", 99.9))
Counters = dict[str, tuple[int, int]]


def percentile(times: NDArray[np.floating], share: float) -> float | None:
    """The smallest I/O time that `share` % of all do not exceed; None where too few I/Os were made to say."""
    if len(times) * (100.0 - share) < 100.0 - 1e-6:
        return None
    return float(np.percentile(times, share, method="inverted_cdf"))


class StorageSamples:
    """Makes the samples of every run of one mode: scenario, settings, and how the values were obtained."""

    def __init__(self, session: StorageSession, data: str) -> None:
        self._session = session
        options = session.options
        self.scenario = f"{options.scenario} {session.actual_mode}"
        self.settings = _settings(options)
        self.drives = tuple(dict.fromkeys(drive for file in session.files for drive in file.drives))
        self._flows = [self._flow(name) for name in session.names]
        self._how = {
            "flows": ", ".join(self._flows),
            "engine": session.engine,
            "mode": session.actual_mode,
            "NUMA node": numa_nodes(session.nodes()),
            "data": data,
        }
        if session.mode == "cuFile":
            del self._how["NUMA node"]  # no memory of the host that one could place
        if options.stripe is not None:
            names = " ".join(file.name for file in session.files)
            self._how["volume"] = f"{names}, stripes of {units.show(options.stripe, 'KiB')}"
        if options.write:
            self._how["flush"] = "none: the drive, or the page cache, may still hold what was written"
        self._note = _sparse(session.files)

    def counters(self) -> Counters:
        """Bytes read and written by each drive up to now."""
        return delivered(self.drives)

    def of(self, outcome: StorageOutcome, before: Counters, after: Counters, cached: float | None) -> Iterator[Sample]:
        """The samples of one run: rates, I/O times, and the bytes that drives delivered meanwhile."""
        moved = _moved(before, after, self._session.options.write)
        how = self._how | self._run_facts(outcome, moved, cached)
        rates = self.rates(outcome)
        for flow, rate in zip(self._flows, rates, strict=True):
            yield self._sample(flow, "goodput", rate, "GB/s", how, self._note)
        together = ", ".join(self._flows)
        if len(rates) > 1:
            yield self._sample(together, "total", sum(rates), "GB/s", how)
            yield self._sample(together, "makespan", outcome.makespan, "s", how)
        times = outcome.times
        for metric, share in PERCENTILES:
            value = percentile(times, share)
            note = "" if value is not None else f"{len(times)} I/Os a run are too few"
            yield self._sample(together, metric, value, "us", how, note)
        yield self._sample(together, "iops", len(times) / outcome.makespan, "1/s", how)
        for drive, moved_bytes in moved.items():
            yield self._sample(self._flow(drive), "drive_rate", moved_bytes / outcome.makespan, "GB/s", how)

    def rates(self, outcome: StorageOutcome) -> list[float]:
        """B/s of each volume, in the window in which all of them run."""
        window = outcome.window
        return [sum(outcome.in_window[i] for i in v.files) / window for v in self._session.volumes]

    def _run_facts(self, outcome: StorageOutcome, moved: Mapping[str, int], cached: float | None) -> dict[str, str]:
        total = sum(outcome.bytes)
        facts = {"data size": units.show(total, "GB")}
        if moved:
            shares = [f"{name} {units.show(n, 'GB')} ({100 * n / total:.0f} %)" for name, n in moved.items()]
            facts["drives"] = ", ".join(shares)
        if self._session.mode == "cached" and not self._session.options.write:
            facts["in cache before"] = UNKNOWN if cached is None else f"{100 * cached:.0f} %"
        return facts

    def _flow(self, name: str) -> str:
        to = self._session.options.target.name
        return f"{to}->{name}" if self._session.options.write else f"{name}->{to}"

    def _sample(
        self, flow: str, metric: str, value: float | None, unit: str, how: Mapping[str, str], note: str = ""
    ) -> Sample:
        return Sample(self.scenario, flow, metric, value, unit, self.settings, how, "storage", note)


def not_measured(options: MeasureStorageOptions, mode: str, files: Sequence[StorageFile], reason: str) -> Sample:
    """The row of a mode that this machine does not have."""
    flows = ", ".join(f"{file.name}->{options.target.name}" for file in files)
    how = {"flows": flows, "engine": mode, "mode": mode}
    name = f"{options.scenario} {mode}"
    return Sample(name, flows, "goodput", None, "GB/s", _settings(options), how, "storage", reason)


def _settings(options: MeasureStorageOptions) -> dict[str, int]:
    return {"bytes": options.io, "threads": options.threads, "depth": options.depth}


def _moved(before: Counters, after: Counters, write: bool) -> dict[str, int]:
    column = 1 if write else 0
    return {name: after[name][column] - before[name][column] for name in before if name in after}


def _sparse(files: Sequence[StorageFile]) -> str:
    parts = [f"{100 * f.holes:.0f} % of {f.name} are holes, which no drive reads" for f in files if f.holes > 0.01]
    return "; ".join(parts)
