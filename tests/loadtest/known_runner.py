"""Runners of known law: servers simulated by the event simulation and judged as LoadGen judges, early stopping too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import lanewise._native as native
from lanewise.loadtest.load_run import OFFLINE, SERVER, LoadGenResult, LoadSpec
from lanewise.serving.verdict import invalid_reason

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


@dataclass
class KnownRunner:
    """Servers that share one line. `times` are seconds for batches of 1, 2, ... (one: query by query).

    `variation` is a service time's coefficient of variation, `lag` how late the generator itself is (s). `ran` keeps
    every load, `seconds` adds up what the runs would have taken.
    """

    times: Sequence[float] = (0.001,)
    servers: int = 1
    variation: float = 0.0
    timeout: float = 0.0
    lag: float = 0.0
    stream: int = 0
    ran: list[LoadSpec] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Queries a second of servers that are never idle."""
        return self.servers * len(self.times) / self.times[-1]

    def run(self, load: LoadSpec) -> LoadGenResult:
        self.ran.append(load)
        found = self._server(load) if load.scenario == SERVER else self._offline(load)
        self.seconds += found.seconds
        return found

    def _offline(self, load: LoadSpec) -> LoadGenResult:
        assert load.scenario == OFFLINE
        queries = max(load.queries, math.ceil(1.1 * load.qps * load.seconds))
        seconds = queries / self.rate
        return LoadGenResult(load, True, (), queries, seconds, self.rate, {}, 0)

    def _server(self, load: LoadSpec) -> LoadGenResult:
        seconds = max(load.seconds, load.queries / load.qps)
        expected = load.qps * seconds
        made, one = native.Scenario(), native.Service()
        one.rate, one.bound, one.variation = load.qps, load.bound - self.lag, self.variation
        one.batch, one.timeout = len(self.times), self.timeout
        one.late_limit = math.ceil((1.0 - load.percentile) * (expected + 5.0 * math.sqrt(expected))) + 1
        made.services, made.gpus, made.duration = [one], self.servers, seconds
        made.seed = load.seed + 1_000_003 * self.stream
        made.pools = [native.Pool(0, native.Leg())]
        made.workers = [
            native.Worker(0, gpu, 1, native.Leg(), native.Leg(), list(self.times)) for gpu in range(self.servers)
        ]
        out = native.simulate(native.Network([], [], [], []), made)
        service = out.services[0]
        reason = invalid_reason(service.counted, service.late, load.percentile)
        latency = {name: service.percentile(share) + self.lag for name, share in SHARES.items()}
        latency |= {"mean": service.sum / max(service.counted, 1) + self.lag, "max": service.percentile(1.0) + self.lag}
        took = out.end if out.ended_early else seconds
        valid = not reason and not out.ended_early
        reasons = () if valid else (reason or "cut off: too many late queries",)
        lag = dict.fromkeys(SHARES, self.lag)
        return LoadGenResult(
            load, valid, reasons, service.counted, took, service.counted / took, latency, service.late, lag,
            ended_early=out.ended_early,
        )  # fmt: skip
