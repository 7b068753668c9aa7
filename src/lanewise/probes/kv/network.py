"""Blocks from this process's memory to another one's, as a prefill worker sends them: over sockets or RDMA verbs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from lanewise.blocks.pieces import Pieces
from lanewise.control import rdma
from lanewise.options.measure_kv import LOOPBACK, MeasureKvOptions
from lanewise.options.measure_network import VERBS
from lanewise.probes.machine import native_errors
from lanewise.probes.network import numa
from lanewise.probes.network.messages import BLOCKS, NIXL, NetworkMeasurement
from lanewise.probes.network.nixl import BACKEND, nixl_api, nixl_version
from lanewise.probes.network.probe import FLOWS, listening
from lanewise.probes.network.session import NetworkRun, connect_session
from lanewise.probes.sampling import sample_until
from lanewise.results.block_rows import (
    BLOCK_TIME,
    COMPLETION_TIME,
    GOODPUT,
    POST_TIME,
    block_scenario,
    block_settings,
    block_values,
)
from lanewise.results.sample import Sample

PEAK_PIECE = 1 << 20
SMALL_PIECE = 64  # so few bytes that a block costs what its post and its completion do
_MOST_SMALL = 65_536
_LISTS = 4  # posted before the first has ended
_FLOW = FLOWS["to"]


def block_network(options: MeasureKvOptions, pieces: Pieces) -> Iterator[Sample]:
    """Samples of long blocks, whose rate is the peak, of blocks of 64 B, and of `pieces` with what limits them."""
    long = Pieces(-(-max(round(pieces.total), options.peak_bytes) // PEAK_PIECE), float(PEAK_PIECE))
    small = Pieces(min(pieces.count, _MOST_SMALL), float(SMALL_PIECE))
    measurements = {each: _measurement(options, each) for each in (long, small, pieces)}
    address = None if options.to == LOOPBACK else options.to
    side = options.side
    numa.check(side)
    if options.over == NIXL:
        nixl_api()  # MissingDependency before anything starts
    with listening(address, side) as (place, secret), connect_session(place, side, secret) as session:
        medians: dict[tuple[str, float], float] = {}
        for each, measurement in measurements.items():
            run = NetworkRun(session, measurement)
            values: dict[str, list[float]] = {}
            try:
                run.start()
                series = _NetworkBlocks(run, each, options.list_length, medians if each == pieces else {})
                for sample in sample_until(options.rule, GOODPUT, series.measure):
                    values.setdefault(sample.metric, []).append(sample.value or 0.0)
                    yield sample
                run.stop()
            finally:
                run.close()
            medians |= {(metric, each.size): statistics.median(own) for metric, own in values.items()}


def _measurement(options: MeasureKvOptions, pieces: Pieces) -> NetworkMeasurement:
    """What both sides do with those pieces; InputError for more than they take."""
    assert options.over is not None
    return NetworkMeasurement(
        options.over, BLOCKS, round(pieces.size), 1, depth=_LISTS * options.list_length, blocks=pieces.count,
        list_length=options.list_length,
    )  # fmt: skip


def _nixl_software() -> str:
    return "nixl-rc" if rdma.rdma_devices() else "nixl-ucx"


class _NetworkBlocks:
    """The transfers of one size over a run that is connected and whose first transfer was compared."""

    def __init__(
        self, run: NetworkRun, pieces: Pieces, list_length: int, medians: dict[tuple[str, float], float]
    ) -> None:
        self._run, self._pieces, self._over = run, pieces, run.measurement.transport
        self._software, engine, posted = self._over, "RDMA" if self._over == VERBS else "CPU", f"{list_length} a call"
        if self._over == NIXL:
            # Between hosts UCX takes RDMA cards where they are; the model knows NIXL's costs over those alone.
            self._software, engine, posted = _nixl_software(), f"{nixl_version()}, {BACKEND}", "all in one transfer"
        self._how = {
            "flows": _FLOW, "engine": engine, "transport": self._over, "data": "verified", "in flight": posted,
            **run.facts[0],
        }  # fmt: skip
        self._peak = medians.get((GOODPUT, PEAK_PIECE))
        if self._peak is not None:
            on_software = pieces.count * medians[BLOCK_TIME, SMALL_PIECE]
            self._how["limit"] = "software" if on_software > pieces.total / self._peak else "path"

    def measure(self) -> Iterator[Sample]:
        """The samples of one transfer."""
        with native_errors():
            times = self._run.endpoints[0].blocks.transfer()
        for metric, value, unit in block_values(self._pieces, times.seconds):
            yield self._sample(metric, value, unit)
        yield self._sample(POST_TIME, times.posting / self._pieces.count, "us")
        yield self._sample(COMPLETION_TIME, times.completing / self._pieces.count, "us")
        if self._peak is not None:
            share = self._pieces.total / times.seconds / self._peak
            yield self._sample("share", share, "%", "of blocks of 1 MiB")

    def _sample(self, metric: str, value: float, unit: str, note: str = "") -> Sample:
        settings, scenario = block_settings(self._pieces), block_scenario(self._software, both_ways=False)
        return Sample(scenario, _FLOW, metric, value, unit, settings, self._how, "network", note)
