"""What one run of a storage measurement says, as samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise import units
from lanewise.probes.machine import UNKNOWN, where
from lanewise.probes.storage.drives import delivered
from lanewise.results.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from lanewise._native import StorageOutcome
    from lanewise.probes.storage.files import Source
    from lanewise.probes.storage.options import Reading
    from lanewise.probes.storage.session import Bench

PERCENTILES = (("latency_p50", 50.0), ("latency_p99", 99.0), ("latency_p99.9", 99.9))
Counters = dict[str, tuple[int, int]]


def percentile(times: NDArray[np.floating], share: float) -> float | None:
    """The smallest I/O time that `share` % of all do not exceed; None where too few I/Os were made to say."""
    import numpy as np

    if len(times) * (100.0 - share) < 100.0 - 1e-6:
        return None
    return float(np.percentile(times, share, method="inverted_cdf"))


class Rows:
    """Makes the samples of every run of one mode, which share scenario, settings and how they were obtained."""

    def __init__(self, bench: Bench, data: str) -> None:
        self._bench = bench
        asked = bench.asked
        self.scenario = f"{asked.scenario} {bench.says}"
        self.settings = _settings(asked)
        self.drives = tuple(dict.fromkeys(drive for source in bench.sources for drive in source.drives))
        self._flows = [self._flow(name) for name in bench.names]
        self._how = {
            "flows": ", ".join(self._flows),
            "engine": bench.engine,
            "mode": bench.says,
            "NUMA node": where(bench.nodes()),
            "data": data,
        }
        if bench.mode == "cuFile":
            del self._how["NUMA node"]  # no memory of the host that one could place
        if asked.stripe is not None:
            names = " ".join(source.name for source in bench.sources)
            self._how["volume"] = f"{names}, stripes of {units.show(asked.stripe, 'KiB')}"
        if asked.write:
            self._how["flush"] = "none: the drive, or the page cache, may still hold what was written"
        self._note = _sparse(bench.sources)

    def counters(self) -> Counters:
        """What each drive has read and written up to now."""
        return delivered(self.drives)

    def of(self, outcome: StorageOutcome, before: Counters, after: Counters, cached: float | None) -> Iterator[Sample]:
        """The samples of one run: rates, I/O times, and what each drive delivered meanwhile."""
        moved = _moved(before, after, self._bench.asked.write)
        how = self._how | self._seen(outcome, moved, cached)
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
            yield self._sample(together, metric, None if value is None else value * 1e6, "us", how, note)
        yield self._sample(together, "iops", len(times) / outcome.makespan, "1/s", how)
        for drive, moved_bytes in moved.items():
            yield self._sample(self._flow(drive), "drive_rate", moved_bytes / outcome.makespan / 1e9, "GB/s", how)

    def rates(self, outcome: StorageOutcome) -> list[float]:
        """GB/s of each volume, in the window in which all of them run."""
        window = outcome.window
        return [sum(outcome.in_window[i] for i in v.files) / window / 1e9 for v in self._bench.volumes]

    def _seen(self, outcome: StorageOutcome, moved: Mapping[str, int], cached: float | None) -> dict[str, str]:
        total = sum(outcome.bytes)
        seen = {"data size": units.show(total, "GB")}
        if moved:
            shown = [f"{name} {units.show(n, 'GB')} ({100 * n / total:.0f} %)" for name, n in moved.items()]
            seen["drives"] = ", ".join(shown)
        if self._bench.mode == "cached" and not self._bench.asked.write:
            seen["in cache before"] = UNKNOWN if cached is None else f"{100 * cached:.0f} %"
        return seen

    def _flow(self, name: str) -> str:
        to = self._bench.asked.to.name
        return f"{to}->{name}" if self._bench.asked.write else f"{name}->{to}"

    def _sample(
        self, flow: str, metric: str, value: float | None, unit: str, how: Mapping[str, str], note: str = ""
    ) -> Sample:
        return Sample(self.scenario, flow, metric, value, unit, self.settings, how, "storage", note)


def not_measured(asked: Reading, mode: str, sources: Sequence[Source], why: str) -> Sample:
    """The row of a mode that this machine does not have."""
    flows = ", ".join(f"{source.name}->{asked.to.name}" for source in sources)
    how = {"flows": flows, "engine": mode, "mode": mode}
    return Sample(f"{asked.scenario} {mode}", flows, "goodput", None, "GB/s", _settings(asked), how, "storage", why)


def _settings(asked: Reading) -> dict[str, int]:
    return {"bytes": asked.io, "threads": asked.threads, "depth": asked.depth}


def _moved(before: Counters, after: Counters, write: bool) -> dict[str, int]:
    which = 1 if write else 0
    return {name: after[name][which] - before[name][which] for name in before if name in after}


def _sparse(sources: Sequence[Source]) -> str:
    parts = [f"{100 * s.holes:.0f} % of {s.name} are holes, which no drive reads" for s in sources if s.holes > 0.01]
    return "; ".join(parts)
