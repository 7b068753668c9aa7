"""A slow row with the model of what is expected of it, and how far a cause explains the row by that model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lanewise.checking.cause import Cause
from lanewise.checking.causes.nvlinks import nvlink_hops
from lanewise.checking.expectation_model import ExpectationModel
from lanewise.checking.symptom import RowSymptom
from lanewise.checking.verdict import lower_is_better
from lanewise.errors import LanewiseError
from lanewise.perf.flow import Flow
from lanewise.routes.endpoints import endpoint, memory_node, stated_node
from lanewise.topology.model import Kind


@dataclass(frozen=True, kw_only=True)
class Symptom(RowSymptom):
    """One slow row with the model of what is expected, and what the captures say against the machine."""

    model: ExpectationModel
    machine_causes: tuple[Cause, ...] = ()

    @property
    def flow(self) -> Flow | None:
        """The row's own flow between devices of the system, None where its words are no flow."""
        try:
            flows = self.model.flows(self.row)
        except LanewiseError:
            return None
        name = self.row.flow.replace(" ", "")
        return next((flow for flow in flows if flow.name == name), flows[0])

    @property
    def peer_flow(self) -> Flow | None:
        """The row's own flow if it is one between two GPUs."""
        flow, gpus = self.flow, self.model.system.of_kind(Kind.GPU)
        return flow if flow is not None and flow.src in gpus and flow.dst in gpus else None

    @property
    def devices(self) -> list[str]:
        """The ends of the row's own flow that are devices of the system."""
        flow = self.flow
        return [end for end in (flow.src, flow.dst) if end in self.model.system.devices] if flow else []

    @property
    def over_nvlink(self) -> bool:
        """Whether NVLinks join the two GPUs of the row."""
        return self.peer_flow is not None and bool(nvlink_hops(self.model, self.peer_flow))

    def host_copy(self) -> tuple[str, str, int | None] | None:
        """Host, device and the NUMA node of the memory, of a flow between both: the one it names, else the device's."""
        flow, system = self.flow, self.model.system
        for end, device in ((flow.src, flow.dst), (flow.dst, flow.src)) if flow else ():
            host = end.partition(":")[0]
            if host in system.hosts and device in system.devices:
                node = memory_node(system, endpoint(system, end, device), device, stated_node(system, end))
                return host, device, node
        return None


def weigh(symptom: Symptom, cause: Cause) -> Cause | None:
    """The cause with what the model says of it for this row; None if it would change nothing, or more than was lost."""
    result, expected = symptom.result, symptom.result.expected.value
    if cause.change is None:
        return cause
    predicted = symptom.model.value(result.row, cause.change)
    plain = symptom.model.value(result.row)
    if predicted is None or plain is None or expected is None:
        return cause if cause.devices & symptom.model.route_devices(result.row) else None
    if abs(predicted - plain) < 0.01 * plain:
        return None
    # Where an earlier run or a class says what is expected, the model says by how much that would change.
    predicted *= expected / plain
    explains = result.reached_by(predicted)
    worse = predicted > expected if lower_is_better(result.row.unit) else predicted < expected
    beyond = not explains and result.better_than(predicted)
    return replace(cause, predicted=predicted, explains=explains) if worse and not beyond else None
