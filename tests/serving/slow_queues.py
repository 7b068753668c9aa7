"""Services under load in a plain event loop, written apart from native/serve: slow, and easy to check by reading.

At each event all rates are shared anew by textbook filling and every transfer advances by hand. Queries begin at the
times they are given; nothing is random. `scenario` and `network` turn the same description into the native one.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from oracles.slow_maxmin import Flow, max_min

import lanewise._native as native


@dataclass(frozen=True)
class Leg:
    flow_class: int = -1
    bytes: float = 0.0
    setup: float = 0.0
    latency: float = 0.0
    slots: int = 1
    most: int = 1
    alone: float = math.inf
    setup_each: float = 0.0


@dataclass(frozen=True)
class Worker:
    pool: int
    gpu: int
    times: tuple[float, ...]
    buffers: int = 1
    copy: Leg = Leg()
    back: Leg = Leg()
    streams: int = 1  # this and the next of the native run only
    shares: tuple[float, ...] = ()


@dataclass(frozen=True)
class Pool:
    service: int = 0
    arrive: Leg = Leg()


@dataclass(frozen=True)
class Service:
    """`rate` is that of the native run only; here queries begin when they are told to."""

    arrivals: str = "POISSON"
    rate: float = 1.0
    samples: int = 1
    total: int = 0
    bound: float = 1.0
    dispatch: str = "LEAST"
    batch: int = 1
    timeout: float = 0.0
    variation: float = 0.0
    sample_variation: float = 0.0
    late_limit: int = -1
    waiting: str = "OLDEST"  # this and the next of the native run only
    in_turn: bool = False


@dataclass(frozen=True)
class Case:
    """What is simulated: `capacities` and (uses, cap) of flow classes, services, and (class, bytes, start, period)."""

    services: tuple[Service, ...]
    pools: tuple[Pool, ...]
    workers: tuple[Worker, ...]
    capacities: tuple[float, ...] = ()
    classes: tuple[tuple[dict[int, float], float | None], ...] = ()
    background: tuple[tuple[int, float, float, float], ...] = ()
    gpus: int = 1
    duration: float = 1.0


@dataclass
class Batch:
    """Times of one batch and of the samples in it, as the native trace has them."""

    worker: int
    scheduled: list[float] = field(default_factory=list)
    landed: list[float] = field(default_factory=list)
    formed: float = 0.0
    copied: float = 0.0
    started: float = 0.0
    served: float = 0.0
    done: float = 0.0
    queries: list[list[float]] = field(default_factory=list)  # of each sample: [scheduled, samples left, answered]


def network(case: Case) -> native.Network:
    """The network of a case for the native core."""
    caps = [math.inf if cap is None else cap for _, cap in case.classes]
    uses = [list(each.items()) for each, _ in case.classes]
    return native.Network(list(case.capacities), uses, [1.0] * len(caps), caps)


def scenario(case: Case, seed: int = 1, trace: int = 0, steps: int = 0, skip: float = 0.0) -> native.Scenario:
    """A case for the native core."""
    made = native.Scenario()
    services = []
    for each in case.services:
        one = native.Service()
        one.arrivals = getattr(native.Arrivals, each.arrivals)
        one.dispatch = getattr(native.Dispatch, each.dispatch)
        one.waiting, one.in_turn = getattr(native.Waiting, each.waiting), each.in_turn
        for name in (
            "rate", "samples", "total", "bound", "batch", "timeout", "late_limit", "variation", "sample_variation",
        ):  # fmt: skip
            setattr(one, name, getattr(each, name))
        services.append(one)
    made.services = services
    made.pools = [native.Pool(each.service, _leg(each.arrive)) for each in case.pools]
    made.workers = [
        native.Worker(
            each.pool, each.gpu, each.buffers, _leg(each.copy), _leg(each.back), list(each.times), each.streams,
            list(each.shares),
        )
        for each in case.workers
    ]  # fmt: skip
    made.background = [native.Background(*each) for each in case.background]
    made.gpus, made.duration, made.skip = case.gpus, case.duration, skip
    made.seed, made.trace, made.steps = seed, trace, steps
    return made


def simulate(case: Case, seed: int = 1, trace: int = 0, steps: int = 0, skip: float = 0.0) -> native.Outcome:
    """The native run of a case."""
    return native.simulate(network(case), scenario(case, seed, trace, steps, skip))


def _leg(leg: Leg) -> native.Leg:
    return native.Leg(
        leg.flow_class, leg.bytes, leg.setup, leg.latency, leg.alone, leg.slots, leg.most, leg.setup_each
    )


class Slow:
    """The reference run: `times` are those at which the queries of each Poisson service begin."""

    def __init__(self, case: Case, times: Sequence[Sequence[float]]) -> None:
        self.case, self.now, self.order = case, 0.0, 0
        self.timed: list[tuple[float, int, Callable[[], None]]] = []
        self.flows: list[_Flow] = []
        self.shared: dict[tuple[int, ...], list[float]] = {}
        self.batches: list[Batch] = []
        self.latencies: list[list[float]] = [[] for _ in case.services]
        self.open = 0  # samples
        self.source: list[deque[list[float]]] = [deque() for _ in case.pools]
        self.waiting: list[deque[tuple[list[float], float]]] = [deque() for _ in case.pools]
        self.sending = [0] * len(case.pools)
        self.copying, self.held = [0] * len(case.workers), [0] * len(case.workers)
        self.turn = [0] * len(case.pools)
        self.ready: list[deque[Batch]] = [deque() for _ in range(case.gpus)]
        self.running = [False] * case.gpus
        self.outstanding, self.sent = [0] * len(case.pools), [0] * len(case.pools)
        self.issued = 0
        for index, service in enumerate(case.services):
            self._begin(index, service, times[index])
        for each in case.background:
            self.at(each[2], partial(self._background, *each))

    def _begin(self, index: int, service: Service, times: Sequence[float]) -> None:
        if service.arrivals == "POISSON":
            for time in times:
                self.open += service.samples
                self.at(time, partial(self._issue, index, time))
        elif service.arrivals == "ONE_BY_ONE":
            self.open += service.samples
            self.at(0.0, lambda: self._issue(index, 0.0))
        else:  # one pool only: then it does not matter who hands samples over
            (pool,) = self._pools(index)
            self.open += service.total
            for _ in range(service.total):
                self._enter(pool, [0.0, 1.0, 0.0])
            self.at(0.0, lambda: self._feed(pool))

    def run(self) -> list[Batch]:
        """All batches once every query is answered."""
        while self.open > 0:
            rates = self._rates()
            ends = [self.now + flow.left / rates[flow.flow_class] for flow in self.flows]
            then = min([*ends, self.timed[0][0]] if self.timed else ends)
            ended = [flow for flow, end in zip(self.flows, ends, strict=True) if end <= then]
            for flow in self.flows:
                flow.left -= rates[flow.flow_class] * (then - self.now)
            self.now = then
            self.flows = [flow for flow in self.flows if flow not in ended]
            for flow in ended:
                flow.then()
            while self.timed and not ended and self.timed[0][0] <= self.now:
                heapq.heappop(self.timed)[2]()
        return self.batches

    def at(self, time: float, what: Callable[[], None]) -> None:
        """Does it then; of equal times in the order they were told."""
        self.order += 1
        heapq.heappush(self.timed, (time, self.order, what))

    def _rates(self) -> list[float]:
        counts = [0] * len(self.case.classes)
        for flow in self.flows:
            counts[flow.flow_class] += 1
        key = tuple(counts)
        if key not in self.shared:
            there = [k for k, count in enumerate(counts) for _ in range(count)]
            flows = [Flow(self.case.classes[k][0], 1.0, self.case.classes[k][1]) for k in there]
            found = dict(zip(there, max_min(self.case.capacities, flows), strict=True))
            self.shared[key] = [found[k].rate if k in found else 0.0 for k in range(len(counts))]
        return self.shared[key]

    def _background(self, flow_class: int, size: float, _start: float, period: float) -> None:
        self.flows.append(_Flow(flow_class, size, lambda: None))
        if period > 0 and self.now + period < self.case.duration:
            self.at(self.now + period, lambda: self._background(flow_class, size, 0.0, period))

    def _move(self, leg: Leg, samples: int, last: Callable[[], None], there: Callable[[], None]) -> None:
        """One transfer: `last` at its last byte, `there` one latency later."""

        def ended() -> None:
            last()
            self._after(leg.latency, there)

        def begin() -> None:
            if leg.flow_class < 0 or leg.bytes == 0:
                ended()
            else:
                self.flows.append(_Flow(leg.flow_class, leg.bytes * samples, ended))

        self._after(leg.setup + leg.setup_each * samples, begin)

    def _after(self, seconds: float, what: Callable[[], None]) -> None:
        if seconds > 0:
            self.at(self.now + seconds, what)
        else:
            what()

    def _pools(self, service: int) -> list[int]:
        return [p for p, pool in enumerate(self.case.pools) if pool.service == service]

    def _issue(self, service: int, time: float) -> None:
        query = [time, float(self.case.services[service].samples), 0.0]
        pools = self._pools(service)
        for _ in range(self.case.services[service].samples):
            if self.case.services[service].dispatch == "ROUND_ROBIN":
                pool = min(pools, key=lambda p: (self.sent[p], p))  # the longest unused one
            else:
                pool = min(pools, key=lambda p: (self.outstanding[p], self.sent[p], p))
            self.issued += 1
            self.sent[pool] = self.issued
            self.outstanding[pool] += 1
            self._enter(pool, query)
        for pool in pools:
            self._feed(pool)

    def _enter(self, pool: int, query: list[float]) -> None:
        if self.case.pools[pool].arrive == Leg():
            self.waiting[pool].append((query, self.now))
        else:
            self.source[pool].append(query)

    def _feed(self, pool: int) -> None:
        """Begins what can begin: transfers of arriving samples, then batches."""
        leg = self.case.pools[pool].arrive
        while self.source[pool] and self.sending[pool] < leg.slots:
            taken = [self.source[pool].popleft() for _ in range(min(leg.most, len(self.source[pool])))]
            self.sending[pool] += 1
            self._move(leg, len(taken), lambda: self._sent(pool), partial(self._landed, pool, taken))
        self._form(pool)

    def _sent(self, pool: int) -> None:
        self.sending[pool] -= 1
        self.at(self.now, lambda: self._feed(pool))

    def _landed(self, pool: int, queries: list[list[float]]) -> None:
        self.waiting[pool] += [(query, self.now) for query in queries]
        self._form(pool)

    def _form(self, pool: int) -> None:
        service = self.case.services[self.case.pools[pool].service]
        waiting = self.waiting[pool]
        while waiting and (open_ := self._open_workers(pool)):
            due = waiting[0][1] + service.timeout
            if len(waiting) < service.batch and due > self.now:
                self.at(due, lambda: self._form(pool))
                return
            worker = min(open_, key=lambda each: (self.held[each[1]], each[0]))[1]
            mine = [w for w, each in enumerate(self.case.workers) if each.pool == pool]
            self.turn[pool] = mine.index(worker) + 1
            taken = [waiting.popleft() for _ in range(min(service.batch, len(waiting)))]
            batch = Batch(worker, [q[0] for q, _ in taken], [landed for _, landed in taken], self.now)
            batch.queries = [query for query, _ in taken]
            self.copying[worker] += 1
            self.held[worker] += 1
            self._move(
                self.case.workers[worker].copy, len(taken), partial(self._copy_ended, worker),
                partial(self._copied, batch),
            )  # fmt: skip

    def _open_workers(self, pool: int) -> list[tuple[int, int]]:
        """(how soon it is its turn, worker) of those that can take a batch."""
        mine = [w for w, each in enumerate(self.case.workers) if each.pool == pool]
        return [
            ((place - self.turn[pool]) % len(mine), w) for place, w in enumerate(mine)
            if self.copying[w] < self.case.workers[w].copy.slots and self.held[w] < self.case.workers[w].buffers
        ]  # fmt: skip

    def _copy_ended(self, worker: int) -> None:
        self.copying[worker] -= 1
        pool = self.case.workers[worker].pool
        self.at(self.now, lambda: self._form(pool))

    def _copied(self, batch: Batch) -> None:
        batch.copied = self.now
        gpu = self.case.workers[batch.worker].gpu
        self.ready[gpu].append(batch)
        self._start(gpu)

    def _start(self, gpu: int) -> None:
        if self.running[gpu] or not self.ready[gpu]:
            return
        batch = self.ready[gpu].popleft()
        self.running[gpu] = True
        batch.started = self.now
        time = self.case.workers[batch.worker].times[len(batch.scheduled) - 1]
        self.at(self.now + time, lambda: self._served(gpu, batch))

    def _served(self, gpu: int, batch: Batch) -> None:
        batch.served = self.now
        self.running[gpu] = False
        self.held[batch.worker] -= 1
        self._start(gpu)
        self._form(self.case.workers[batch.worker].pool)
        back = self.case.workers[batch.worker].back
        self._move(back, len(batch.scheduled), lambda: None, lambda: self._done(batch))

    def _done(self, batch: Batch) -> None:
        batch.done = self.now
        self.batches.append(batch)
        pool = self.case.workers[batch.worker].pool
        index = self.case.pools[pool].service
        service = self.case.services[index]
        self.outstanding[pool] -= len(batch.scheduled)
        self.open -= len(batch.scheduled)
        following = 0
        for query in batch.queries:
            query[1] -= 1
            if query[1] <= 0:
                self.latencies[index].append(self.now - query[0])
                following += 1
        if service.arrivals == "ONE_BY_ONE" and self.now < self.case.duration:
            for _ in range(following):
                self.open += service.samples
                self._issue(index, self.now)


@dataclass(eq=False)
class _Flow:
    flow_class: int
    left: float
    then: Callable[[], None]
