"""The network probe: bandwidth or round trips between this process and a listener."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext

from lanewise import _native
from lanewise.errors import CannotMeasure
from lanewise.options.measure_network import MeasureNetworkOptions
from lanewise.probes.machine import native_errors
from lanewise.probes.network import numa
from lanewise.probes.network.listener import listener_process
from lanewise.probes.network.messages import NetworkMeasurement, parse_address
from lanewise.probes.network.session import Counters, NetworkRun, connect_session
from lanewise.probes.sampling import sample_until
from lanewise.results.observation import Source
from lanewise.results.sample import Sample

FLOWS = {"to": "host0->host1", "from": "host1->host0"}
PERCENTILES = {"latency_p50": 0.5, "latency_p99": 0.99, "latency_p99.9": 0.999}
FIRST_S = 5.0
STEP_S = 0.1  # a Ctrl-C, and a listener that has left, are noticed this often


def _measurements(options: MeasureNetworkOptions) -> tuple[NetworkMeasurement, ...]:
    """Each size with each number of connections; InputError for one without meaning."""
    sizes = options.sizes or ((64, 4096) if options.latency else (4096, 131072))
    counts = (1,) if options.latency else options.connections
    return tuple(
        NetworkMeasurement(
            options.transport, "latency" if options.latency else "bandwidth", size, count, options.direction,
            options.operation, options.depth, options.inline_bytes, options.events, options.zero_copy,
        )
        for size in sizes
        for count in counts
    )  # fmt: skip


class NetworkProbe:
    """Measures the network to a listener, or loopback to one in a process of its own."""

    source = Source.MEASURED

    def run(self, options: MeasureNetworkOptions) -> Iterator[Sample]:
        """Each sample as soon as it is taken; closing the iterator frees both sides.

        CannotMeasure where nothing listens, something else does, or the listener leaves; earlier samples stay valid.
        """
        measurements = _measurements(options)
        numa.check(options)
        listener = listener_process(options) if options.address is None else nullcontext(parse_address(options.address))
        with listener as address, connect_session(address, options) as session:
            for measurement in measurements:
                run = NetworkRun(session, measurement)
                try:
                    run.start()
                    yield from _round_trips(run, options) if measurement.kind == "latency" else _bandwidth(run, options)
                    run.stop()
                finally:
                    run.close()


def _bandwidth(run: NetworkRun, options: MeasureNetworkOptions) -> Iterator[Sample]:
    """Samples of the windows between two readings of the byte counters."""
    samples = _NetworkSamples(run)
    before = _first_counters(run, max(options.seconds, 0.1))

    def measure() -> Iterator[Sample]:
        nonlocal before
        _wait(run, options.seconds)
        after = run.counters()
        rates = [_rates(earlier, later) for earlier, later in zip(before, after, strict=True)]
        before = after
        yield from samples.bandwidth(rates)

    return sample_until(options.rule, "total" if len(run.endpoints) > 1 else "goodput", measure)


def _round_trips(run: NetworkRun, options: MeasureNetworkOptions) -> Iterator[Sample]:
    samples = _NetworkSamples(run)
    native = run.endpoints[0].native
    if isinstance(native, _native.TcpStream):
        raise TypeError("round trips need an endpoint that sends requests")

    def measure() -> Iterator[Sample]:
        _wait(run, options.seconds)
        with native_errors():
            trips = native.take()
        if trips.count == 0:
            raise CannotMeasure(f"no round trip ended in {options.seconds:g} s", hint="take longer samples: --seconds")
        yield from samples.latency(trips)

    return sample_until(options.rule, "latency", measure)


def _wait(run: NetworkRun, seconds: float) -> None:
    """Let a window pass; a listener that leaves meanwhile ends it."""
    end = time.monotonic() + seconds
    while (remaining := end - time.monotonic()) > 0:
        run.check()
        time.sleep(min(remaining, STEP_S))


def _first_counters(run: NetworkRun, seconds: float) -> list[Counters]:
    """Counters after a while in which TCP's windows open, and once every connection has moved something."""
    end = time.monotonic() + FIRST_S
    while True:
        _wait(run, seconds)
        counters = run.counters()
        if all(all(moved) for _, moved in counters) or time.monotonic() > end:
            return counters


def _rates(before: Counters, after: Counters) -> list[float]:
    """B/s of each connection between two readings; CannotMeasure where the clock or a count went backwards."""
    seconds = after[0] - before[0]
    moved = [b - a for a, b in zip(before[1], after[1], strict=True)]
    if seconds <= 0 or min(moved) < 0:
        raise CannotMeasure("the other side's byte counters go backwards", hint="use the same version on both sides")
    return [size / seconds for size in moved]


class _NetworkSamples:
    """Makes the samples of one measurement."""

    def __init__(self, run: NetworkRun) -> None:
        self._run = run
        self._measurement = measurement = run.measurement
        verbs = measurement.transport == "verbs"
        words = [measurement.transport, *([measurement.operation] if verbs else []), measurement.kind]
        if len(measurement.directions) == 2:
            words.append("both_ways")
        self._scenario = "_".join(words)
        pulls = " read" if verbs and measurement.operation == "read" else ""
        self._flows = ", ".join(FLOWS[name] + pulls for name in measurement.directions)
        self._settings = {"bytes": measurement.bytes, "connections": measurement.connections}
        if verbs:
            self._settings["depth"] = measurement.depth

    def bandwidth(self, window: list[list[float]]) -> Iterator[Sample]:
        """Of one window: each direction's goodput, its connections' share, and the sum of both directions."""
        for i, (name, rates) in enumerate(zip(self._measurement.directions, window, strict=True)):
            flow, how = FLOWS[name], self._how(i)
            yield self._sample(flow, "goodput", sum(rates), "GB/s", how)
            if len(rates) > 1:
                for number, rate in enumerate(rates):
                    yield self._sample(flow, "connection_goodput", rate, "GB/s", how, {"connection": number})
                yield self._sample(flow, "fairness", fairness(rates), "%", how)
        if len(window) > 1:
            yield self._sample(self._flows, "total", sum(sum(rates) for rates in window), "GB/s", self._how(0))

    def latency(self, trips: _native.RoundTrips) -> Iterator[Sample]:
        """Of one window: mean and percentiles of half round trips."""
        how = {**self._how(0), "round trips": str(trips.count)}
        yield self._sample(FLOWS["to"], "latency", trips.mean() * 1e-6, "us", how)
        for metric, share in PERCENTILES.items():
            yield self._sample(FLOWS["to"], metric, trips.percentile(share) * 1e-6, "us", how)

    def _how(self, direction: int) -> dict[str, str]:
        measurement, endpoint = self._measurement, self._run.endpoints[direction]
        how = {"flows": self._flows, "engine": "CPU", "transport": measurement.transport, "data": "verified"}
        if measurement.transport == "verbs":
            how["engine"] = "RDMA"
            how["completions"] = "events" if measurement.events else "polled"
        if measurement.kind == "bandwidth":
            how["counted"] = "completions at the sender" if measurement.counted_at_sender else "at the receiver"
        if measurement.zero_copy and isinstance(endpoint.native, _native.TcpStream) and endpoint.sends:
            how["zero copy"] = "copied by the kernel all the same" if endpoint.native.copied else "yes"
        return {**how, **self._run.facts[direction]}

    def _sample(
        self, flow: str, metric: str, value: float, unit: str, how: dict[str, str], more: dict[str, int] | None = None
    ) -> Sample:
        return Sample(self._scenario, flow, metric, value, unit, {**self._settings, **(more or {})}, how, "network")


def fairness(rates: list[float]) -> float:
    """Jain's index: 1 where all connections get the same, 1 / n where one gets everything."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares > 0 else 1.0
