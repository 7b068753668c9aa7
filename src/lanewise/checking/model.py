"""What the performance model expects of a measured row, on the system as described or with something changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lanewise.checking.change import Change
from lanewise.checking.verdict import Expected
from lanewise.errors import LanewiseError
from lanewise.perf.flow import Flow, parse_flows
from lanewise.perf.flow_demand import ENGINE_DOUBT
from lanewise.perf.latency import latency
from lanewise.perf.predict import FlowRate, predict
from lanewise.results.observation import Observation
from lanewise.routes.find import route as find_route
from lanewise.routes.model import Via
from lanewise.topology.model import System

# A launch costs about 10 us: below this size (B) it is more than 3 % of a copy at 50 GB/s. Smaller I/O and messages
# than these tell how many of them a second there are, not what the path carries.
LEAST_COPY = 16 * 2**20
LEAST = {"storage": 128 * 2**10, "network": 64 * 2**10}
# What copies reach of a link where no figure of their engine is known (perf.flow_demand.ENGINE_DOUBT).
ENGINE_SHARE = 0.84
HOST_MEMORY = "host memory"
AS_DESCRIBED = Change(("as described",))
_RATES = ("goodput", "total", "fit_bandwidth")
_METRICS = (*_RATES, "latency")
_SHORT = ("goodput", "total")


@dataclass
class ExpectationModel:
    """Expected values of rows on one system; `names` has the device of a word in the results.

    The pairs `apart` are no peers by the machine's design, though routes alone would let them.
    """

    system: System
    names: Mapping[str, str] = field(default_factory=dict)
    apart: frozenset[frozenset[str]] = frozenset()
    _systems: dict[tuple[str, ...], System] = field(default_factory=dict)
    _rates: dict[tuple[object, ...], tuple[FlowRate, ...]] = field(default_factory=dict)

    def judges(self, row: Observation) -> bool:
        """Whether the model has such a value at all: long copies and I/O, and the latency of small copies.

        Not of copies within one device or the memory of one host, and not of the page cache.
        """
        source, _, target = row.flow.partition("->")
        # Our own storage probe reads from the page cache on purpose, beside the other modes.
        cache = row.how.get("mode") == "cached" and "tool" not in row.how
        if source.strip() == target.strip() or row.path == HOST_MEMORY or cache:
            return False
        # What could not be measured at all would not have been at any size.
        return row.metric in _METRICS and (row.value is None or not too_short(row))

    def expect(self, row: Observation) -> Expected:
        """The model's value of a row; unknown, with the reason, where it has none."""
        try:
            return self._expect(row, AS_DESCRIBED)
        except LanewiseError as error:
            return Expected(None, note=error.cause)

    def with_change(self, row: Observation, change: Change) -> float | None:
        """The row's value in SI if that were so; None where the model has none."""
        try:
            return self._expect(row, change).value
        except LanewiseError:
            return None

    def flows(self, row: Observation) -> tuple[Flow, ...]:
        """All flows that ran together, between devices of the system; FormatError if the row's words are no flows."""
        # The sample copies through memory where a pair cannot be peers: judged is what was asked for.
        p2p = row.how.get("p2p") != "off" or "P2P=Enabled" in row.scenario
        p2p = p2p and row.how.get("mode") != "bounce"
        parsed = parse_flows(row.how.get("flows") or row.flow, p2p)
        return tuple(self._between_devices(flow) for flow in parsed)

    def _between_devices(self, flow: Flow) -> Flow:
        src, dst = self._device(flow.src), self._device(flow.dst)
        return replace(flow, src=src, dst=dst, p2p=flow.p2p and frozenset((src, dst)) not in self.apart)

    def touched(self, row: Observation) -> frozenset[str]:
        """The devices that a row's own flow crosses, ends included; empty where the model knows no route."""
        try:
            flows = self.flows(row)
            own = [flow for flow in flows if flow.name == self._own(row)] or list(flows)
            routes = [find_route(self.system, flow.src, flow.dst, flow.p2p) for flow in own]
            return frozenset(name for route in routes for name in route.nodes)
        except LanewiseError:
            return frozenset()

    def _device(self, word: str) -> str:
        return word if word in self.system.devices else self.names.get(word, word)

    def _own(self, row: Observation) -> str:
        source, arrow, target = row.flow.partition("->")
        return f"{self._device(source.strip())}{arrow}{self._device(target.strip())}"

    def _expect(self, row: Observation, change: Change) -> Expected:
        if row.metric == "latency":
            return self._latency(row, change)
        if not self.judges(row):
            return Expected(None, note=f"the model has no {row.metric} of such a copy; compare with an earlier run")
        flows = self.flows(row)
        rates = self._predict(change, flows)
        if row.metric == "total":
            return _total(rates, row)
        names = [flow.name for flow in flows]
        if self._own(row) not in names:
            return Expected(None, note=f"{row.flow} is not among the flows of its scenario: {', '.join(names)}")
        return _expected(rates[names.index(self._own(row))], row)

    def _changed(self, change: Change) -> System:
        if change.key not in self._systems:
            self._systems[change.key] = change.system(self.system)
        return self._systems[change.key]

    def _predict(self, change: Change, flows: tuple[Flow, ...]) -> tuple[FlowRate, ...]:
        key = (change.key, flows)
        if key not in self._rates:
            system = self._changed(change)
            self._rates[key] = predict(system, [change.flow(system, flow) for flow in flows]).flows
        return self._rates[key]

    def _latency(self, row: Observation, change: Change) -> Expected:
        system = self._changed(change)
        flow = change.flow(system, self.flows(row)[0])
        latency_result = latency(system, flow.src, flow.dst, flow.p2p)
        if latency_result.api is None:
            return Expected(None, note=latency_result.note)
        return Expected(
            latency_result.api,
            latency_result.api,
            latency_result.api,
            "latency",
            latency_result.limit,
            latency_result.rests_on,
        )


def too_short(row: Observation) -> bool:
    """Whether a rate is of copies or I/O so short that they cost more to start than to carry."""
    least = LEAST.get(row.path, LEAST_COPY)
    return row.metric in _SHORT and row.path != HOST_MEMORY and row.settings.get("bytes", least) < least


def nothing_described(row: Observation) -> Expected:
    """Where neither a description nor dumps say what the machine is, nothing is expected."""
    return Expected(None, note="nothing says what the machine is; name it with --system, or its dumps with --from")


def _expected(rate: FlowRate, row: Observation) -> Expected:
    low = rate.low * (ENGINE_SHARE if rate.doubt == ENGINE_DOUBT else 1.0)
    if not math.isfinite(rate.rate):
        return Expected(None, note=f"nothing is known that would limit {row.flow}")
    note = rate.doubt
    return Expected(rate.rate, min(low, rate.rate), rate.high, _basis(rate, row), rate.limit, rate.rests_on, note)


def _total(rates: tuple[FlowRate, ...], row: Observation) -> Expected:
    parts = [_expected(rate, row) for rate in rates]
    order = ("physics", "calibrated", "carried over", "fitted", "SM copy", "staged")
    return Expected(
        value=math.fsum(part.value or 0.0 for part in parts),
        low=math.fsum(part.low for part in parts),
        high=math.fsum(part.high for part in parts),
        basis=max((part.basis for part in parts), key=order.index),
        limit=" and ".join(dict.fromkeys(part.limit for part in parts)),
        rests_on=tuple(dict.fromkeys(text for part in parts for text in part.rests_on)),
        note="; ".join(dict.fromkeys(part.note for part in parts if part.note)),
    )


def _basis(rate: FlowRate, row: Observation) -> str:
    """The row of the table of tolerances that a prediction belongs to."""
    if any(route.via is Via.STAGED for route in rate.routes):
        return "staged"
    if row.how.get("engine") == "SM":
        return "SM copy"
    carried = any("carried over" in text or "scaled by" in text for text in rate.rests_on)
    return "carried over" if carried and rate.basis == "calibrated" else rate.basis
