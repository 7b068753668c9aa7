"""The first probe: the performance model answers a plan with predicted observations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lanewise.errors import unknown_name
from lanewise.perf.latency import latency
from lanewise.perf.predict import Prediction, predict
from lanewise.perf.resources import weakest
from lanewise.results.observation import Basis, Observation, Source
from lanewise.results.plan import STEADY, Copies, Metric, Plan, Service
from lanewise.results.service_result import ServiceResult
from lanewise.routes.model import Route, Via
from lanewise.serving import steady
from lanewise.serving.peak import under_load
from lanewise.serving.workload import workload
from lanewise.topology.model import Kind, System

COPY_METRICS = {
    "goodput": "payload bytes a second of all flows together",
    "flow_goodput": "payload bytes a second of the first flow",
    "slowest": "payload bytes a second of the slowest flow",
    "raw": "bytes a second on the busiest wire, packet headers included",
    "raw_ratio": "raw over goodput on the busiest wire",
    "latency": "small copy as CUDA's sample times it",
    "wire_latency": "small packet, wire and switches only",
    "link_share": "goodput over the raw rate of the busiest PCIe link crossed",
    "root_ports": "payload bytes a second on the busiest link at a CPU",
}
SERVICE_METRICS = {
    "qps": "queries answered a second",
    "goodput": "queries a second times the bytes of a query",
    "share": "queries a second as a share of the Closed division's",
    "link_share": "goodput over the raw rate of the busiest PCIe link crossed",
}


class ModelProbe:
    """Predicts instead of measuring; absent hardware is this probe, not a special case."""

    source = Source.PREDICTED

    def __init__(self) -> None:
        # Rows ask for several metrics of one service; systems are kept so that their identity stays theirs.
        self._simulated: dict[tuple[int, Service], tuple[System, ServiceResult]] = {}

    def run(self, plan: Plan) -> list[Observation]:
        """One predicted observation for each metric; UnknownName for a metric it does not know."""
        if isinstance(plan.scenario, Copies):
            return _copies(plan, plan.scenario)
        seen = _service(plan, plan.scenario)
        if plan.scenario.method == STEADY:
            return seen
        return [self._by_simulation(plan, plan.scenario, each) for each in seen]

    def _by_simulation(self, plan: Plan, service: Service, steady_state: Observation) -> Observation:
        """The same observation by event simulation, with the steady state's value beside it."""
        found = self._under_load(plan.system, service)
        if steady_state.metric == "link_share":
            return steady_state  # a share of a link's raw rate does not depend on queueing
        size = workload(service.workload).bytes_in
        # The target rate is the score, as with LoadGen; how many queries happen to come in a run is chance.
        value = {"qps": found.qps, "goodput": found.qps * size}.get(steady_state.metric)
        if steady_state.metric == "share":
            value = found.qps / self._under_load(plan.system, replace(service, division="closed")).qps
        comparisons = {} if steady_state.value is None else {STEADY: steady_state.value}
        gpus = [resource for resource in found.utilization if resource.kind == "GPU"]
        busiest = [*[resource for resource in found.utilization if resource.kind != "GPU"][:4], *gpus[:1]]
        return replace(
            steady_state, value=value, comparisons=comparisons,
            limit=found.limit, basis=Basis(found.basis), rests_on=found.rests_on,
            use={each.name: round(each.mean, 4) for each in busiest},
        )  # fmt: skip

    def _under_load(self, system: System, service: Service) -> ServiceResult:
        asked = replace(service, name="")
        key = (id(system), asked)
        if key not in self._simulated:
            self._simulated[key] = (system, under_load(system, asked))
        return self._simulated[key][1]


def _copies(plan: Plan, copies: Copies) -> list[Observation]:
    cache: list[Prediction] = []

    def found() -> Prediction:
        if not cache:
            cache.append(predict(plan.system, copies.flows))
        return cache[0]

    return [_copy_metric(plan, copies, metric, found) for metric in plan.metrics]


def _copy_metric(plan: Plan, copies: Copies, metric: Metric, found: Callable[[], Prediction]) -> Observation:
    if metric.name not in COPY_METRICS:
        raise unknown_name("metric", metric.name, COPY_METRICS)
    first = copies.flows[0]
    name = ", ".join(flow.name for flow in copies.flows)
    if metric.name in ("latency", "wire_latency"):
        seen = latency(plan.system, first.src, first.dst, first.p2p)
        kind = f"small copy, {path_kind(plan.system, seen.route)}"
        value = seen.api if metric.name == "latency" else seen.wire
        return _observation(plan, metric, name, value, limit=seen.limit, basis=seen.basis, rests_on=seen.rests_on,
                            note=seen.note, path=kind)  # fmt: skip
    result = found()
    slowest = min(result.flows, key=lambda flow: flow.rate)
    value, low, high = _copy_value(metric.name, result)
    return _observation(
        plan, metric, name, value, low=low, high=high, limit=slowest.limit, rests_on=slowest.rests_on,
        basis=weakest([flow.basis for flow in result.flows]), note=slowest.doubt, use=_busy(result),
        path=path_kind(plan.system, slowest.routes[0]),
    )  # fmt: skip


def _copy_value(metric: str, found: Prediction) -> tuple[float, float | None, float | None]:
    if metric == "goodput":
        low, high = sum(f.low for f in found.flows), sum(f.high for f in found.flows)
        return found.total, low, high
    if metric == "flow_goodput":
        return found.flows[0].rate, found.flows[0].low, found.flows[0].high
    if metric == "slowest":
        slowest = min(found.flows, key=lambda flow: flow.rate)
        return slowest.rate, slowest.low, slowest.high
    if metric == "link_share":
        return _link_share(found), None, None
    if metric == "root_ports":
        return _at_root_ports(found), None, None
    busiest = max(found.raw, key=lambda link: found.raw[link])
    raw = found.raw[busiest]
    return (raw if metric == "raw" else raw / found.loads[busiest]), None, None


def _service(plan: Plan, service: Service) -> list[Observation]:
    ask = steady.network if service.division == "network" else steady.closed
    found = ask(plan.system, service.workload, service.mode, service.host)
    made: list[Observation] = []
    for metric in plan.metrics:
        if metric.name not in SERVICE_METRICS:
            raise unknown_name("metric", metric.name, SERVICE_METRICS)
        value = {"qps": found.qps, "goodput": found.goodput}.get(metric.name)
        if metric.name == "link_share":
            value = _link_share(found.prediction)
        if metric.name == "share":
            value = found.qps / steady.closed(plan.system, service.workload, service.mode, service.host).qps
        made.append(
            _observation(
                plan, metric, f"{len(found.prediction.flows)} GPUs", value, limit=found.limit, basis=found.basis,
                rests_on=found.rests_on, use=_busy(found.prediction),
                path=f"service, {service.division}",
            )
        )  # fmt: skip
    return made


def path_kind(system: System, route: Route) -> str:
    """What kind of path a route is, in a few words: host to device, peer PIX, peer staged, storage, network."""
    kinds = (system.device(route.src).kind, system.device(route.dst).kind)
    if route.via is Via.NETWORK:
        return "network"
    if kinds[0] in (Kind.SSD, Kind.RAID) or kinds[1] in (Kind.SSD, Kind.RAID):
        return "storage"
    if kinds == (Kind.CPU, Kind.GPU):
        return "host to device"
    if kinds == (Kind.GPU, Kind.CPU):
        return "device to host"
    return "peer, staged" if route.via is Via.STAGED else f"peer {route.cls}"


def _at_root_ports(found: Prediction) -> float:
    cpus = set(found.system.of_kind(Kind.CPU))
    return max((load for ends, load in found.loads.items() if cpus & set(ends)), default=0.0)


def _link_share(found: Prediction) -> float:
    """Goodput on the busiest PCIe link as a share of its raw rate (what the sources call % of 32 GB/s)."""
    from lanewise.perf.packets import raw_rate

    shares = [0.0]
    for link in found.system.links:
        if link.gen and link.lanes:
            goodput = max(found.loads.get((link.a, link.b), 0.0), found.loads.get((link.b, link.a), 0.0))
            shares.append(goodput / raw_rate(link.gen, link.lanes))
    return max(shares)


def _busy(found: Prediction) -> dict[str, float]:
    busiest = sorted(found.use.items(), key=lambda item: -item[1])[:4]
    return {name: round(use, 4) for name, use in busiest}


def _observation(plan: Plan, metric: Metric, flow: str, value: float | None, basis: str, **rest: Any) -> Observation:
    low, high = rest.pop("low", None), rest.pop("high", None)
    if value is not None and low is not None and high is not None and high - low < 1e-9 * abs(value):
        low = high = None
    return Observation(
        scenario=plan.scenario.name, flow=flow, metric=metric.name, value=value, display_unit=metric.unit,
        source=Source.PREDICTED, system=plan.system.name, settings=dict(plan.system.settings),
        basis=Basis(basis), low=low, high=high, **rest,
    )  # fmt: skip
