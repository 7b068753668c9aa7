"""The model probe: the performance model carries out a plan and yields predicted observations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lanewise.errors import unknown_name
from lanewise.evidence.traffic_prediction import TrafficModel
from lanewise.perf.latency import latency
from lanewise.perf.predict import Prediction, predict
from lanewise.perf.resources import weakest
from lanewise.results.match import service_path
from lanewise.results.observation import Basis, Observation, Source
from lanewise.results.plan import SIMULATION, STEADY, Copies, Plan, Service
from lanewise.results.traffic import MachineTraffic
from lanewise.routes.classify import path_kind
from lanewise.routes.model import Hop
from lanewise.serving.load import load_of
from lanewise.serving.peak import under_load
from lanewise.serving.steady import steady_rate
from lanewise.serving.workload import workload
from lanewise.topology.model import Kind

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
TRAFFIC_METRICS = {
    "busbw": "bus bandwidth of a collective, as nccl-tests counts it",
    "goodput": "payload bytes a second of all flows of blocks together, or of a load",
    "time": "of one call of a collective, of all blocks of a flow, or of a load",
}


class ModelProbe:
    """Predicts with the performance model; absent hardware is this probe, not a special case."""

    def __init__(self) -> None:
        self._traffic: dict[tuple[int, frozenset[str]], TrafficModel] = {}

    def run(self, plan: Plan) -> Iterator[Observation]:
        """The predicted observation of a plan; UnknownName for an unknown metric."""
        scenario = plan.scenario
        known = {Copies: COPY_METRICS, Service: SERVICE_METRICS, MachineTraffic: TRAFFIC_METRICS}[type(scenario)]
        if plan.metric not in known:
            raise unknown_name("metric", plan.metric, known)
        if isinstance(scenario, MachineTraffic):
            yield self._of_traffic(plan, scenario)
        elif isinstance(scenario, Copies):
            yield _latency(plan, scenario) if plan.metric in ("latency", "wire_latency") else _copies(plan, scenario)
        else:
            steady_state = _service(plan, scenario)
            simulated = scenario.method == SIMULATION
            yield self._by_simulation(plan, scenario, steady_state) if simulated else steady_state

    def _of_traffic(self, plan: Plan, scenario: MachineTraffic) -> Observation:
        model = self._traffic.setdefault(
            (id(plan.system), scenario.without), TrafficModel(plan.system, scenario.without)
        )  # fmt: skip
        blank = Observation(
            scenario.name, scenario.flow, plan.metric, None, plan.unit, Source.PREDICTED, system=plan.system.name
        )
        return model.predict(scenario.traffic, blank)[0]

    def _by_simulation(self, plan: Plan, service: Service, steady_state: Observation) -> Observation:
        """The same observation by event simulation, with the steady state's value for comparison."""
        result = under_load(plan.system, service)
        if steady_state.metric == "link_share":
            return steady_state  # a share of a link's raw rate does not depend on queueing
        size = workload(service.workload).bytes_in
        # The target rate is the score, as with LoadGen; how many queries happen to come in a run is chance.
        value = {"qps": result.qps, "goodput": result.qps * size}.get(steady_state.metric)
        if steady_state.metric == "share":
            value = result.qps / under_load(plan.system, replace(service, division="closed")).qps
        comparisons = {} if steady_state.value is None else {STEADY: steady_state.value}
        gpus = [resource for resource in result.utilization if resource.kind == "GPU"]
        busiest = [*[resource for resource in result.utilization if resource.kind != "GPU"][:4], *gpus[:1]]
        return replace(
            steady_state, value=value, comparisons=comparisons,
            limit=result.limit, basis=Basis(result.basis), rests_on=result.rests_on,
            use={resource.name: round(resource.mean, 4) for resource in busiest},
        )  # fmt: skip


def _copies(plan: Plan, copies: Copies) -> Observation:
    prediction = predict(plan.system, copies.flows)
    slowest = min(prediction.rates, key=lambda flow: flow.rate)
    value, low, high = _copy_value(plan.metric, prediction)
    return _observation(
        plan, _names(copies), value, low=low, high=high, limit=slowest.limit, rests_on=slowest.rests_on,
        basis=weakest([flow.basis for flow in prediction.rates]), note=slowest.doubt, use=_busiest(prediction),
        path=path_kind(plan.system, slowest.routes[0]),
    )  # fmt: skip


def _latency(plan: Plan, copies: Copies) -> Observation:
    flow = copies.flows[0]
    result = latency(plan.system, flow.src, flow.dst, flow.p2p)
    return _observation(
        plan, _names(copies), result.api if plan.metric == "latency" else result.wire, limit=result.limit,
        basis=result.basis, rests_on=result.rests_on, note=result.note,
        path=f"small copy, {path_kind(plan.system, result.route)}",
    )  # fmt: skip


def _names(copies: Copies) -> str:
    return ", ".join(flow.name for flow in copies.flows)


def _copy_value(metric: str, prediction: Prediction) -> tuple[float, float | None, float | None]:
    """The value of a metric, and the interval of the prediction where it has one."""
    flows = prediction.rates
    if metric == "goodput":
        return prediction.total, sum(flow.low for flow in flows), sum(flow.high for flow in flows)
    if metric in ("flow_goodput", "slowest"):
        flow = flows[0] if metric == "flow_goodput" else min(flows, key=lambda flow: flow.rate)
        return flow.rate, flow.low, flow.high
    if metric == "link_share":
        return _link_share(prediction), None, None
    if metric == "root_ports":
        cpus = set(prediction.system.of_kind(Kind.CPU))
        loads = (load for link, load in prediction.loads.items() if cpus & {link.start, link.end})
        return max(loads, default=0.0), None, None
    busiest = max(prediction.raw, key=lambda link: prediction.raw[link])
    raw = prediction.raw[busiest]
    return (raw if metric == "raw" else raw / prediction.loads[busiest]), None, None


def _service(plan: Plan, service: Service) -> Observation:
    load = load_of(service.workload, service.mode, service.division, service.host)
    result = steady_rate(plan.system, load)
    value = {"qps": result.qps, "goodput": result.goodput}.get(plan.metric)
    if plan.metric == "link_share":
        value = _link_share(result.prediction)
    if plan.metric == "share":
        value = result.qps / steady_rate(plan.system, replace(load, frontend=None)).qps
    return _observation(
        plan, f"{len(result.prediction.rates)} GPUs", value, limit=result.limit, basis=result.basis,
        rests_on=result.rests_on, use=_busiest(result.prediction), path=service_path(service.division),
    )  # fmt: skip


def _link_share(prediction: Prediction) -> float:
    """Goodput on the busiest PCIe link as a share of its raw rate (what the sources call % of 32 GB/s)."""
    from lanewise.perf.packets import raw_rate

    shares = [0.0]
    for link in prediction.system.links:
        if link.gen and link.lanes:
            goodput = max(prediction.loads.get(Hop(link, down).direction, 0.0) for down in (True, False))
            shares.append(goodput / raw_rate(link.gen, link.lanes))
    return max(shares)


def _busiest(prediction: Prediction) -> dict[str, float]:
    busiest = sorted(prediction.utilization.items(), key=lambda item: -item[1])[:4]
    return {name: round(use, 4) for name, use in busiest}


def _observation(plan: Plan, flow: str, value: float | None, basis: str, **rest: Any) -> Observation:
    low, high = rest.pop("low", None), rest.pop("high", None)
    if value is not None and low is not None and high is not None and high - low < 1e-9 * abs(value):
        low = high = None
    return Observation(
        scenario=plan.scenario.name, flow=flow, metric=plan.metric, value=value, display_unit=plan.unit,
        source=Source.PREDICTED, system=plan.system.name, settings=dict(plan.system.settings),
        basis=Basis(basis), low=low, high=high, **rest,
    )  # fmt: skip
