"""Why a row is not what it should be: each cause a small function over a case, the model the judge among them.

A cause that was seen and with which the model predicts the measured value comes first; then what was seen and the
model knows nothing about; then what nobody saw but would explain the value, unless a fine row speaks against it.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lanewise.checking import change as changes
from lanewise.checking.earlier import robust_deviation
from lanewise.checking.model import ExpectationModel
from lanewise.checking.suspects import Suspect, idle_links, speed, trained
from lanewise.checking.verdict import PathResult, Verdict, lower_is_better
from lanewise.errors import LanewiseError
from lanewise.perf.flow import Flow
from lanewise.results.conditions import Conditions
from lanewise.results.match import CONTEXT, METHOD, Identity, identity
from lanewise.results.observation import Observation
from lanewise.results.sample import Sample
from lanewise.routes.endpoints import endpoint
from lanewise.routes.find import route
from lanewise.routes.model import Via
from lanewise.topology.model import Kind

NOISY = 0.05
OUTLIER = 3.5
LEAST_SIBLINGS = 4
_OF_A_DEVICE = (*CONTEXT, "scenario", *(key for key in METHOD if key not in ("flows", "engine", "p2p", "mode")))
_LINK = re.compile(r"(?:(?P<device>[\w.:-]+)\s+)?Gen(?P<gen>\d)\s+x(?P<lanes>\d+)")


@dataclass(frozen=True)
class Symptom:
    """One row that is not fine, the model of what should be, and all that is known beside it."""

    result: PathResult
    model: ExpectationModel
    conditions: Conditions
    suspects: tuple[Suspect, ...]
    rows: Sequence[PathResult]

    @property
    def flow(self) -> Flow | None:
        """The row's own flow between devices of the system, None where its words are no flow."""
        try:
            flows = self.model.flows(self.result.row)
        except LanewiseError:
            return None
        name = self.result.row.flow.replace(" ", "")
        return next((flow for flow in flows if flow.name == name), flows[0])


@dataclass(frozen=True, slots=True)
class Cause:
    """A suspect of one row: the value that the model predicts with it (SI, None: it cannot), and if that is it."""

    suspect: Suspect
    predicted: float | None
    explains: bool

    @property
    def level(self) -> int:
        """0 seen and explains, 1 seen and not computed, 2 supposed but explains, 3 part of it or a sign, 4 the rest."""
        if self.explains:
            return 0 if self.suspect.evidence else 2
        if not self.suspect.evidence:
            return 4
        return 1 if self.predicted is None and not self.suspect.sign else 3

    def distance(self, result: PathResult) -> float:
        """How far the prediction with it lies from the measured value, as a share of that; 1 where unknown."""
        return abs(self.predicted / result.value - 1) if self.predicted is not None and result.value else 1.0


def causes(symptom: Symptom) -> tuple[Cause, ...]:
    """What may be behind a row, likeliest first, each suspect once."""
    if symptom.result.verdict is Verdict.FAST:
        return tuple(cause for find in FAST for cause in find(symptom))
    if symptom.result.verdict is not Verdict.SLOW:
        return ()
    causes_by_key: dict[tuple[str, ...], Cause] = {}
    for suspect in [*(suspect for find in WITH_EVIDENCE for suspect in find(symptom)), *_machine_suspects(symptom)]:
        cause = _weigh(symptom, suspect)
        if cause is not None:
            causes_by_key.setdefault(suspect.key, cause)
    if not any(cause.level == 0 for cause in causes_by_key.values()):
        for suspect in (suspect for find in WITHOUT_EVIDENCE for suspect in find(symptom)):
            cause = _weigh(symptom, suspect)
            if cause is not None and cause.explains and not _contradicted(symptom, suspect):
                causes_by_key.setdefault(suspect.key, cause)
    if not any(cause.explains for cause in causes_by_key.values()):
        causes_by_key |= {suspect.key: Cause(suspect, None, False) for suspect in slow_staging(symptom)}
    return tuple(sorted(causes_by_key.values(), key=lambda cause: (cause.level, cause.distance(symptom.result))))


def _machine_suspects(symptom: Symptom) -> Iterator[Suspect]:
    """Suspects of the machine that touch the row's way, or that a change of the model must tell."""
    touched = symptom.model.touched(symptom.result.row)
    for suspect in symptom.suspects:
        if suspect.change is not None or suspect.devices & touched:
            yield suspect


def _weigh(symptom: Symptom, suspect: Suspect) -> Cause | None:
    """What the model says of a suspect for this row; None if it would change nothing, or more than was lost."""
    result, expected = symptom.result, symptom.result.expected.value
    if suspect.change is None:
        return Cause(suspect, None, False)
    predicted = symptom.model.with_change(result.row, suspect.change)
    plain = symptom.model.expect(result.row).value
    if predicted is None or plain is None or expected is None:
        return Cause(suspect, None, False) if suspect.devices & symptom.model.touched(result.row) else None
    if abs(predicted - plain) < 0.01 * plain:
        return None
    # Where an earlier run or a class says what is expected, the model says by how much that would change.
    predicted *= expected / plain
    plain = expected
    explains = result.reached_by(predicted)
    worse = predicted > plain if lower_is_better(result.unit) else predicted < plain
    beyond = not explains and _better(result, predicted)
    return Cause(suspect, predicted, explains) if worse and not beyond else None


def _better(result: PathResult, predicted: float) -> bool:
    """Whether the measured value is better than the prediction by more than its tolerance."""
    share = result.tolerance.share if result.tolerance else 0.0
    if result.value is None:
        return False
    if lower_is_better(result.unit):
        return result.value < predicted * (1 - share)
    return result.value > predicted * (1 + share)


def _contradicted(symptom: Symptom, suspect: Suspect) -> bool:
    """Whether a fine row is better than it could be if that were so."""
    if suspect.change is None:
        return False
    for row in symptom.rows:
        if row.verdict is Verdict.OK and suspect.devices & symptom.model.touched(row.row):
            predicted = symptom.model.with_change(row.row, suspect.change)
            if predicted is not None and _better(row, predicted):
                return True
    return False


# --- seen with the row itself, or in the captures -------------------------------------------------------------------


def link_under_load(symptom: Symptom) -> Iterator[Suspect]:
    """The probe read the link while it copied, and it ran below what is described."""
    for device, gen, lanes in _measured_links(symptom):
        link = changes.link_above(symptom.model.system, device)
        if link is not None and (gen < (link.gen or 0) or lanes < (link.lanes or 0)):
            state = symptom.conditions.link(device)
            evidence = f"read while {symptom.result.row.scenario} ran"
            described = f"described as {speed(link.gen, link.lanes)}"
            yield trained(device, gen, lanes, described, evidence, state.port if state else "")


def idle_link(symptom: Symptom) -> Iterator[Suspect]:
    """The capture shows a lower generation, which idle GPUs have: a cause only if the value fits it."""
    for link in idle_links(symptom.conditions):
        best = f"both ends support {speed(link.gen, link.lanes)}"
        suspect = trained(link.device, link.gen_now, link.lanes_now or link.lanes, best, link.source, link.port)
        cause = _weigh(symptom, suspect)
        if cause is not None and cause.explains:
            yield suspect


def wrong_node(symptom: Symptom) -> Iterator[Suspect]:
    """The host buffer lay on another NUMA node than the one that the device hangs at."""
    flow, stated = symptom.flow, symptom.result.row.how.get("NUMA node", "")
    if flow is None or not stated.isdigit():
        return
    system = symptom.model.system
    for end, device in ((flow.src, flow.dst), (flow.dst, flow.src)):
        if end not in system.hosts or device not in system.devices:
            continue
        near = system.device(endpoint(system, end, device)).numa
        if near is not None and int(stated) != near:
            what = f"the host buffer lay on NUMA node {stated}, {device} hangs at node {near}"
            step = f"lanewise measure gpu --flows '{end}:{near}->{device}', or run it under numactl --membind={near}"
            moved = changes.far_memory(int(stated))
            yield Suspect(("memory", stated), what, step, "pages looked up", moved, devices=frozenset({device}))


def compat_mode(symptom: Symptom) -> Iterator[Suspect]:
    """cuFile did not read straight into the GPU but through host memory."""
    if symptom.result.row.how.get("mode") == "cuFile compat":
        what = "the data took the way through host memory: cuFile ran in its compatibility mode"
        step = "gdscheck -p; load nvidia-fs, or set allow_compat_mode false in cufile.json to see the reason"
        yield Suspect(("compat",), what, step, "said by the probe", changes.no_peers())


def one_among_equals(symptom: Symptom) -> Iterator[Suspect]:
    """A device that does worse than its siblings on the same kind of path."""
    mine = _kind_of_path(symptom.result)
    alike = [row for row in symptom.rows if row.value is not None and _kind_of_path(row) == mine]
    values = [row.value for row in alike if row.value is not None]
    flow, value = symptom.flow, symptom.result.value
    if flow is None or value is None or len(values) < LEAST_SIBLINGS:
        return
    middle = statistics.median(values)
    z = abs(value - middle) / max(robust_deviation(values), 0.01 * middle)
    device = next((end for end in (flow.src, flow.dst) if end in symptom.model.system.devices), "")
    if z > OUTLIER and device and not _between_devices(symptom, flow):
        what = f"{device} alone is slow among {len(values)} of its kind ({z:.0f} robust deviations from their median)"
        step = f"swap {device} with a sibling: does the fault stay with the slot or go with the card?"
        yield Suspect(("alone", device), what, step, "the other rows", sign=True, devices=frozenset({device}))


def noise(symptom: Symptom) -> Iterator[Suspect]:
    """Samples so far apart that the median says little."""
    range_share = symptom.result.range_share
    if range_share is not None and range_share > NOISY:
        what = f"{len(symptom.result.row.samples)} samples spread over {100 * range_share:.0f} % of their median"
        step = "look for other traffic and clock changes, then measure again: lanewise measure ... -o again.json"
        yield Suspect(("noise",), what, step, "the samples", sign=True)


WITH_EVIDENCE: tuple[Callable[[Symptom], Iterable[Suspect]], ...] = (
    link_under_load, idle_link, wrong_node, compat_mode, one_among_equals, noise,
)  # fmt: skip


# --- supposed: nobody saw it, the model says whether it would explain the value -------------------------------------


def slower_link(symptom: Symptom) -> Iterator[Suspect]:
    """A link on the way trained at a lower generation or fewer lanes."""
    fine = {device for device, *_ in _measured_links(symptom)}
    for device in sorted(symptom.model.touched(symptom.result.row) - fine):
        matching: list[tuple[float, int, Suspect]] = []
        for change, gen, lanes in changes.slower_links(symptom.model.system, device):
            predicted = symptom.model.with_change(symptom.result.row, change)
            if predicted is not None and symptom.result.reached_by(predicted):
                link = changes.link_above(symptom.model.system, device)
                best = f"described as {speed(link.gen, link.lanes)}" if link else ""
                suspect = trained(device, gen, lanes, best, "")
                matching.append((abs(predicted - (symptom.result.value or 0.0)), len(matching), suspect))
        yield from [min(matching)[2]] if matching else []


def far_buffers(symptom: Symptom) -> Iterator[Suspect]:
    """The host buffer on another NUMA node."""
    flow, system = symptom.flow, symptom.model.system
    if flow is None or symptom.result.row.how.get("NUMA node"):
        return
    for node in sorted({system.device(cpu).numa or 0 for cpu in system.of_kind(Kind.CPU)}):
        for end, device in ((flow.src, flow.dst), (flow.dst, flow.src)):
            if end in system.hosts and device in system.devices:
                what = f"the host buffer lay on NUMA node {node}, away from the device"
                near = system.device(endpoint(system, end, device)).numa
                step = f"run it under numactl --membind={near}, or lanewise measure gpu --flows 'host:{near}->{device}'"
                moved = changes.far_memory(node, device)
                yield Suspect(("memory", str(node)), what, step, "", moved, devices=frozenset({device}))


def redirection(symptom: Symptom) -> Iterator[Suspect]:
    """ACS at a switch on the way, or an IOMMU that translates."""
    flow = symptom.flow
    if flow is None or not _between_devices(symptom, flow):
        return
    step = "sudo lspci -vvv | grep -A1 ACSCtl; cat /sys/kernel/iommu_groups/*/type"
    ends = frozenset({flow.src, flow.dst})
    for name in sorted(symptom.model.touched(symptom.result.row)):
        if symptom.model.system.device(name).kind is Kind.SWITCH:
            what = f"ACS at {name} sends peer traffic up to the root port and back"
            yield Suspect(("acs", name), what, step, "", changes.redirected(frozenset({name})), devices=ends)
    what = "the IOMMU translates, and peer traffic goes up to the root port and back"
    yield Suspect(("iommu",), what, step, "", changes.translated(), devices=ends)


def lost_peer(symptom: Symptom) -> Iterator[Suspect]:
    """Two GPUs that should be peers and exchange data through host memory."""
    flow = symptom.flow
    if flow is None or not _between_devices(symptom, flow) or not flow.p2p:
        return
    pair = frozenset({flow.src, flow.dst})
    if route(symptom.model.system, flow.src, flow.dst).via is not Via.STAGED:
        what = "these GPUs exchange data through host memory: P2P is off or not possible between them"
        step = "nvidia-smi topo -p2p r"
        yield Suspect(("peer",), what, step, "", changes.no_peers(frozenset({pair})), devices=pair)


def no_nvlink(symptom: Symptom) -> Iterator[Suspect]:
    """Two GPUs that NVLinks join and that exchange data over PCIe."""
    flow = symptom.flow
    if flow is None or not _between_devices(symptom, flow):
        return
    if route(symptom.model.system, flow.src, flow.dst, flow.p2p).via is Via.NVLINK:
        pair = frozenset({flow.src, flow.dst})
        what = "these GPUs exchange data over PCIe: their NVLinks are down or not there"
        step = "nvidia-smi nvlink -s; nvidia-smi topo -m; is the fabric manager running?"
        yield Suspect(("nvlink",), what, step, "", changes.fewer_nvlinks(flow.src), devices=pair)


def slow_staging(symptom: Symptom) -> Iterator[Suspect]:
    """A copy through host memory that is slower than its stages let it: what is left where no link explains it."""
    flow = symptom.flow
    if flow is None or not _between_devices(symptom, flow) or lower_is_better(symptom.result.unit):
        return
    if route(symptom.model.system, flow.src, flow.dst, flow.p2p).via is Via.STAGED:
        what = "copies through host memory lose time between their two stages, and no one link would explain it"
        step = (
            f"time both stages: lanewise measure gpu --flows '{flow.src}->host, host->{flow.dst}'; if they are fine, "
            "run the tool bound to one NUMA node (numactl), the CPU's clock fixed"
        )
        yield Suspect(("staging",), what, step, "", None)


WITHOUT_EVIDENCE: tuple[Callable[[Symptom], Iterable[Suspect]], ...] = (
    slower_link, far_buffers, redirection, lost_peer, no_nvlink,
)  # fmt: skip


# --- faster than it can be ------------------------------------------------------------------------------------------


def wrong_unit(symptom: Symptom) -> Iterator[Cause]:
    """Bits taken for bytes, or the sum of both ways for one."""
    expected = symptom.result.expected.value
    for factor, what in ((8.0, "bits were taken for bytes"), (2.0, "it is the sum of both ways, not one flow's rate")):
        if expected is not None and symptom.result.reached_by(expected * factor):
            suspect = Suspect(("unit", what), what, "look at the unit and the columns of the result", "the ratio")
            yield Cause(suspect, expected * factor, True)


def cached(symptom: Symptom) -> Iterator[Cause]:
    """Data that came from memory, not from a drive."""
    row = symptom.result.row
    if row.path == "storage" and row.how.get("mode") != "direct":
        what = f"the data came from the page cache (mode {row.how.get('mode') or 'not stated'})"
        step = "read with O_DIRECT, and more data than the machine has memory: lanewise measure storage FILE --direct"
        yield Cause(Suspect(("cache",), what, step, "the row's mode"), None, False)


def better_link(symptom: Symptom) -> Iterator[Cause]:
    """The link is faster than the description says."""
    for device in sorted(symptom.model.touched(symptom.result.row)):
        link = changes.link_above(symptom.model.system, device)
        if link is None or link.gen is None or link.lanes is None:
            continue
        for gen, lanes in ((link.gen + 1, link.lanes), (link.gen, 2 * link.lanes)):
            change = changes.narrower(device, gen, lanes)
            predicted = symptom.model.with_change(symptom.result.row, change) if gen <= 6 and lanes <= 16 else None
            if predicted is not None and symptom.result.reached_by(predicted):
                what = f"the link of {device} is {speed(gen, lanes)}, not {speed(link.gen, link.lanes)} as described"
                step = "correct the description: sudo lspci -vv | grep LnkCap"
                yield Cause(Suspect(("described", device), what, step, "", change), predicted, True)


FAST: tuple[Callable[[Symptom], Iterable[Cause]], ...] = (wrong_unit, cached, better_link)


def _measured_links(symptom: Symptom) -> list[tuple[str, int, int]]:
    """Device, generation and lanes of every link that the row says was read under load."""
    flow = symptom.flow
    own = [end for end in (flow.src, flow.dst) if end in symptom.model.system.devices] if flow else []
    return [
        (device, int(matches["gen"]), int(matches["lanes"]))
        for matches in _LINK.finditer(symptom.result.row.how.get("link under load", ""))
        for device in ([matches["device"]] if matches["device"] else own[:1])
    ]


def _between_devices(symptom: Symptom, flow: Flow) -> bool:
    gpus = symptom.model.system.of_kind(Kind.GPU)
    return flow.src in gpus and flow.dst in gpus


def _kind_of_path(result: PathResult) -> Identity:
    """What rows must share to be siblings: the kind of path, direction, metric, settings and method."""
    return identity(
        result.row, _OF_A_DEVICE, {"flow": _kinds, "flows": lambda row: row.how.get("flows", row.flow).count("->")}
    )


def _kinds(row: Observation | Sample) -> tuple[str, ...]:
    """The kinds of a flow's devices: 'host', 'gpu'."""
    return tuple(re.sub(r"\d+$", "", end.strip()) for end in row.flow.split("->"))
