"""Why a row is not what it should be: each cause a small function over a symptom, judged by the model.

`Cause.rank` orders the causes of a slow row. A cause without evidence is tried only where none with evidence explains
the value, and only counts if it would explain it and no fine row speaks against it.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lanewise import units
from lanewise.checking import changes
from lanewise.checking.cause import Cause, slow_link, speed
from lanewise.checking.causes.host_buffers import empty_channels, far_buffers
from lanewise.checking.causes.networks import NETWORK_WITH_A_MODEL
from lanewise.checking.causes.nvlinks import nvlink_hops, some_nvlinks, unused_nvlinks
from lanewise.checking.causes.posted import stated_causes
from lanewise.checking.causes.rows import WITH_A_MODEL_TOO
from lanewise.checking.expectation import ExpectationModel
from lanewise.checking.named.abilities import lesser_links
from lanewise.checking.references.siblings import kind_of_path
from lanewise.checking.symptom import RowSymptom
from lanewise.checking.verdict import Verdict, lower_is_better
from lanewise.errors import LanewiseError
from lanewise.perf.flow import Flow
from lanewise.results.estimate import robust_deviation
from lanewise.routes.endpoints import endpoint, memory_node, stated_node
from lanewise.routes.find import route
from lanewise.routes.model import Via
from lanewise.topology.model import Kind
from lanewise.topology.speeds import NETWORKS

NOISY = 0.05
OUTLIER = 3.5
LEAST_SIBLINGS, LEAST_SHARING = 4, 3
# How near the rate of a row must be to the payload that a port of a lower rate carries.
PORT_NEARNESS = 0.03
_LINK = re.compile(r"(?:(?<![\w.:-])(?P<device>[\w.:-]++)\s++)?Gen(?P<gen>\d)\s+x(?P<lanes>\d+)")


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


def causes(symptom: Symptom) -> tuple[Cause, ...]:
    """What may be behind a row, each cause once: the likeliest first; of a fast row in the order of FAST."""
    if symptom.result.verdict is Verdict.FAST:
        return tuple(cause for find in FAST for cause in find(symptom))
    if symptom.result.verdict is not Verdict.SLOW:
        return ()
    causes_by_key: dict[tuple[str, ...], Cause] = {}
    finders = (*WITH_A_MODEL_TOO, *NETWORK_WITH_A_MODEL, stated_causes)
    general = [cause for find in finders for cause in find(symptom)]
    observed = [*(cause for find in WITH_EVIDENCE for cause in find(symptom)), *_of_machine(symptom)]
    for cause in [*observed, *(cause for cause in general if cause.evidence)]:
        weighed = _weigh(symptom, cause)
        if weighed is not None:
            causes_by_key.setdefault(cause.key, weighed)
    if not any(cause.rank == 0 for cause in causes_by_key.values()):
        for cause in (cause for find in WITHOUT_EVIDENCE for cause in find(symptom)):
            weighed = _weigh(symptom, cause)
            if weighed is not None and weighed.explains and not _contradicted(symptom, cause):
                causes_by_key.setdefault(cause.key, weighed)
    for cause in general:
        causes_by_key.setdefault(cause.key, cause)
    if not any(cause.explains or cause.rank <= 1 for cause in causes_by_key.values()):
        causes_by_key |= {cause.key: cause for cause in slow_staging(symptom)}
    ranked = sorted(causes_by_key.values(), key=lambda cause: (cause.rank, cause.distance(symptom.result)))
    return tuple(_each_kind_first(ranked) if symptom.row.path in ("network", "storage") else ranked)


def _each_kind_first(ranked: list[Cause]) -> list[Cause]:
    """The likeliest cause of each kind, then the others: every link on a long way would explain the same rate."""
    first = {cause.key[0]: cause for cause in reversed(ranked)}
    return [*(cause for cause in ranked if first[cause.key[0]] is cause),
            *(cause for cause in ranked if first[cause.key[0]] is not cause)]  # fmt: skip


def _of_machine(symptom: Symptom) -> Iterator[Cause]:
    """Causes in the captures that touch the row's route, or that a change of the model must tell."""
    touched = symptom.model.route_devices(symptom.row)
    yield from (cause for cause in symptom.machine_causes if cause.change is not None or cause.devices & touched)


def _weigh(symptom: Symptom, cause: Cause) -> Cause | None:
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


def _contradicted(symptom: Symptom, cause: Cause) -> bool:
    """Whether a fine row is better than it could be if that were so."""
    engine = symptom.row.how.get("engine")
    for result in symptom.results:
        if cause.key[0] == "memory" and result.row.how.get("engine") != engine:
            continue  # what kernels copy comes from the CPU's cache, not from its memory (decision 13)
        if cause.change and result.verdict is Verdict.OK and cause.devices & symptom.model.route_devices(result.row):
            predicted, plain = symptom.model.value(result.row, cause.change), symptom.model.value(result.row)
            touched = predicted is not None and plain is not None and abs(predicted - plain) > 0.01 * plain
            if predicted is not None and touched and result.better_than(predicted):
                return True
    return False


# --- evidence in the row itself, or in the captures -----------------------------------------------------------------


def link_under_load(symptom: Symptom) -> Iterator[Cause]:
    """The probe read the link while it copied, and it ran below what is described."""
    for device, gen, lanes in _measured_links(symptom):
        link = changes.link_above(symptom.model.system, device)
        if link is not None and (gen < (link.gen or 0) or lanes < (link.lanes or 0)):
            state = symptom.conditions.link(device)
            evidence = f"read while {symptom.row.scenario} ran"
            described = f"described as {speed(link.gen, link.lanes)}"
            yield slow_link(device, gen, lanes, described, evidence, state.port if state else "")


def idle_link(symptom: Symptom) -> Iterator[Cause]:
    """The capture shows a lower generation, which idle GPUs have: a cause only if the value fits it."""
    for link in symptom.conditions.links:
        if link.slow and not link.under_load:
            best = f"both ends support {speed(link.gen, link.lanes)}"
            lanes = link.lanes_now or link.lanes
            weighed = _weigh(symptom, slow_link(link.device, link.gen_now, lanes, best, link.source, link.port))
            if weighed is not None and weighed.explains:
                yield weighed


def wrong_node(symptom: Symptom) -> Iterator[Cause]:
    """The host buffer was on another NUMA node than the one that the flow names, else than the device's."""
    # As probes.gpu.flows.buffer_node writes it: '1', '0 (75 %), 1 (25 %)', either with ' (asked 0)'.
    pages, copy = symptom.row.how.get("NUMA node", "").partition(" (asked ")[0], symptom.host_copy()
    nodes = [int(node) for node in re.findall(r"(?:^|, )(\d+)", pages)]
    if copy is not None and copy[2] is not None and nodes not in ([], [copy[2]]):
        host, device, wanted = copy
        reason = f"not on {wanted} as asked" if ":" in symptom.row.flow else f"{device} hangs at node {wanted}"
        what = f"the host buffer lay on NUMA node {pages}, {reason}"
        step = f"lanewise measure gpu --flows '{host}:{wanted}->{device}', or run it under numactl --membind={wanted}"
        change = changes.host_memory_on(nodes[0]) if len(nodes) == 1 else None
        devices = frozenset({device})
        yield Cause(("memory", pages), what, step, evidence="pages looked up", change=change, devices=devices)


def compat_mode(symptom: Symptom) -> Iterator[Cause]:
    """cuFile did not read straight into the GPU but through host memory."""
    if symptom.row.how.get("mode") == "cuFile compat":
        what = "the data took the way through host memory: cuFile ran in its compatibility mode"
        step = "gdscheck -p; load nvidia-fs, or set allow_compat_mode false in cufile.json to see the reason"
        yield Cause(("compat",), what, step, evidence="said by the probe", change=changes.no_peer_access())


def one_among_equals(symptom: Symptom) -> Iterator[Cause]:
    """A device that does worse than its siblings on the same kind of path."""
    mine, value = kind_of_path(symptom.row), symptom.row.value
    siblings = [result.row for result in symptom.results if kind_of_path(result.row) == mine]
    values = [row.value for row in siblings if row.value is not None]
    if value is None or len(values) < LEAST_SIBLINGS or symptom.peer_flow or not symptom.devices:
        return
    middle, device = statistics.median(values), symptom.devices[0]
    z = abs(value - middle) / max(robust_deviation(values), 0.01 * middle)
    if z > OUTLIER:
        what = f"{device} alone is slow among {len(values)} of its kind ({z:.0f} robust deviations from their median)"
        step = f"swap {device} with a sibling: does the fault stay with the slot or go with the card?"
        devices = frozenset({device})
        yield Cause(("alone", device), what, step, evidence="the other rows", inconclusive=True, devices=devices)


def shared_uplink(symptom: Symptom) -> Iterator[Cause]:
    """A switch or adapter that all slow rows cross and no fine row: of three slow rows and more, of several devices."""
    model, metric = symptom.model, symptom.row.metric
    like = [result for result in symptom.results if result.row.metric == metric]
    slow = [model.route_devices(result.row) for result in like if result.verdict is Verdict.SLOW]
    fine = [model.route_devices(result.row) for result in like if result.verdict is Verdict.OK]
    if len(slow) < LEAST_SHARING or not fine or not all(slow):
        return
    shared = frozenset.intersection(*slow) & set(model.system.of_kind(Kind.SWITCH)) - frozenset().union(*fine)
    for name in sorted(shared)[:1]:
        what = f"all {len(slow)} slow rows cross {name} and no fine row does: its uplink, its slot or its cable"
        step = "sudo lspci -vv | grep -E '^[0-9a-f]|LnkSta:' while copies run; look at the port above it first"
        yield Cause(("common", name), what, step, evidence="the other rows", devices=frozenset({name}))


def nvlinks_not_in_use(symptom: Symptom) -> Iterator[Cause]:
    """Two GPUs that exchange data over PCIe though NVLinks join them."""
    if symptom.peer_flow is not None and not lower_is_better(symptom.row.unit):
        yield from unused_nvlinks(symptom.model, symptom.result, symptom.peer_flow)


def noise(symptom: Symptom) -> Iterator[Cause]:
    """Samples so far apart that the median says little."""
    relative_range = symptom.result.relative_range
    if relative_range is not None and relative_range > NOISY:
        what = f"{len(symptom.row.samples)} samples spread over {100 * relative_range:.0f} % of their median"
        step = "look for other traffic and clock changes, then measure again: lanewise measure ... -o again.json"
        yield Cause(("noise",), what, step, evidence="the samples", inconclusive=True)


# --- supposed: nobody saw it, the model says whether it would explain the value -------------------------------------


def slower_link(symptom: Symptom) -> Iterator[Cause]:
    """A link on the way trained at a lower generation or fewer lanes: the likeliest of those of the measured rate."""
    fine = {device for device, *_ in _measured_links(symptom)}
    for device in sorted(symptom.model.route_devices(symptom.row) - fine):
        link = changes.link_above(symptom.model.system, device)
        if link is None or link.gen is None or link.lanes is None:
            continue
        matching: list[tuple[float, int, Cause]] = []
        for same_rate in lesser_links(link.gen, link.lanes):
            for gen, lanes in same_rate:
                predicted = symptom.model.value(symptom.row, changes.link_speed(device, gen, lanes))
                if predicted is not None and symptom.result.reached_by(predicted):
                    described = f"described as {speed(link.gen, link.lanes)}"
                    cause = slow_link(device, gen, lanes, described, "", same_rate=same_rate)
                    matching.append((abs(predicted - (symptom.row.value or 0.0)), len(matching), cause))
                    break
        yield from [min(matching)[2]] if matching else []


def slower_port(symptom: Symptom) -> Iterator[Cause]:
    """The port of a network card that came up at a lower rate of its kind, if the row is just what that carries."""
    system, row = symptom.model.system, symptom.row
    names = sorted(symptom.model.route_devices(row) & set(system.of_kind(Kind.NIC))) if row.path == "network" else []
    for part in {part.name: part for name in names if (part := system.part(name)) is not None}.values():
        rates = sorted({units.to_si(rate, "Gb/s") for rate in NETWORKS.values()})
        for rate in (rate for rate in rates if rate < (part.number("net.rate") or 0.0)):
            change = changes.port_rate(part, rate)
            predicted = symptom.model.value(row, change)
            if predicted is not None and abs(predicted / (row.value or 1.0) - 1) < PORT_NEARNESS:
                cards = [name for name in names if system.part(name) == part]
                what = f"the port of {' or '.join(cards)} runs at {units.show(rate, 'Gb/s')}"
                step = "ibstat, or ethtool DEVICE: the rate of the port; then its cable and the switch's port"
                yield Cause(("port", *cards), what, step, change=change, devices=frozenset(cards))


def peer_route(symptom: Symptom) -> Iterator[Cause]:
    """Two GPUs whose traffic goes up to the root port, or through host memory, or over PCIe in place of NVLinks."""
    flow, system = symptom.peer_flow, symptom.model.system
    if flow is None:
        return
    ends = frozenset({flow.src, flow.dst})
    step = "sudo lspci -vvv | grep -A1 ACSCtl; cat /sys/kernel/iommu_groups/*/type"
    for name in sorted(symptom.model.route_devices(symptom.row)):
        if system.device(name).kind is Kind.SWITCH:
            what = f"ACS at {name} sends peer traffic up to the root port and back"
            change = changes.acs_redirection(frozenset({name}))
            yield Cause(("acs", name), what, step, change=change, devices=ends)
    what = "the IOMMU translates, and peer traffic goes up to the root port and back"
    yield Cause(("iommu",), what, step, change=changes.iommu_translation(), devices=ends)
    if flow.p2p and route(system, flow.src, flow.dst).via is not Via.STAGED:
        what = "these GPUs exchange data through host memory: P2P is off or not possible between them"
        change = changes.no_peer_access(frozenset({ends}))
        yield Cause(("peer",), what, "nvidia-smi topo -p2p r", change=change, devices=ends)


def fewer_nvlinks(symptom: Symptom) -> Iterator[Cause]:
    """Two GPUs that use a part of their NVLinks."""
    if symptom.peer_flow is not None:
        yield from some_nvlinks(symptom.model, symptom.result, symptom.peer_flow)


def slow_staging(symptom: Symptom) -> Iterator[Cause]:
    """A copy through host memory that is slower than its stages let it: what is left where no link explains it."""
    flow = symptom.peer_flow
    if flow is None or lower_is_better(symptom.row.unit):
        return
    if route(symptom.model.system, flow.src, flow.dst, flow.p2p).via is Via.STAGED:
        what = "copies through host memory lose time between their two stages, and no one link would explain it"
        step = (
            f"time both stages: lanewise measure gpu --flows '{flow.src}->host, host->{flow.dst}'; if they are fine, "
            "run the tool bound to one NUMA node (numactl), the CPU's clock fixed"
        )
        yield Cause(("staging",), what, step)


# --- faster than it can be ------------------------------------------------------------------------------------------


def wrong_unit(symptom: Symptom) -> Iterator[Cause]:
    """Bits taken for bytes, or the sum of both ways for one."""
    expected = symptom.result.expected.value
    mistakes = [(8.0, "bits were taken for bytes")]
    if symptom.row.metric != "total":
        mistakes.append((2.0, "it is the sum of both ways, not one flow's rate"))
    for factor, what in mistakes:
        if expected is not None and symptom.result.reached_by(expected * factor):
            step = "look at the unit and the columns of the result"
            predicted = expected * factor
            yield Cause(("unit", what), what, step, evidence="the ratio", predicted=predicted, explains=True)


def cached(symptom: Symptom) -> Iterator[Cause]:
    """Data that came from memory, not from a drive."""
    mode = symptom.row.how.get("mode")
    if symptom.row.path == "storage" and mode != "direct":
        what = f"the data came from the page cache (mode {mode or 'not stated'})"
        step = "read with O_DIRECT, and more data than the machine has memory: lanewise measure storage FILE --direct"
        yield Cause(("cache",), what, step, evidence="the row's mode")


def better_link(symptom: Symptom) -> Iterator[Cause]:
    """The link is faster than the description says."""
    for device in sorted(symptom.model.route_devices(symptom.row)):
        link = changes.link_above(symptom.model.system, device)
        if link is None or link.gen is None or link.lanes is None:
            continue
        for gen, lanes in ((link.gen + 1, link.lanes), (link.gen, 2 * link.lanes)):
            change = changes.link_speed(device, gen, lanes)
            predicted = symptom.model.value(symptom.row, change) if gen <= 6 and lanes <= 16 else None
            if predicted is not None and symptom.result.reached_by(predicted):
                what = f"the link of {device} is {speed(gen, lanes)}, not {speed(link.gen, link.lanes)} as described"
                step = "correct the description: sudo lspci -vv | grep LnkCap"
                yield Cause(("described", device), what, step, change=change, predicted=predicted, explains=True)


CauseFinder = Callable[[Symptom], Iterator[Cause]]
WITH_EVIDENCE: tuple[CauseFinder, ...] = (
    link_under_load, idle_link, wrong_node, compat_mode, nvlinks_not_in_use, one_among_equals, shared_uplink,
    noise,
)  # fmt: skip
WITHOUT_EVIDENCE: tuple[CauseFinder, ...] = (
    slower_link, slower_port, empty_channels, far_buffers, peer_route, fewer_nvlinks,
)  # fmt: skip
FAST: tuple[CauseFinder, ...] = (wrong_unit, cached, better_link)


def _measured_links(symptom: Symptom) -> list[tuple[str, int, int]]:
    """Device, generation and lanes of every link that the row says was read under load."""
    return [
        (device, int(matches["gen"]), int(matches["lanes"]))
        for matches in _LINK.finditer(symptom.row.how.get("link under load", ""))
        for device in ([matches["device"]] if matches["device"] else symptom.devices[:1])
    ]
