"""Measures a network: each cell of a plan with a listener, a sample a window, until they agree or there are many."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lanewise import _native
from lanewise.errors import CannotMeasure
from lanewise.probes.machine import native_errors
from lanewise.probes.network import endpoints
from lanewise.probes.network.session import Count, Peer, Running
from lanewise.results.estimate import Rule
from lanewise.results.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lanewise.probes.network.options import NetworkPlan

FLOWS = {"to": "host0->host1", "from": "host1->host0"}
PERCENTILES = {"latency_p50": 0.5, "latency_p99": 0.99, "latency_p99.9": 0.999}
FIRST_S = 5.0
STEP_S = 0.1  # a Ctrl-C, and a peer that is gone, are noticed this often


@dataclass(frozen=True)
class NetworkProbe:
    """Answers a plan with a listener; `rule` says when a cell has samples enough."""

    peer: Peer
    rule: Rule = field(default_factory=lambda: Rule(least=5, most=15))

    def samples(self, scenario: NetworkPlan) -> Iterator[Sample]:
        """Every sample, as soon as it is there; closing the iterator frees both sides."""
        for cell in scenario.cells():
            running = Running(self.peer, cell)
            try:
                running.start()
                if cell.kind == "latency":
                    yield from self._latency(running, scenario.seconds)
                else:
                    yield from self._bandwidth(running, scenario.seconds)
                running.stop()
            finally:
                running.close()

    def _bandwidth(self, running: Running, seconds: float) -> Iterator[Sample]:
        made = _Maker(running)
        before = _under_way(running, max(seconds, 0.1))
        totals: list[float] = []
        while not self.rule.enough(totals):
            _wait(running, seconds)
            after = running.marks()
            window = [_rates(one, other) for one, other in zip(before, after, strict=True)]
            totals.append(sum(sum(rates) for rates in window))
            before = after
            yield from made.bandwidth(window)

    def _latency(self, running: Running, seconds: float) -> Iterator[Sample]:
        made = _Maker(running)
        native = running.ends[0].native
        if isinstance(native, _native.TcpStream):
            raise TypeError("round trips need an end that asks")
        means: list[float] = []
        while not self.rule.enough(means):
            _wait(running, seconds)
            with native_errors():
                trips = native.take()
            if trips.count == 0:
                raise CannotMeasure(f"no round trip ended in {seconds:g} s", hint="take longer samples: --seconds")
            means.append(trips.mean())
            yield from made.latency(trips)


def _wait(running: Running, seconds: float) -> None:
    """Let a window pass; a peer that leaves meanwhile ends it."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        running.check()
        time.sleep(min(left, STEP_S))


def _under_way(running: Running, seconds: float) -> list[Count]:
    """The first marks: after a while in which TCP's windows open, and once every connection has moved something."""
    end = time.monotonic() + FIRST_S
    while True:
        _wait(running, seconds)
        marks = running.marks()
        if all(all(moved) for _, moved in marks) or time.monotonic() > end:
            return marks


def _rates(before: Count, after: Count) -> list[float]:
    """GB/s of each connection between two marks; CannotMeasure where the clock or a count went backwards."""
    seconds = after[0] - before[0]
    moved = [b - a for a, b in zip(before[1], after[1], strict=True)]
    if seconds <= 0 or min(moved) < 0:
        raise CannotMeasure("the other side's marks go backwards", hint="use the same version on both sides")
    return [each / seconds / 1e9 for each in moved]


class _Maker:
    """Makes the samples of one cell."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._cell = running.cell
        cell = running.cell
        words = [cell.transport, *([cell.operation] if cell.transport == "verbs" else []), cell.kind]
        if len(cell.ways) == 2:
            words.append("both_ways")
        self._scenario = "_".join(words)
        pulls = " read" if cell.transport == "verbs" and cell.operation == "read" else ""
        self._flows = ", ".join(FLOWS[way] + pulls for way in cell.ways)
        self._settings = {"bytes": cell.bytes, "connections": cell.connections}
        if cell.transport == "verbs":
            self._settings["depth"] = cell.depth

    def bandwidth(self, window: list[list[float]]) -> Iterator[Sample]:
        """Of one window: each direction's goodput, its connections' share, and the sum of both directions."""
        for way, (name, rates) in enumerate(zip(self._cell.ways, window, strict=True)):
            flow, how = FLOWS[name], self._how(way)
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
        yield self._sample(FLOWS["to"], "latency", trips.mean(), "us", how)
        for metric, share in PERCENTILES.items():
            yield self._sample(FLOWS["to"], metric, trips.percentile(share), "us", how)

    def _how(self, way: int) -> dict[str, str]:
        cell, end = self._cell, self._running.ends[way]
        how = {"flows": self._flows, "engine": "CPU", "transport": cell.transport, "data": "verified"}
        if cell.transport == "verbs":
            how["engine"] = "RDMA"
            how["completions"] = "events" if cell.events else "polled"
        if cell.kind == "bandwidth":
            how["counted"] = "completions at the sender" if endpoints.counter_sends(cell) else "at the receiver"
        if cell.zero_copy and isinstance(end.native, _native.TcpStream) and end.sends:
            how["zero copy"] = "copied by the kernel all the same" if end.native.copied else "yes"
        return {**how, **self._running.about[way]}

    def _sample(
        self, flow: str, metric: str, value: float, unit: str, how: dict[str, str], more: dict[str, int] | None = None
    ) -> Sample:
        settings: dict[str, Any] = {**self._settings, **(more or {})}
        return Sample(self._scenario, flow, metric, value, unit, settings, how, "network")


def fairness(rates: list[float]) -> float:
    """Jain's index in %: 100 where all connections get the same, 100 / n where one gets everything."""
    squares = sum(rate * rate for rate in rates)
    return 100.0 * sum(rates) ** 2 / (len(rates) * squares) if squares > 0 else 100.0


__all__ = ["NetworkProbe", "fairness"]
