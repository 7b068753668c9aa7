"""What the performance model predicts of the rows of a measured machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lanewise.catalog import Catalog
from lanewise.errors import Unreachable, error_location
from lanewise.evidence import nccl
from lanewise.evidence.model import EACH, FIRST, EvidenceMachine, EvidenceRow
from lanewise.evidence.traffic_prediction import TrafficModel
from lanewise.perf.flow import Flow
from lanewise.perf.latency import latency
from lanewise.perf.predict import Prediction, predict
from lanewise.perf.resources import weakest
from lanewise.perf.schedules import schedule_named
from lanewise.results.observation import Basis, Observation, Source
from lanewise.results.traffic import CollectiveMessage, Traffic
from lanewise.routes.classify import path_kind
from lanewise.topology.model import Kind, System

# How many flows run together.
SINGLE, BOTH_WAYS, SEVERAL = "one flow", "both directions", "several flows"
COLLECTIVE, BLOCKS_OR_LOAD = "collective", "blocks or load"


@dataclass(frozen=True, slots=True)
class PredictedRow:
    """A row of a machine as predicted: the observation has the measured value as `published`, the kind as `path`.

    `flow_set` is one flow, both directions of one path, several flows, a collective with the `algorithm` predicted, or
    blocks or a load; its value is None where nothing is predicted.
    """

    machine: str
    row: EvidenceRow
    observation: Observation
    flow_set: str
    algorithm: str = ""

    @property
    def algorithm_right(self) -> bool | None:
        """Whether a collective's algorithm is the one that ran by default, None where the source does not say."""
        stated = self.row.algorithm
        return self.algorithm == stated if stated and self.algorithm else None

    @property
    def error(self) -> float | None:
        """(predicted - measured) / measured, None where nothing is predicted."""
        value = self.observation.value
        return None if value is None else value / self.row.value - 1

    @property
    def rival_error(self) -> float | None:
        """The error of NCCL's constants, None where they say nothing of the row."""
        value = self.observation.comparisons.get(nccl.NAME)
        return None if value is None else value / self.row.value - 1

    @property
    def covered(self) -> bool | None:
        """Whether the predicted interval holds the measured value, None where nothing is predicted."""
        seen = self.observation
        if seen.value is None:
            return None
        low, high = (seen.value if bound is None else bound for bound in (seen.low, seen.high))
        return low <= self.row.value <= high


def predict_machine(machine: EvidenceMachine, catalog: Catalog, fitted: bool = False) -> tuple[PredictedRow, ...]:
    """All rows of the machine on the parts of `catalog`; InputError where its description or a flow is wrong.

    Unless `fitted`, nothing that was learned of its own collectives is used.
    """
    system = machine.system(catalog)
    model = TrafficModel(system, frozenset() if fitted else machine.names)
    return tuple(
        predict_row(machine.name, system, row)
        if row.traffic is None
        else predict_traffic(machine.name, model, row, row.traffic)
        for row in machine.rows
    )


def predict_traffic(machine: str, model: TrafficModel, row: EvidenceRow, traffic: Traffic) -> PredictedRow:
    """One row of traffic; UnknownName or InputError with the row's line for what its machine does not have."""
    is_collective = isinstance(traffic, CollectiveMessage)
    metric = "time" if row.latency else "busbw" if is_collective else "goodput"
    small = "us" if is_collective or row.value < 0.1 else "s"
    blank = Observation(
        scenario=row.path, flow=row.text, metric=metric, value=None,
        display_unit=small if row.latency else "GB/s", source=Source.PREDICTED, system=machine, published=row.value,
        note=row.skip,
    )  # fmt: skip
    flow_set = COLLECTIVE if is_collective else BLOCKS_OR_LOAD
    if row.skip:
        return PredictedRow(machine, row, blank, flow_set)
    with error_location(row.location):
        try:
            predicted, algorithm = model.predict(traffic, blank)
        except Unreachable as error:
            return PredictedRow(machine, row, replace(blank, note=f"no route: {error.cause}"), flow_set)
    if row.algorithm not in ("", algorithm):
        predicted = replace(predicted, note=f"{predicted.note}, ran {row.algorithm}")
    return PredictedRow(machine, row, predicted, flow_set, algorithm)


def predict_row(machine: str, system: System, row: EvidenceRow) -> PredictedRow:
    """One row on its machine; UnknownName with the row's line for a device that the machine does not have."""
    unit = "us" if row.latency else "GB/s"
    blank = Observation(
        scenario=row.path, flow=row.text, metric="latency" if row.latency else f"goodput, {row.of}", value=None,
        display_unit=unit, source=Source.PREDICTED, system=machine, published=row.value, note=row.skip,
    )  # fmt: skip
    flow_set = flow_set_of(row.flows)
    if row.skip:
        return PredictedRow(machine, row, blank, flow_set)
    with error_location(row.location):
        try:
            predicted = _latency(system, row, blank) if row.latency else _rate(system, row, blank)
        except Unreachable as error:
            predicted = replace(blank, note=f"no route: {error.cause}")
    return PredictedRow(machine, row, predicted, flow_set)


def flow_set_of(flows: Sequence[Flow]) -> str:
    """One flow, both directions of one path, or several flows."""
    if len(flows) <= 1:
        return SINGLE
    a, b = flows[0], flows[1]
    return BOTH_WAYS if len(flows) == 2 and (a.src, a.dst) == (b.dst, b.src) else SEVERAL


def _rate(system: System, row: EvidenceRow, blank: Observation) -> Observation:
    endless = [replace(flow, start=0.0) for flow in row.flows]
    prediction = predict(system, endless, schedule_named(row.schedule))
    flows = prediction.rates[:1] if row.of == FIRST else prediction.rates
    divisor = len(flows) if row.of == EACH else 1
    ends = (prediction.total_low, prediction.total_high) if row.of != FIRST else (flows[0].low, flows[0].high)
    slowest = min(flows, key=lambda flow: flow.rate)
    return replace(
        blank, value=sum(flow.rate for flow in flows) / divisor,
        low=ends[0] / divisor, high=ends[1] / divisor,
        basis=Basis(weakest([flow.basis for flow in flows])), limit=slowest.limit, rests_on=slowest.rests_on,
        path=rate_kind(system, prediction, flow_set_of(row.flows)),
        note="; ".join(filter(None, (prediction.why_unknown, slowest.doubt))),
        comparisons=_rival(system, prediction, row),
    )  # fmt: skip


def _rival(system: System, prediction: Prediction, row: EvidenceRow) -> dict[str, float]:
    rates = nccl.nccl_rates(system, [rate.routes[0] for rate in prediction.rates])
    if rates is None:
        return {}
    counted = rates[:1] if row.of == FIRST else rates
    return {nccl.NAME: sum(counted) / (len(counted) if row.of == EACH else 1)}


def _latency(system: System, row: EvidenceRow, blank: Observation) -> Observation:
    flow = row.flows[0]
    result = latency(system, flow.src, flow.dst, flow.p2p)
    return replace(
        blank, value=result.api, low=result.low, high=result.high, basis=Basis(result.basis), limit=result.limit,
        rests_on=result.rests_on,
        path=f"small copy, {path_kind(system, result.route)}", note=result.note,
    )  # fmt: skip


def rate_kind(system: System, prediction: Prediction, flow_set: str) -> str:
    """The kind of path of flows that run together: 'peer PHB', 'peer PHB, both directions', 'NVLink, several flows'."""
    kinds = {_flow_kind(system, rate.routes[0].src, rate.routes[0].dst, path_kind(system, rate.routes[0]))
             for rate in prediction.rates}  # fmt: skip
    if kinds == {"host to device", "device to host"}:
        kind = "host and device"
    else:
        kind = kinds.pop() if len(kinds) == 1 else "mixed paths"
    return kind if flow_set == SINGLE else f"{kind}, {flow_set}"


def _flow_kind(system: System, src: str, dst: str, kind: str) -> str:
    if kind not in ("network", "storage") and Kind.NIC in (system.device(src).kind, system.device(dst).kind):
        return "network card"
    if kind.startswith("peer NV"):
        return "NVLink"
    return "staged" if kind == "peer, staged" else kind
