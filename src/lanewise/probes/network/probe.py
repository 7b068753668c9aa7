"""The network probe: bandwidth or round trips between this process and a listener."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from lanewise import _native
from lanewise.control.handshake import read_secret
from lanewise.control.service import parse_address
from lanewise.errors import CannotMeasure, InputError
from lanewise.options.measure_network import MeasureNetworkOptions, NetworkSideOptions
from lanewise.probes.machine import native_errors
from lanewise.probes.network import numa
from lanewise.probes.network.listener import listener_process
from lanewise.probes.network.messages import SERVICE, NetworkMeasurement
from lanewise.probes.network.session import Counters, NetworkRun, connect_session
from lanewise.probes.sampling import sample_until
from lanewise.results.sample import Sample

FLOWS = {"to": "host0->host1", "from": "host1->host0"}
PERCENTILES = {"latency_p50": 0.5, "latency_p99": 0.99, "latency_p99.9": 0.999}
FIRST_S = 5.0
_FASTEST = 1e13  # B/s of one connection, beyond any network


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

    def run(self, options: MeasureNetworkOptions) -> Iterator[Sample]:
        """Each sample as soon as it is taken; closing the iterator frees both sides.

        CannotMeasure where nothing listens, something else does, or the listener leaves; earlier samples stay valid.
        """
        measurements = _measurements(options)
        numa.check(options)
        _check_tls(options)
        with (
            listening(options.address, options) as (address, secret),
            connect_session(address, options, secret) as session,
        ):
            for measurement in measurements:
                run = NetworkRun(session, measurement)
                try:
                    run.start()
                    series = _NetworkSeries(run, options.seconds)
                    yield from sample_until(options.rule, series.metric, series.measure)
                    run.stop()
                finally:
                    run.close()


def _check_tls(options: MeasureNetworkOptions) -> None:
    """InputError for TLS options that a client has not, or that a listener of this process's own has not."""
    if options.tls_certificate is not None or options.tls_key is not None:
        raise InputError("--tls-certificate and --tls-key are options of the listener",
                         hint="give them to --listen, and --tls-ca FILE here")  # fmt: skip
    if options.tls_ca is not None and options.address is None:
        raise InputError("--tls-ca without a listener's address", hint="name its HOST:PORT; loopback has no TLS")


@contextmanager
def listening(address: str | None, side: NetworkSideOptions) -> Iterator[tuple[tuple[str, int], str]]:
    """Host, port and secret of the listener at `address`, or for None of one in a process of its own."""
    if address is not None:
        yield parse_address(address, SERVICE.port), read_secret(side.secret_file)
        return
    with listener_process(side) as address_and_secret:
        yield address_and_secret


def _rates(before: Counters, after: Counters) -> list[float]:
    """B/s of each connection between two readings; CannotMeasure where that cannot be."""
    seconds = after[0] - before[0]
    moved = [b - a for a, b in zip(before[1], after[1], strict=True)]
    if seconds <= 0 or min(moved) < 0:
        raise CannotMeasure("the other side's byte counters go backwards", hint="use the same version on both sides")
    rates = [size / seconds for size in moved]
    if max(rates) > _FASTEST:
        cause = f"the other side claims to have counted {max(rates):.3g} B/s"
        raise CannotMeasure(cause, hint="use the same version on both sides, and a listener you trust")
    return rates


class _NetworkSeries:
    """A measurement that runs on both sides; `measure` makes the samples of a window of `seconds`.

    Samples go on until there are enough of `metric`.
    """

    def __init__(self, run: NetworkRun, seconds: float) -> None:
        self._run, self._seconds = run, seconds
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
        if measurement.kind == "latency":
            self.metric, self.measure = "latency", self._round_trips
        else:
            self.metric = "total" if len(measurement.directions) > 1 else "goodput"
            self.measure, self._before = self._bandwidth, self._first_counters()

    def _first_counters(self) -> list[Counters]:
        """Counters after a while in which TCP's windows open, and once every connection has moved something."""
        end = time.monotonic() + FIRST_S
        while True:
            self._run.wait(max(self._seconds, 0.1))
            counters = self._run.counters()
            if all(all(moved) for _, moved in counters) or time.monotonic() > end:
                return counters

    def _bandwidth(self) -> Iterator[Sample]:
        """Of one window: each direction's goodput, its connections' share, and the sum of both directions."""
        self._run.wait(self._seconds)
        before, self._before = self._before, self._run.counters()
        window = [_rates(earlier, later) for earlier, later in zip(before, self._before, strict=True)]
        for i, (name, rates) in enumerate(zip(self._measurement.directions, window, strict=True)):
            flow, how = FLOWS[name], self._how(i)
            yield self._sample(flow, "goodput", sum(rates), "GB/s", how)
            if len(rates) > 1:
                for number, rate in enumerate(rates):
                    yield self._sample(flow, "connection_goodput", rate, "GB/s", how, {"connection": number})
                yield self._sample(flow, "fairness", fairness(rates), "%", how)
        if len(window) > 1:
            yield self._sample(self._flows, "total", sum(sum(rates) for rates in window), "GB/s", self._how(0))

    def _round_trips(self) -> Iterator[Sample]:
        """Of one window, longer where no round trip ended in it: mean and percentiles of half round trips."""
        native = self._run.endpoints[0].native
        assert isinstance(native, _native.TcpPing | _native.VerbsEnd)
        trips, end = None, time.monotonic() + max(FIRST_S, self._seconds)
        while trips is None or trips.count == 0:
            if trips is not None and time.monotonic() > end:
                raise CannotMeasure(f"no round trip ended in {FIRST_S:g} s", hint="take longer samples: --seconds")
            self._run.wait(self._seconds)
            with native_errors():
                trips = native.take()
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
