"""Why a row is not what it should be: each cause a small function over a case, the model the judge among them.

A cause that was seen and with which the model predicts the measured value comes first; then what was seen and the
model knows nothing about; then what nobody saw but would explain the value, unless a fine row speaks against it.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise.checking import change as changes
from lanewise.checking.earlier import robust_deviation
from lanewise.checking.suspects import Suspect, idle_links, speed, trained
from lanewise.checking.verdict import Judged, Verdict, lower_is_better
from lanewise.errors import LanewiseError
from lanewise.results.match import CONTEXT, METHOD, Identity, identity
from lanewise.routes.endpoints import endpoint
from lanewise.routes.find import route
from lanewise.routes.model import Via
from lanewise.topology.model import Kind

if TYPE_CHECKING:
    from lanewise.checking.model import Model
    from lanewise.perf.flow import Flow
    from lanewise.results.conditions import Conditions
    from lanewise.results.observation import Observation
    from lanewise.results.sample import Sample

NOISY = 0.05
OUTLIER = 3.5
LEAST_SIBLINGS = 4
_OF_A_DEVICE = (*CONTEXT, "scenario", *(key for key in METHOD if key not in ("flows", "engine", "p2p", "mode")))
_LINK = re.compile(r"(?:(?P<device>[\w.:-]+)\s+)?Gen(?P<gen>\d)\s+x(?P<lanes>\d+)")


@dataclass(frozen=True)
class Case:
    """One row that is not fine, the model of what should be, and all that is known beside it."""

    judged: Judged
    model: Model
    conditions: Conditions
    known: tuple[Suspect, ...]
    rows: Sequence[Judged]

    @property
    def flow(self) -> Flow | None:
        """The row's own flow between devices of the system, None where its words are no flow."""
        try:
            flows = self.model.flows(self.judged.row)
        except LanewiseError:
            return None
        name = self.judged.row.flow.replace(" ", "")
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
            return 0 if self.suspect.seen else 2
        if not self.suspect.seen:
            return 4
        return 1 if self.predicted is None and not self.suspect.sign else 3

    def distance(self, judged: Judged) -> float:
        """How far the prediction with it lies from the measured value, as a share of that; 1 where unknown."""
        return abs(self.predicted / judged.value - 1) if self.predicted is not None and judged.value else 1.0


def causes(case: Case) -> tuple[Cause, ...]:
    """What may be behind a row, likeliest first, each suspect once."""
    if case.judged.verdict is Verdict.FAST:
        return tuple(cause for each in FAST for cause in each(case))
    if case.judged.verdict is not Verdict.SLOW:
        return ()
    seen: dict[tuple[str, ...], Cause] = {}
    for suspect in [*(suspect for each in SEEN for suspect in each(case)), *_known(case)]:
        cause = _weigh(case, suspect)
        if cause is not None:
            seen.setdefault(suspect.key, cause)
    if not any(cause.level == 0 for cause in seen.values()):
        for suspect in (suspect for each in SUPPOSED for suspect in each(case)):
            cause = _weigh(case, suspect)
            if cause is not None and cause.explains and not _contradicted(case, suspect):
                seen.setdefault(suspect.key, cause)
    if not any(cause.explains for cause in seen.values()):
        seen |= {suspect.key: Cause(suspect, None, False) for suspect in slow_staging(case)}
    return tuple(sorted(seen.values(), key=lambda cause: (cause.level, cause.distance(case.judged))))


def _known(case: Case) -> Iterator[Suspect]:
    """Suspects of the machine that touch the row's way, or that a change of the model must tell."""
    touched = case.model.touched(case.judged.row)
    for suspect in case.known:
        if suspect.change is not None or suspect.devices & touched:
            yield suspect


def _weigh(case: Case, suspect: Suspect) -> Cause | None:
    """What the model says of a suspect for this row; None if it would change nothing, or more than was lost."""
    judged, expected = case.judged, case.judged.expected.value
    if suspect.change is None:
        return Cause(suspect, None, False)
    predicted = case.model.with_change(judged.row, suspect.change)
    plain = case.model.expect(judged.row).value
    if predicted is None or plain is None or expected is None:
        return Cause(suspect, None, False) if suspect.devices & case.model.touched(judged.row) else None
    if abs(predicted - plain) < 0.01 * plain:
        return None
    # Where an earlier run or a class says what is expected, the model says by how much that would change.
    predicted *= expected / plain
    plain = expected
    explains = judged.reached_by(predicted)
    worse = predicted > plain if lower_is_better(judged.unit) else predicted < plain
    beyond = not explains and _better(judged, predicted)
    return Cause(suspect, predicted, explains) if worse and not beyond else None


def _better(judged: Judged, predicted: float) -> bool:
    """Whether the measured value is better than the prediction by more than its tolerance."""
    share = judged.tolerance.share if judged.tolerance else 0.0
    if judged.value is None:
        return False
    if lower_is_better(judged.unit):
        return judged.value < predicted * (1 - share)
    return judged.value > predicted * (1 + share)


def _contradicted(case: Case, suspect: Suspect) -> bool:
    """Whether a fine row is better than it could be if that were so."""
    if suspect.change is None:
        return False
    for other in case.rows:
        if other.verdict is Verdict.OK and suspect.devices & case.model.touched(other.row):
            predicted = case.model.with_change(other.row, suspect.change)
            if predicted is not None and _better(other, predicted):
                return True
    return False


# --- seen with the row itself, or in the captures -------------------------------------------------------------------


def link_under_load(case: Case) -> Iterator[Suspect]:
    """The probe read the link while it copied, and it ran below what is described."""
    for device, gen, lanes in _links_seen(case):
        link = changes.link_above(case.model.system, device)
        if link is not None and (gen < (link.gen or 0) or lanes < (link.lanes or 0)):
            state = case.conditions.link(device)
            seen = f"read while {case.judged.row.scenario} ran"
            described = f"described as {speed(link.gen, link.lanes)}"
            yield trained(device, gen, lanes, described, seen, state.port if state else "")


def idle_link(case: Case) -> Iterator[Suspect]:
    """The capture shows a lower generation, which idle GPUs have: a cause only if the value fits it."""
    for link in idle_links(case.conditions):
        best = f"both ends support {speed(link.gen, link.lanes)}"
        found = trained(link.device, link.gen_now, link.lanes_now or link.lanes, best, link.source, link.port)
        cause = _weigh(case, found)
        if cause is not None and cause.explains:
            yield found


def wrong_node(case: Case) -> Iterator[Suspect]:
    """The host buffer lay on another NUMA node than the one that the device hangs at."""
    flow, stated = case.flow, case.judged.row.how.get("NUMA node", "")
    if flow is None or not stated.isdigit():
        return
    system = case.model.system
    for end, other in ((flow.src, flow.dst), (flow.dst, flow.src)):
        if end not in system.hosts or other not in system.devices:
            continue
        near = system.device(endpoint(system, end, other)).numa
        if near is not None and int(stated) != near:
            what = f"the host buffer lay on NUMA node {stated}, {other} hangs at node {near}"
            step = f"lanewise measure gpu --flows '{end}:{near}->{other}', or run it under numactl --membind={near}"
            moved = changes.far_memory(int(stated))
            yield Suspect(("memory", stated), what, step, "pages looked up", moved, devices=frozenset({other}))


def compat_mode(case: Case) -> Iterator[Suspect]:
    """cuFile did not read straight into the GPU but through host memory."""
    if case.judged.row.how.get("mode") == "cuFile compat":
        what = "the data took the way through host memory: cuFile ran in its compatibility mode"
        step = "gdscheck -p; load nvidia-fs, or set allow_compat_mode false in cufile.json to see the reason"
        yield Suspect(("compat",), what, step, "said by the probe", changes.no_peers())


def one_among_equals(case: Case) -> Iterator[Suspect]:
    """A device that does worse than its siblings on the same kind of path."""
    mine = _kind_of_path(case.judged)
    alike = [each for each in case.rows if each.value is not None and _kind_of_path(each) == mine]
    values = [each.value for each in alike if each.value is not None]
    flow, value = case.flow, case.judged.value
    if flow is None or value is None or len(values) < LEAST_SIBLINGS:
        return
    middle = statistics.median(values)
    z = abs(value - middle) / max(robust_deviation(values), 0.01 * middle)
    device = next((end for end in (flow.src, flow.dst) if end in case.model.system.devices), "")
    if z > OUTLIER and device and not _between_devices(case, flow):
        what = f"{device} alone is slow among {len(values)} of its kind ({z:.0f} robust deviations from their median)"
        step = f"swap {device} with a sibling: does the fault stay with the slot or go with the card?"
        yield Suspect(("alone", device), what, step, "the other rows", sign=True, devices=frozenset({device}))


def noise(case: Case) -> Iterator[Suspect]:
    """Samples so far apart that the median says little."""
    spread = case.judged.spread
    if spread is not None and spread > NOISY:
        what = f"{len(case.judged.row.samples)} samples spread over {100 * spread:.0f} % of their median"
        step = "look for other traffic and clock changes, then measure again: lanewise measure ... -o again.json"
        yield Suspect(("noise",), what, step, "the samples", sign=True)


SEEN: tuple[Callable[[Case], Iterable[Suspect]], ...] = (
    link_under_load, idle_link, wrong_node, compat_mode, one_among_equals, noise,
)  # fmt: skip


# --- supposed: nobody saw it, the model says whether it would explain the value -------------------------------------


def slower_link(case: Case) -> Iterator[Suspect]:
    """A link on the way trained at a lower generation or fewer lanes."""
    fine = {device for device, *_ in _links_seen(case)}
    for device in sorted(case.model.touched(case.judged.row) - fine):
        matching: list[tuple[float, int, Suspect]] = []
        for change, gen, lanes in changes.slower_links(case.model.system, device):
            predicted = case.model.with_change(case.judged.row, change)
            if predicted is not None and case.judged.reached_by(predicted):
                link = changes.link_above(case.model.system, device)
                best = f"described as {speed(link.gen, link.lanes)}" if link else ""
                found = trained(device, gen, lanes, best, "")
                matching.append((abs(predicted - (case.judged.value or 0.0)), len(matching), found))
        yield from [min(matching)[2]] if matching else []


def far_buffers(case: Case) -> Iterator[Suspect]:
    """The host buffer on another NUMA node."""
    flow, system = case.flow, case.model.system
    if flow is None or case.judged.row.how.get("NUMA node"):
        return
    for node in sorted({system.device(cpu).numa or 0 for cpu in system.of_kind(Kind.CPU)}):
        for end, other in ((flow.src, flow.dst), (flow.dst, flow.src)):
            if end in system.hosts and other in system.devices:
                what = f"the host buffer lay on NUMA node {node}, away from the device"
                near = system.device(endpoint(system, end, other)).numa
                step = f"run it under numactl --membind={near}, or lanewise measure gpu --flows 'host:{near}->{other}'"
                moved = changes.far_memory(node, other)
                yield Suspect(("memory", str(node)), what, step, "", moved, devices=frozenset({other}))


def redirection(case: Case) -> Iterator[Suspect]:
    """ACS at a switch on the way, or an IOMMU that translates."""
    flow = case.flow
    if flow is None or not _between_devices(case, flow):
        return
    step = "sudo lspci -vvv | grep -A1 ACSCtl; cat /sys/kernel/iommu_groups/*/type"
    ends = frozenset({flow.src, flow.dst})
    for name in sorted(case.model.touched(case.judged.row)):
        if case.model.system.device(name).kind is Kind.SWITCH:
            what = f"ACS at {name} sends peer traffic up to the root port and back"
            yield Suspect(("acs", name), what, step, "", changes.redirected(frozenset({name})), devices=ends)
    what = "the IOMMU translates, and peer traffic goes up to the root port and back"
    yield Suspect(("iommu",), what, step, "", changes.translated(), devices=ends)


def lost_peer(case: Case) -> Iterator[Suspect]:
    """Two GPUs that should be peers and exchange data through host memory."""
    flow = case.flow
    if flow is None or not _between_devices(case, flow) or not flow.p2p:
        return
    pair = frozenset({flow.src, flow.dst})
    if route(case.model.system, flow.src, flow.dst).via is not Via.STAGED:
        what = "these GPUs exchange data through host memory: P2P is off or not possible between them"
        step = "nvidia-smi topo -p2p r"
        yield Suspect(("peer",), what, step, "", changes.no_peers(frozenset({pair})), devices=pair)


def no_nvlink(case: Case) -> Iterator[Suspect]:
    """Two GPUs that NVLinks join and that exchange data over PCIe."""
    flow = case.flow
    if flow is None or not _between_devices(case, flow):
        return
    if route(case.model.system, flow.src, flow.dst, flow.p2p).via is Via.NVLINK:
        pair = frozenset({flow.src, flow.dst})
        what = "these GPUs exchange data over PCIe: their NVLinks are down or not there"
        step = "nvidia-smi nvlink -s; nvidia-smi topo -m; is the fabric manager running?"
        yield Suspect(("nvlink",), what, step, "", changes.fewer_nvlinks(flow.src), devices=pair)


def slow_staging(case: Case) -> Iterator[Suspect]:
    """A copy through host memory that is slower than its stages let it: what is left where no link explains it."""
    flow = case.flow
    if flow is None or not _between_devices(case, flow) or lower_is_better(case.judged.unit):
        return
    if route(case.model.system, flow.src, flow.dst, flow.p2p).via is Via.STAGED:
        what = "copies through host memory lose time between their two stages, and no one link would explain it"
        step = (
            f"time both stages: lanewise measure gpu --flows '{flow.src}->host, host->{flow.dst}'; if they are fine, "
            "run the tool bound to one NUMA node (numactl), the CPU's clock fixed"
        )
        yield Suspect(("staging",), what, step, "", None)


SUPPOSED: tuple[Callable[[Case], Iterable[Suspect]], ...] = (
    slower_link, far_buffers, redirection, lost_peer, no_nvlink,
)  # fmt: skip


# --- faster than it can be ------------------------------------------------------------------------------------------


def wrong_unit(case: Case) -> Iterator[Cause]:
    """Bits taken for bytes, or the sum of both ways for one."""
    expected = case.judged.expected.value
    for factor, what in ((8.0, "bits were taken for bytes"), (2.0, "it is the sum of both ways, not one flow's rate")):
        if expected is not None and case.judged.reached_by(expected * factor):
            suspect = Suspect(("unit", what), what, "look at the unit and the columns of the result", "the ratio")
            yield Cause(suspect, expected * factor, True)


def cached(case: Case) -> Iterator[Cause]:
    """Data that came from memory, not from a drive."""
    row = case.judged.row
    if row.path == "storage" and row.how.get("mode") != "direct":
        what = f"the data came from the page cache (mode {row.how.get('mode') or 'not stated'})"
        step = "read with O_DIRECT, and more data than the machine has memory: lanewise measure storage FILE --direct"
        yield Cause(Suspect(("cache",), what, step, "the row's mode"), None, False)


def better_link(case: Case) -> Iterator[Cause]:
    """The link is faster than the description says."""
    for device in sorted(case.model.touched(case.judged.row)):
        link = changes.link_above(case.model.system, device)
        if link is None or link.gen is None or link.lanes is None:
            continue
        for gen, lanes in ((link.gen + 1, link.lanes), (link.gen, 2 * link.lanes)):
            change = changes.narrower(device, gen, lanes)
            predicted = case.model.with_change(case.judged.row, change) if gen <= 6 and lanes <= 16 else None
            if predicted is not None and case.judged.reached_by(predicted):
                what = f"the link of {device} is {speed(gen, lanes)}, not {speed(link.gen, link.lanes)} as described"
                step = "correct the description: sudo lspci -vv | grep LnkCap"
                yield Cause(Suspect(("described", device), what, step, "", change), predicted, True)


FAST: tuple[Callable[[Case], Iterable[Cause]], ...] = (wrong_unit, cached, better_link)


def _links_seen(case: Case) -> list[tuple[str, int, int]]:
    """Device, generation and lanes of every link that the row says was read under load."""
    flow = case.flow
    own = [end for end in (flow.src, flow.dst) if end in case.model.system.devices] if flow else []
    return [
        (device, int(found["gen"]), int(found["lanes"]))
        for found in _LINK.finditer(case.judged.row.how.get("link under load", ""))
        for device in ([found["device"]] if found["device"] else own[:1])
    ]


def _between_devices(case: Case, flow: Flow) -> bool:
    gpus = case.model.system.of_kind(Kind.GPU)
    return flow.src in gpus and flow.dst in gpus


def _kind_of_path(judged: Judged) -> Identity:
    """What rows must share to be siblings: the kind of path, direction, metric, settings and method."""
    return identity(
        judged.row, _OF_A_DEVICE, {"flow": _kinds, "flows": lambda row: row.how.get("flows", row.flow).count("->")}
    )


def _kinds(row: Observation | Sample) -> tuple[str, ...]:
    """The kinds of a flow's devices: 'host', 'gpu'."""
    return tuple(re.sub(r"\d+$", "", end.strip()) for end in row.flow.split("->"))
