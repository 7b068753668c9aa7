"""What the performance model predicts of the rows of a measured machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lanewise.catalog import Catalog
from lanewise.collectives.model import CollectivePoint
from lanewise.errors import Unreachable, error_location
from lanewise.evidence import nccl
from lanewise.evidence.collective_prediction import collective_observation, collective_points
from lanewise.evidence.model import EACH, FIRST, EvidenceMachine, EvidenceRow
from lanewise.perf.flow import Flow
from lanewise.perf.latency import latency
from lanewise.perf.predict import Prediction, predict
from lanewise.perf.resources import weakest
from lanewise.perf.schedules import schedule_named
from lanewise.results.observation import Basis, Observation, Source
from lanewise.routes.classify import path_kind
from lanewise.topology.model import Kind, System

# How many flows run together.
SINGLE, BOTH_WAYS, SEVERAL = "one flow", "both directions", "several flows"
COLLECTIVE = "collective"


@dataclass(frozen=True, slots=True)
class PredictedRow:
    """A row of a machine as predicted: the observation has the measured value as `published`, the kind as `path`.

    `flow_set` is one flow, both directions of one path, several flows, or a collective with the `algorithm` predicted;
    its value None where nothing is predicted.
    """

    machine: str
    row: EvidenceRow
    observation: Observation
    flow_set: str
    algorithm: str = ""

    @property
    def algorithm_right(self) -> bool | None:
        """Whether a collective's algorithm is the one that ran by default, None where the source does not say."""
        stated = self.row.collective.algorithm if self.row.collective is not None else ""
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
    points = collective_points(system, machine.rows, frozenset() if fitted else frozenset({machine.name}))
    return tuple(
        predict_row(machine.name, system, row)
        if row.collective is None
        else _collective_row(machine.name, system, row, points.get(place))
        for place, row in enumerate(machine.rows)
    )


def _collective_row(
    machine: str, system: System, row: EvidenceRow, point: CollectivePoint | str | None
) -> PredictedRow:
    assert row.collective is not None
    observation = collective_observation(machine, system, row, row.collective, point)
    chosen = point.algorithm.value if isinstance(point, CollectivePoint) else ""
    return PredictedRow(machine, row, observation, COLLECTIVE, chosen)


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
        path=rate_kind(system, prediction, flow_set_of(row.flows)), note=slowest.doubt,
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
        blank, value=result.api, basis=Basis(result.basis), limit=result.limit, rests_on=result.rests_on,
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
