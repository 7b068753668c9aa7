"""What a measured row should show, with its tolerance: by the model, an earlier run, or machines of one class."""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from lanewise.checking.block_rows import block_expectation, is_of_blocks
from lanewise.checking.changes import ModelChange
from lanewise.checking.collective_rows import CollectiveModels, collective_point, is_collective
from lanewise.checking.load_rows import is_of_loader, is_warm_load, load_expectation
from lanewise.checking.named.abilities import raw_rate
from lanewise.checking.tolerances import TOLERANCES, Tolerance
from lanewise.collectives.model import CollectivePoint
from lanewise.errors import InputError, LanewiseError
from lanewise.perf.copy_engines import ENGINE_DOUBT
from lanewise.perf.drives import NO_RATE
from lanewise.perf.flow import Flow, parse_flows
from lanewise.results.estimate import robust_deviation
from lanewise.results.match import CONTEXT, METHOD, Identity, identity
from lanewise.results.observation import Observation, Source
from lanewise.routes.find import route as find_route
from lanewise.routes.model import LinkDirection, Route, Via
from lanewise.topology.model import Kind, LinkKind, System

if TYPE_CHECKING:
    from lanewise.perf.predict import FlowRate

# A launch costs about 10 us: below this size (B) it is more than 3 % of a copy at 50 GB/s. Smaller I/O and messages
# than these tell how many of them a second there are, not what the path carries.
LEAST_COPY = 16 * 2**20
# Times one copy without one before it: 34 of 55 GB/s of an idle H100 (cuda-samples, simpleMultiCopy.cu).
COLD = "simpleMultiCopy"
LEAST = {"storage": 128 * 2**10, "network": 64 * 2**10}
# What copies reach of a link where no figure of their engine is known (perf.copy_engines.ENGINE_DOUBT).
ENGINE_SHARE = 0.84
# Medians of repeated runs lie within 1 to 2 % of each other (H200); forums post single ones.
NOISE = 0.03
# Copies through host memory may be this much below their interval: nobody says on which node the driver's buffer is. Of
# 108 rates of healthy machines none is below; the nearest is a P100's, 9 % above.
STAGED_NOISE = 0.10
# What a root complex forwards between peers was measured on few hosts: others give from 0.82 of it.
ROOT_COMPLEX_SHARE = 0.9
# Headers of 24 B a packet of 512 B: no copy gets more of a link.
WIRE_SHARE = 0.955
HOST_MEMORY = "host memory"
AS_DESCRIBED = ModelChange(("as described",))
_RATES = ("goodput", "total", "fit_bandwidth")
_METRICS = (*_RATES, "latency")
NOTHING_DESCRIBED = "nothing says what the machine is; name it with --system, or its dumps with --from"
_SHORT = ("goodput", "total")
LEAST_MACHINES = 3
# A machine's name and memory nodes are its own, and other tools say no path.
_IGNORED = (*CONTEXT, "path", *(key for key in METHOD if key not in ("flows", "engine", "p2p", "mode", "phase")))


@dataclass(frozen=True, slots=True)
class Expectation:
    """A measured row as predicted, with the tolerance for its basis; without a value no tolerance, and a note why.

    `ceiling`: what is not known, where the value is only the most that a row can show; down to a quarter of it a row is
    not judged then.
    """

    expected: Observation
    tolerance: Tolerance | None
    ceiling: str = ""


# What tells the expectation of a row: the model, or earlier runs.
Expect: TypeAlias = Callable[[Observation], Expectation]


def expectation(
    row: Observation, *, basis: str = "", value: float | None = None, interval: tuple[float, float] | None = None,
    limit: str = "", rests_on: tuple[str, ...] = (), note: str = "",
) -> Expectation:  # fmt: skip
    """A row's expected value (SI; None: unknown) with its interval, and the tolerance for that basis."""
    low, high = interval if interval is not None else (value, value)
    expected = Observation(
        row.scenario, row.flow, row.metric, value, row.display_unit, Source.PREDICTED, settings=row.settings,
        limit=limit, rests_on=rests_on, low=low, high=high, path=row.path, note=note,
    )  # fmt: skip
    return Expectation(expected, None if value is None else TOLERANCES[basis])


@dataclass
class ExpectationModel:
    """Expected values of rows on one system; `device_of_word` has the device that a word in the results means.

    `non_peers_by_design`: pairs of devices that the driver calls no peers because of what the machine is built of,
    though their routes would allow it; copies between them are predicted as staged.
    """

    system: System
    device_of_word: Mapping[str, str] = field(default_factory=dict)
    non_peers_by_design: frozenset[frozenset[str]] = frozenset()
    collectives: CollectiveModels = field(default_factory=CollectiveModels)
    _systems: dict[tuple[str, ...], System] = field(default_factory=dict)
    _rates: dict[tuple[object, ...], tuple[FlowRate, ...]] = field(default_factory=dict)

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
            total = replace(_total(rates, row), ceiling=next(filter(None, map(self._ceiling, rates)), ""))
            if _together(rates) == "several flows":
                return total
            return _up_to_the_wire(self._down_to_one_way(total, rates, change), rates)
        names = [flow.name for flow in flows]
        if self._own(row) not in names:
            note = f"{row.flow} is not among the flows of its scenario: {', '.join(names)}"
            return expectation(row, note=note)
        own = rates[names.index(self._own(row))]
        expected = replace(_of_rate(own, row, _together(rates)), ceiling=self._ceiling(own))
        return _up_to_the_wire(expected, rates) if len(rates) == 1 else expected

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
        if not all(_to_far_memory(self.system, rate) for rate in rates) or total.expected.low is None:
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


def covers(row: Observation) -> bool:
    """Whether the model predicts such a value: of long copies and I/O, and the latency of small copies.

    Not of copies within one device or the memory of one host, and not of the page cache.
    """
    source, _, target = row.flow.partition("->")
    # Our own storage probe reads from the page cache on purpose, in addition to the other modes.
    cache = (row.how.get("mode") == "cached" and "tool" not in row.how) or is_warm_load(row)
    if source.strip() == target.strip() or row.path == HOST_MEMORY or cache:
        return False
    # What could not be measured at all would not have been at any size.
    return row.metric in _METRICS and (row.value is None or not too_short(row))


def too_short(row: Observation) -> bool:
    """Whether a rate is of copies or I/O so short that they cost more to start than to carry."""
    least = LEAST.get(row.path, LEAST_COPY)
    if row.how.get("tool") == COLD:
        return True
    return row.metric in _SHORT and row.path != HOST_MEMORY and row.settings.get("bytes", least) < least


def fine_interval(rate: FlowRate) -> tuple[float, float]:
    """The rates in B/s that a measurement of a predicted flow may show and be judged fine."""
    relative = TOLERANCES[_basis(rate)].relative
    low, high = _interval(rate, relative)
    return low * (1 - relative), high * (1 + relative)


def _interval(rate: FlowRate, relative: float) -> tuple[float, float]:
    """The ends that a tolerance of `relative` widens to what is fine: the prediction's own interval and its noise, or
    the rate with that tolerance, whichever is wider.
    """
    # Of a link whose rate is stated outright no copy was measured either.
    no_engine = rate.doubt == ENGINE_DOUBT or "stated rate" in rate.limit
    share = ENGINE_SHARE if no_engine else 1.0
    forwarded = any(_between_root_ports(route) for route in rate.routes)
    share = min(share, ROOT_COMPLEX_SHARE) if forwarded else share
    noise = STAGED_NOISE if _staged(rate) else 1 - ROOT_COMPLEX_SHARE if forwarded else NOISE
    low = min(rate.rate * share, rate.low * (1 - noise) / (1 - relative))
    return low, max(rate.rate, rate.high * (1 + NOISE) / (1 + relative))


def _together(rates: tuple[FlowRate, ...]) -> str:
    """The basis that takes the place of a flow's own where others run at the same time; empty for a lone flow."""
    pairs = {frozenset((rate.flow.src, rate.flow.dst)) for rate in rates}
    return "" if len(rates) < 2 else "both ways" if len(pairs) == 1 else "several flows"


def _of_rate(rate: FlowRate, row: Observation, together: str = "") -> Expectation:
    basis = _basis(rate)
    # perftest sends nothing but payload; NFS and libraries have messages and copies of their own on the line.
    if basis != "staged" and row.how.get("tool") != "perftest" and _over(rate, LinkKind.NETWORK):
        basis = "line"
    elif basis not in ("staged", "planning"):
        basis = {"SM": "SM copy", "CPU": "CPU copy"}.get(row.how.get("engine", ""), together or basis)
    interval = _interval(rate, TOLERANCES[basis].relative)
    return expectation(
        row, basis=basis, value=rate.rate, interval=interval, limit=rate.limit, rests_on=rate.rests_on,
        note=rate.doubt,
    )  # fmt: skip


def _up_to_the_wire(expectation: Expectation, rates: tuple[FlowRate, ...]) -> Expectation:
    """A lone copy, or the sum of both ways of a pair, is too fast only above what the wires carry.

    Other GPUs may be better than those measured.
    """
    expected, tolerance = expectation.expected, expectation.tolerance
    wires = [_pcie_wires(rate) for rate in rates]
    if not all(wires) or tolerance is None or expected.high is None:
        return expectation
    # Both ways of a copy through host memory may cross one wire in the same direction: it carries their sum.
    shared = [rate for direction, rate in wires[0].items() if all(direction in other for other in wires)]
    carried = min([*shared, math.fsum(min(each.values()) for each in wires)])
    highest = max(expected.high, WIRE_SHARE * carried / (1 + tolerance.relative))
    return replace(expectation, expected=replace(expected, high=highest))


def _pcie_wires(rate: FlowRate) -> dict[LinkDirection, float]:
    """What each PCIe link that a flow crosses carries in its direction, B/s; links of unknown width are left out."""
    hops = [hop for route in rate.routes for hop in route.hops if hop.link.kind is LinkKind.PCIE]
    return {
        hop.direction: hop.link.rate or raw_rate(hop.link.gen or 0, hop.link.lanes or 0)
        for hop in hops if hop.link.rate or hop.link.lanes
    }  # fmt: skip


def _total(rates: tuple[FlowRate, ...], row: Observation) -> Expectation:
    parts = [_of_rate(rate, row, _together(rates)) for rate in rates]
    order = (
        "physics", "calibrated", "carried over", "typical", "fitted", "SM copy", "both ways", "several flows",
        "CPU copy", "planning", "line", "staged",
    )  # fmt: skip
    bases = [part.tolerance.basis for part in parts if part.tolerance is not None]
    expected = [part.expected for part in parts]
    low, high = math.fsum(part.low or 0.0 for part in expected), math.fsum(part.high or 0.0 for part in expected)
    return expectation(
        row, basis=max(bases, key=order.index), value=math.fsum(rate.rate for rate in rates), interval=(low, high),
        limit=" and ".join(dict.fromkeys(part.limit for part in expected)),
        rests_on=tuple(dict.fromkeys(text for part in expected for text in part.rests_on)),
        note="; ".join(dict.fromkeys(part.note for part in expected if part.note)),
    )  # fmt: skip


def _basis(rate: FlowRate) -> str:
    """The row of the table of tolerances that a prediction belongs to."""
    if _staged(rate):
        return "staged"
    carried = any("carried over" in text or "scaled by" in text for text in rate.rests_on)
    return "carried over" if carried and rate.basis == "calibrated" else rate.basis


def _over(rate: FlowRate, kind: LinkKind) -> bool:
    return any(hop.link.kind is kind for route in rate.routes for hop in route.hops)


def _to_far_memory(system: System, rate: FlowRate) -> bool:
    gpus = {end for end in (rate.flow.src, rate.flow.dst) if end in system.of_kind(Kind.GPU)}
    return len(gpus) == 1 and not _staged(rate) and _over(rate, LinkKind.SOCKET)


def _between_root_ports(route: Route) -> bool:
    """Whether a route goes up from one device to a root complex and down to another, or over sockets (POWER9)."""
    pcie = route.via is Via.PCIE and route.cls in ("PHB", "NODE", "SYS")
    through = route.hops and (pcie or any(hop.link.kind is LinkKind.SOCKET for hop in route.hops))
    return bool(through) and not route.hops[0].down and route.hops[-1].down


def _staged(rate: FlowRate) -> bool:
    return any(route.via is Via.STAGED for route in rate.routes)


def nothing_described(row: Observation) -> Expectation:
    """Where neither a description nor dumps say what the machine is, nothing is expected."""
    return expectation(row, note=NOTHING_DESCRIBED)


def expect_earlier(machines: Sequence[tuple[str, Iterable[Observation]]]) -> Expect:
    """Expects the rows of one earlier run, or the medians of a class: the rows of each machine by its file's name.

    InputError for two machines, which are no class.
    """
    if len(machines) == 2:
        raise InputError(
            "two machines do not say which of them is right",
            hint=f"give one run to compare with, or {LEAST_MACHINES} and more of machines of one class",
        )
    values: dict[Identity, list[float]] = defaultdict(list)
    for _, rows in machines:
        for key, value in {identity(row, _IGNORED): row.value for row in rows if row.value is not None}.items():
            values[key].append(value)
    names = tuple(name for name, _ in machines)

    def expect(row: Observation) -> Expectation:
        own = values.get(identity(row, _IGNORED), [])
        if len(names) == 1:
            if not own:
                return expectation(row, note=f"{names[0]} has no such row")
            return expectation(row, basis="earlier run", value=own[0], rests_on=names)
        if len(own) < LEAST_MACHINES:
            return expectation(row, note=f"{len(own)} of {len(names)} machines have such a row; a class needs 3")
        middle, wide = statistics.median(own), 3 * robust_deviation(own)
        rests_on = (f"median of {len(own)} machines, 3 robust deviations = {100 * wide / middle:.1f} %",)
        interval = (middle - wide, middle + wide)
        return expectation(row, basis="class", value=middle, interval=interval, rests_on=rests_on)

    return expect
