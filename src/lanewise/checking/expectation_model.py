"""What measured rows should show on one system, by the model, as described or with one change."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lanewise.checking.block_rows import block_expectation, is_of_blocks
from lanewise.checking.changes import ModelChange
from lanewise.checking.collective_rows import CollectiveModels, collective_point, is_collective
from lanewise.checking.expectation import Expectation, covers, expectation
from lanewise.checking.flow_rates import (
    WIRE_SHARE,
    basis_together,
    crosses_to_far_memory,
    of_all_rates,
    of_rate,
    up_to_the_wire,
)
from lanewise.checking.load_rows import is_of_loader, load_expectation
from lanewise.checking.named.abilities import raw_rate
from lanewise.collectives.model import CollectivePoint
from lanewise.errors import LanewiseError
from lanewise.perf.drives import NO_RATE
from lanewise.perf.flow import Flow, parse_flows
from lanewise.results.observation import Observation
from lanewise.routes.find import route as find_route
from lanewise.routes.model import Via
from lanewise.topology.model import LinkKind, System

if TYPE_CHECKING:
    from lanewise.perf.predict import FlowRate

AS_DESCRIBED = ModelChange(("as described",))


@dataclass
class ExpectationModel:
    """Expected values of rows on one system; `device_of_word` has the device that a word in the results means.

    A row is judged by an IOMMU that does not translate, unless it is stated that it does: one that slows a path is a
    cause, no excuse. `is_iommu_stated` says whether the description settles it.
    `non_peers_by_design`: pairs of devices that the driver calls no peers because of what the machine is built of,
    though their routes would allow it; copies between them are predicted as staged.
    """

    system: System
    device_of_word: Mapping[str, str] = field(default_factory=dict)
    non_peers_by_design: frozenset[frozenset[str]] = frozenset()
    collectives: CollectiveModels = field(default_factory=CollectiveModels)
    is_iommu_stated: bool = field(init=False)
    _systems: dict[tuple[str, ...], System] = field(default_factory=dict)
    _rates: dict[tuple[object, ...], tuple[FlowRate, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.is_iommu_stated = self.system.policies.iommu is not None
        if not self.is_iommu_stated:
            self.system = self.system.with_iommu("off")

    def expect(self, row: Observation, change: ModelChange = AS_DESCRIBED) -> Expectation:
        """The model's value of a row, with that change; unknown, with the reason, where it has none."""
        try:
            return self._predict_row(row, change)
        except LanewiseError as error:
            return expectation(row, note=error.cause)

    def tells(self, row: Observation) -> bool:
        """Whether more than a ceiling is predicted of a row."""
        predicted = self.expect(row)
        return predicted.expected.value is not None and not predicted.ceiling

    def value(self, row: Observation, change: ModelChange = AS_DESCRIBED) -> float | None:
        """The same in SI alone; None where the model has none."""
        return self.expect(row, change).expected.value

    def flows(self, row: Observation) -> tuple[Flow, ...]:
        """All flows that ran together, between devices of the system; FormatError if the row's words are no flows."""
        # NVIDIA's sample copies through memory where a pair cannot be peers: the requested method is judged.
        p2p = row.how.get("p2p") != "off" or "P2P=Enabled" in row.scenario
        p2p = p2p and row.how.get("mode") != "bounce"
        parsed = parse_flows(row.how.get("flows") or row.flow, p2p)
        return tuple(self._between_devices(flow) for flow in parsed)

    def _between_devices(self, flow: Flow) -> Flow:
        src, dst = self.device(flow.src), self.device(flow.dst)
        return replace(flow, src=src, dst=dst, p2p=flow.p2p and frozenset((src, dst)) not in self.non_peers_by_design)

    def route_devices(self, row: Observation) -> frozenset[str]:
        """The devices that a row's own flow crosses, ends included; empty where the model knows no route."""
        try:
            flows = self.flows(row)
            own = [flow for flow in flows if flow.name == self._own(row)] or list(flows)
            routes = [find_route(self.system, flow.src, flow.dst, flow.p2p) for flow in own]
            return frozenset(name for route in routes for name in route.nodes)
        except LanewiseError:
            return frozenset()

    def device(self, word: str) -> str:
        """The device that a word of the results means."""
        return word if word in self.system.devices else self.device_of_word.get(word, word)

    def _own(self, row: Observation) -> str:
        source, arrow, target = row.flow.partition("->")
        return f"{self.device(source.strip())}{arrow}{self.device(target.strip())}"

    def _predict_row(self, row: Observation, change: ModelChange) -> Expectation:
        if row.metric == "latency":
            return self._latency(row, change)
        if is_collective(row):
            point = collective_point(self._changed(change), row, self.device, self.collectives)
            return self._ring_up_to_the_wire(_of_collective(point, row), row)
        if is_of_blocks(row):
            changed = self._changed(change)
            together = [change.change_flow(changed, flow) for flow in self.flows(row)]
            return expectation(row, **block_expectation(changed, row, together, self._own(row)))
        if is_of_loader(row) and row.metric == "total":
            predicted = expectation(row, **load_expectation(self._changed(change), row, self.flows(row)))
            return replace(predicted, ceiling=predicted.expected.note if NO_RATE in predicted.expected.note else "")
        if not covers(row):
            return expectation(row, note=f"the model has no {row.metric} of such a copy; compare with an earlier run")
        flows = self.flows(row)
        rates = self._rates_of(flows, change)
        if row.metric == "total":
            total = replace(of_all_rates(rates, row), ceiling=next(filter(None, map(self._ceiling, rates)), ""))
            if basis_together(rates) == "several flows":
                return total
            return up_to_the_wire(self._down_to_one_way(total, rates, change), rates)
        names = [flow.name for flow in flows]
        if self._own(row) not in names:
            note = f"{row.flow} is not among the flows of its scenario: {', '.join(names)}"
            return expectation(row, note=note)
        own = rates[names.index(self._own(row))]
        expected = replace(of_rate(own, row, basis_together(rates)), ceiling=self._ceiling(own))
        return up_to_the_wire(expected, rates) if len(rates) == 1 else expected

    def _ring_up_to_the_wire(self, expectation: Expectation, row: Observation) -> Expectation:
        """A ring of GPUs that PCIe alone joins is too fast only above what their links carry.

        Whether NCCL stages it in host memory depends on settings that nobody describes.
        """
        gpus, expected = [self.device(name) for name in re.findall(r"\bgpu\d+\b", row.flow)], expectation.expected
        parts = [self.system.part(gpu) for gpu in gpus if gpu in self.system.devices]
        nvlinks = any(link.kind is LinkKind.NVLINK for gpu in gpus for link in self.system.links_at(gpu))
        wires = [raw_rate(int(part.number("pcie.gen") or 0), int(part.number("pcie.lanes") or 0))
                 for part in parts if part is not None]  # fmt: skip
        if nvlinks or not wires or len(wires) < len(gpus) or expectation.tolerance is None or expected.high is None:
            return expectation
        most = WIRE_SHARE * min(wires) / (1 + expectation.tolerance.relative)
        most = most if math.isfinite(most) else 0.0
        return replace(expectation, expected=replace(expected, high=max(expected.high, most)))

    def _down_to_one_way(self, total: Expectation, rates: tuple[FlowRate, ...], change: ModelChange) -> Expectation:
        """Both ways to host memory behind a socket link need not carry more than one way: MI100 on Milan do not."""
        if not all(crosses_to_far_memory(self.system, rate) for rate in rates) or total.expected.low is None:
            return total
        one_way = min(self._rates_of((rate.flow,), change)[0].low for rate in rates)
        return replace(total, expected=replace(total.expected, low=min(total.expected.low, one_way)))

    @staticmethod
    def _ceiling(rate: FlowRate) -> str:
        """What is not known of a drive, a card or a link, so that the rate is only what cannot be exceeded; else ''."""
        return rate.doubt if NO_RATE in rate.doubt or "the speed of link" in rate.doubt else ""

    def _changed(self, change: ModelChange) -> System:
        if change.key not in self._systems:
            self._systems[change.key] = change.change_system(self.system)
        return self._systems[change.key]

    def _rates_of(self, flows: tuple[Flow, ...], change: ModelChange) -> tuple[FlowRate, ...]:
        key = (change.key, flows)
        if key not in self._rates:
            from lanewise.perf.predict import predict  # here: only described machines need it

            system = self._changed(change)
            own = [change.change_flow(system, flow) for flow in flows]
            self._rates[key] = predict(system, [*own, *change.concurrently]).rates[: len(own)]
        return self._rates[key]

    def _latency(self, row: Observation, change: ModelChange) -> Expectation:
        from lanewise.perf.latency import latency

        system = self._changed(change)
        flow = change.change_flow(system, self.flows(row)[0])
        result = latency(system, flow.src, flow.dst, flow.p2p)
        if result.api is None or result.basis == "typical":  # of other GPUs, within a factor of two and more
            return expectation(row, note=result.note or "nobody measured small copies of such a GPU")
        if flow.p2p and result.route.via is Via.STAGED and (row.value or 0.0) < (result.low or 0.0):
            return expectation(row, note="too short for a copy through host memory: these GPUs reach each other")
        return expectation(row, basis="latency", value=result.api, limit=result.limit, rests_on=result.rests_on)


def _of_collective(point: CollectivePoint | str, row: Observation) -> Expectation:
    if isinstance(point, str):
        return expectation(row, note=point)
    limit = f"{point.algorithm} {point.protocol}, {point.limit}"
    return expectation(
        row, basis="collective", value=point.bus_bandwidth, interval=(point.low, point.high), limit=limit,
        rests_on=("NCCL's choice over the described links, rates and ramps of other machines",),
    )  # fmt: skip
