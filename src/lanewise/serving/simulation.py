"""Services under load on a described system, prepared once and then run at any rate (see native/serve).

Every query's bytes share links, windows and engines with all others by max-min, at every moment. Arrivals are
Poisson and latency counts from the scheduled time (MLPerf inference rules).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import lanewise._native as _native
from lanewise.catalog import Part
from lanewise.errors import InputError
from lanewise.perf.concurrent_flows import flow_demands, solver_input
from lanewise.perf.flow import Flow
from lanewise.perf.flow_demand import FlowDemand, flow_demand
from lanewise.perf.latency import latency
from lanewise.perf.sharing import SolverFlow, native_errors, network_of
from lanewise.serving.host_cost import with_host_cost
from lanewise.serving.load import ServiceLoad, check, gpus_of
from lanewise.serving.times import ServiceTimes, gpu_part, offline_times, service_times
from lanewise.topology.model import System

# What passes before a copy's first byte: on an H200 (PCIe Gen5) 150,528 B copied one by one reach 27.3 GB/s, one large
# copy 55.5 GB/s, so issuing takes 150,528 B * (1 / 27.3 - 1 / 55.5) = 2.8 us; batches of 8 to 128 of them in one call
# reach 49.1 to 54.8 GB/s, which the same figure explains. More streams do not help, so copies one by one take turns.
COPY_SETUP = 2.8e-6
# Messages that wait for a busy connection leave as one chain, as a QDL posts them (doorbell batching).
CHAIN = 64
Amounts: TypeAlias = tuple[tuple[int, float], ...]  # (resource, amount)
ENDLESS = 1e30  # bytes of background traffic that does not end
_ARRIVALS = {"server": "POISSON", "offline": "AT_ONCE", "single-stream": "ONE_BY_ONE", "multi-stream": "ONE_BY_ONE"}


@dataclass(frozen=True, slots=True)
class SimulationInput:
    """How to run: seconds in which queries begin, the seed, intervals to keep use for, and samples to trace.

    `hopeless` names a service by its place: the run ends once so many of its queries are late that it cannot be valid.
    `samples` are those of an offline load, its own unless given.
    """

    duration: float
    seed: int = 1
    steps: int = 0
    trace: int = 0
    hopeless: int | None = None
    samples: int | None = None


@dataclass(frozen=True, slots=True)
class Deployment:
    """A load with the GPUs that answer it, the time each takes for a batch, and the pool each belongs to.

    Batches hold up to `batch` samples: the user's number, else as many as the slowest of the GPUs should take.
    """

    load: ServiceLoad
    batch: int
    gpus: tuple[str, ...]
    times: tuple[ServiceTimes, ...]
    inward: tuple[FlowDemand, ...]
    outward: tuple[FlowDemand, ...]
    pools: tuple[int, ...]


class Simulation:
    """Loads on a system with `background` flows, ready to run; InputError for what cannot be answered."""

    def __init__(self, system: System, loads: Sequence[ServiceLoad], background: Sequence[Flow] = ()) -> None:
        if not loads:
            raise InputError("no service to simulate", hint="name a workload, such as resnet50")
        self.system = system
        self.deployments = tuple(_serve(system, load) for load in loads)
        self.background = tuple(background)
        own = [item for deployment in self.deployments for item in (*deployment.inward, *deployment.outward)]
        self.resources, flows = solver_input([*own, *flow_demands(system, background)])
        self._owners = [
            place
            for place, deployment in enumerate(self.deployments)
            for _ in (*deployment.inward, *deployment.outward)
        ]
        self._owners += [len(self.deployments)] * len(background)
        # One owner's flows that demand the same are one class, which is cheaper to solve.
        classes: dict[tuple[int, SolverFlow], int] = {}
        self._class = [classes.setdefault(each, len(classes)) for each in zip(self._owners, flows, strict=True)]
        self.demands = [flow.amounts for flow in flows]
        self.background_flows = flows[len(own) :]
        with native_errors():
            self._network = network_of(
                [resource.capacity for resource in self.resources], [flow_class for _, flow_class in classes]
            )
        self.gpus = tuple(dict.fromkeys(gpu for deployment in self.deployments for gpu in deployment.gpus))

    def run(self, rates: Sequence[float], run: SimulationInput) -> _native.Outcome:
        """One run with these rates in queries/s, one for each load (used by the server scenario only)."""
        with native_errors():
            return _native.simulate(self._network, self._scenario(rates, run))

    def amounts(self) -> list[list[tuple[int, float]]]:
        """For each resource the flow classes that use it, with what a byte of each takes."""
        amounts: list[dict[int, float]] = [{} for _ in self.resources]
        for flow_class, demands in zip(self._class, self.demands, strict=True):
            for index, amount in demands:
                amounts[index][flow_class] = amount
        return [list(resource_amounts.items()) for resource_amounts in amounts]

    def resources_of(self, place: int) -> set[int]:
        """The resources that queries and answers of the service at that place use."""
        flows = zip(self._owners, self.demands, strict=True)
        return {index for owner, demands in flows if owner == place for index, _ in demands}

    def owner(self, place: int) -> str:
        """The service at that place in a few words: its workload and GPUs."""
        deployment = self.deployments[place]
        return f"{deployment.load.workload.name} on {', '.join(deployment.gpus)}"

    def users_of(self, resource: int) -> Iterator[tuple[str, int, float]]:
        """Who uses a resource: each flow class once, with its owner and what a byte of it takes."""
        names = [*(self.owner(place) for place in range(len(self.deployments))), "background traffic"]
        classes = set()
        for owner, flow_class, demands in zip(self._owners, self._class, self.demands, strict=True):
            for index, amount in demands:
                if index == resource and flow_class not in classes:
                    classes.add(flow_class)
                    yield names[owner], flow_class, amount

    def demands_of(self, place: int) -> list[tuple[Amounts, Amounts]]:
        """For each GPU of the service at that place what a query's byte and an answer's take of each resource."""
        first, count = self._first(place), len(self.deployments[place].gpus)
        queries, answers = self.demands[first : first + count], self.demands[first + count : first + 2 * count]
        return list(zip(queries, answers, strict=True))

    def _first(self, place: int) -> int:
        """Where the flows of the service at that place begin: all queries, then all answers."""
        return sum(2 * len(deployment.gpus) for deployment in self.deployments[:place])

    def _scenario(self, rates: Sequence[float], run: SimulationInput) -> _native.Scenario:
        scenario = _native.Scenario()
        scenario.duration, scenario.seed, scenario.steps, scenario.trace = run.duration, run.seed, run.steps, run.trace
        scenario.gpus = len(self.gpus)
        pools: list[_native.Pool] = []
        workers: list[_native.Worker] = []
        services = []
        for index, (deployment, rate) in enumerate(zip(self.deployments, rates, strict=True)):
            services.append(_native_service(deployment, rate, run, run.hopeless == index))
            self._add_workers(index, deployment, pools, workers)
        scenario.services, scenario.pools, scenario.workers = services, pools, workers
        first = self._first(len(self.deployments))
        scenario.background = [
            _native.Background(
                flow_class=self._class[first + i], bytes=ENDLESS if flow.size is None else flow.size, start=flow.start,
                period=flow.every,
            )
            for i, flow in enumerate(self.background)
        ]  # fmt: skip
        return scenario

    def _add_workers(
        self, index: int, deployment: Deployment, pools: list[_native.Pool], workers: list[_native.Worker]
    ) -> None:
        load, count, first = deployment.load, len(deployment.gpus), self._first(index)
        pool_index: dict[int, int] = {}
        one_by_one, policy, sizes = load.one_by_one, load.policy, list(range(1, deployment.batch + 1))
        if policy is not None and policy.whole:
            sizes = [deployment.batch] * deployment.batch
        for place, gpu in enumerate(deployment.gpus):
            inward = self._leg(deployment.inward[place], self._class[first + place], load.workload.bytes_in, load)
            outward = self._leg(
                deployment.outward[place], self._class[first + count + place], load.workload.bytes_out, load,
                deployment.times[place].answer_delay,
            )  # fmt: skip
            if deployment.pools[place] not in pool_index:
                pool_index[deployment.pools[place]] = len(pools)
                pools.append(_native.Pool(service=index, arrive=inward if one_by_one else _native.Leg()))
            workers.append(
                _native.Worker(
                    pool=pool_index[deployment.pools[place]], gpu=self.gpus.index(gpu), buffers=load.in_flight,
                    copy=_native.Leg(slots=load.copies_at_once) if one_by_one else inward, back=outward,
                    times=[deployment.times[place].at(size) for size in sizes],
                    streams=policy.streams if policy is not None else 1,
                    shares=[deployment.times[place].share(size) for size in sizes] if policy is not None else [],
                )
            )  # fmt: skip

    def _leg(
        self, item: FlowDemand, flow_class: int, size: float, load: ServiceLoad, later: float = 0.0
    ) -> _native.Leg:
        each = load.copies == "each" and not load.networked and item.flow.dst in self.gpus
        return _native.Leg(
            flow_class=flow_class if size > 0 else -1, bytes=size, alone=alone_rate(item),
            latency=latency(self.system, item.flow.src, item.flow.dst).wire + later,
            setup=0.0 if load.networked or each else COPY_SETUP, setup_each=COPY_SETUP if each else 0.0,
            slots=1 if load.one_by_one else load.copies_at_once, most=CHAIN if load.networked else 1,
        )  # fmt: skip


def alone_rate(item: FlowDemand) -> float:
    """The rate in B/s of a flow when it runs alone."""
    return min([item.cap(), *(r.capacity / amount for r, amount in item.per_byte.items() if amount > 0)])


def _serve(system: System, load: ServiceLoad) -> Deployment:
    check(load)
    gpus = gpus_of(system, load)
    times = tuple(_times(gpu_part(system, gpu), load) for gpu in gpus)
    ends = [load.frontend or system.device(gpu).host or "" for gpu in gpus]
    inward = flow_demands(system, [Flow(end, gpu) for end, gpu in zip(ends, gpus, strict=True)])
    inward = with_host_cost(system, inward, ends, load.workload)
    # Answers are small: planned one by one, they do not slow the queries' copies as two full streams would.
    outward = [flow_demand(system, Flow(gpu, end)) for end, gpu in zip(ends, gpus, strict=True)]
    one_by_one = load.one_by_one
    hosts = list(dict.fromkeys(ends))
    pools = tuple(range(len(gpus))) if one_by_one else tuple(hosts.index(end) for end in ends)
    batch = load.largest if load.batch is not None else min(times_of_gpu.batch for times_of_gpu in times)
    return Deployment(load, batch, gpus, times, tuple(inward), tuple(outward), pools)


def _times(part: Part, load: ServiceLoad) -> ServiceTimes:
    if load.policy is not None:
        work = replace(load.workload, batch=load.largest)
        in_order, policy = load.scenario != "offline", load.policy
        queued = policy.streams == 1 and policy.in_flight > 1
        return offline_times(part, work, in_order, policy.offline_batch, load.copied_on_device, queued)
    return service_times(part, load.workload, load.mode, load.networked)


def _native_service(deployment: Deployment, rate: float, run: SimulationInput, hopeless: bool) -> _native.Service:
    load = deployment.load
    service = _native.Service()
    service.arrivals = getattr(_native.Arrivals, _ARRIVALS[load.scenario])
    service.rate = rate
    service.samples = load.workload.samples if load.scenario == "multi-stream" else 1
    service.total = (run.samples or load.samples) if load.scenario == "offline" else 0
    service.bound = load.workload.bound
    service.dispatch = getattr(_native.Dispatch, load.dispatch.upper().replace("-", "_"))
    service.batch, service.timeout = deployment.batch, load.wait
    if load.policy is not None:
        service.in_turn = True
        service.waiting = _native.Waiting.WORKER if load.policy.own_batcher else _native.Waiting.OLDEST
    service.variation, service.sample_variation = load.time_variation, load.workload.length_variation
    if hopeless:
        expected = rate * run.duration
        # Five deviations more queries than expected may come; more late ones than this fail all the same.
        service.late_limit = math.ceil((1.0 - load.workload.percentile) * (expected + 5.0 * math.sqrt(expected))) + 1
    return service
