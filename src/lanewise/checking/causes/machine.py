"""Faults of a machine that its captures show, before anything is measured: each with its place in the capture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from lanewise.checking import changes
from lanewise.checking.cause import Cause, slow_link, speed
from lanewise.checking.named.abilities import on_a_board
from lanewise.errors import LanewiseError
from lanewise.results.conditions import STATUS, MachineConditions, PeerState
from lanewise.routes.find import route
from lanewise.routes.matrix import peers
from lanewise.topology.model import Kind, LinkKind, System

# Chipset, GPU or topology not supported.
_BY_DESIGN = ("CNS", "GNS", "TNS")
_REACH = ("read", "write", "peers")
# GPUs and network cards have eight lanes and more, which one lane never serves.
_LANES_OF_A_CARD = 8
_IDLE = ("idle", "gpu_idle", "none", "not active", "")


@dataclass(frozen=True)
class MachineState:
    """What was read of the machine itself; `system` None: nothing.

    `figures` are, by device, max payload in use and at most (`payload`, `payload_max`), read request size
    (`read_request`, all in B) and NVLinks that are down (`nvlinks_off`), as far as known.
    """

    system: System | None = None
    conditions: MachineConditions = field(default_factory=MachineConditions)
    figures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def with_intended_policies(system: System) -> System:
    """The discovered system with the policies that it should have: no ACS redirection, no translating IOMMU."""
    iommu = "off" if system.policies.iommu == "translate" else system.policies.iommu
    return replace(system, policies=replace(system.policies, acs_redirect=frozenset(), iommu=iommu))


def machine_causes(machine: MachineState, target: System | None) -> tuple[Cause, ...]:
    """All that captures and driver say against the machine; `target` is what it should be, if that is known."""
    conditions, system = machine.conditions, machine.system
    causes = [*_off_bus(conditions), *_links(conditions), *_numa(conditions), *_figures(machine)]
    causes += _throttles(conditions)
    if system is not None:
        causes += [*_redirections(system, conditions), *_uneven_nvlinks(system)]
    expected = target or (with_intended_policies(system) if system is not None else None)
    if expected is not None:
        by_design = non_peers_by_design(machine) if target is None else frozenset()
        causes += _no_peers(conditions, by_design, expected)
    if target is not None and system is not None:
        causes += [*_missing(system, target), *_lesser_links(system, target)]
    by_key: dict[tuple[str, ...], Cause] = {}
    for cause in causes:
        by_key.setdefault(cause.key, cause)
    return tuple(by_key.values())


def non_peers_by_design(machine: MachineState) -> frozenset[frozenset[str]]:
    """The pairs that the driver calls no peers because of what the machine is built of: that is no fault of it."""
    states = _of_peers(machine.conditions)
    return frozenset(frozenset((state.a, state.b)) for state in states if state.status in _BY_DESIGN)


def _of_peers(conditions: MachineConditions) -> list[PeerState]:
    """What the driver says of peers; of PCIe alone only where a pair has no other way: NVLink has no need of it."""
    states = conditions.p2p
    reach = {frozenset((state.a, state.b)) for state in states if state.ability in _REACH and state.possible}
    return [
        state
        for state in states
        if state.ability in _REACH or (state.ability == "pci" and frozenset((state.a, state.b)) not in reach)
    ]


def _off_bus(conditions: MachineConditions) -> Iterator[Cause]:
    for state in conditions.off_bus:
        name = f"{state.device} ({state.address})" if state.device != state.address else state.address
        what = f"{name} does not answer: its registers read all ones"
        step = "dmesg | grep -iE 'xid|aer|pcie'; power the machine off and on, reseat the card or its cable"
        devices = frozenset({state.device})
        yield Cause(("off bus", state.device), what, step, evidence=state.source, fault=True, devices=devices)


def _links(conditions: MachineConditions) -> Iterator[Cause]:
    for link in conditions.links:
        if not link.narrow and not (link.slow and link.under_load):
            continue
        gen = link.gen_now if link.slow and link.under_load else link.gen
        evidence = f"{link.source}{', under load' if link.under_load else ''}"
        best = speed(link.gen, link.lanes)
        # Without what the port can do, a slot of fewer lanes is as likely as a fault; one lane is too few for a GPU.
        both = link.port_lanes is not None and link.device_lanes is not None
        one_lane = link.lanes_now == 1 and (link.device_lanes or 0) >= _LANES_OF_A_CARD
        could = f"both ends support {best}" if both else f"one end supports {best}, the other is not in the dump"
        yield replace(slow_link(link.device, gen, link.lanes_now, could, evidence, link.port), fault=both or one_lane)


def _numa(conditions: MachineConditions) -> Iterator[Cause]:
    for state in conditions.numa:
        if not state.differs or state.node is None:
            continue
        what = f"{state.device} states NUMA node {state.node}, the root port above it belongs to node {state.root_node}"
        bound = f"numactl --cpunodebind={state.root_node} --membind={state.root_node} COMMAND"
        step = f"update the firmware, or bind by hand: {bound}"
        change = changes.host_memory_on(state.node, state.device)
        yield Cause(
            ("numa", state.device), what, step, evidence=state.source, change=change, fault=True,
            devices=frozenset({state.device}),
        )  # fmt: skip


def _figures(machine: MachineState) -> Iterator[Cause]:
    """Small packets and NVLinks that are down.

    No fault by itself: what a device's port can do is not known here, and a bridge need not take all NVLinks of a card.
    Boards with NVSwitches (SXM since the A100) use them all: there it is one.
    """
    figures, system = machine.figures, machine.system
    for device, values in figures.items():
        payload, most, request = (values.get(key) for key in ("payload", "payload_max", "read_request"))
        if payload is not None and most is not None and payload < most:
            what = f"max payload of {device} is {payload} B, it can {most} B"
            step = "boot with pci=pcie_bus_perf, or set the payload in the firmware; then: sudo lspci -vv | grep MaxPay"
            change = changes.max_payload(device, payload)
            yield Cause(("payload", device), what, step, evidence="lspci", change=change, devices=frozenset({device}))
        if request is not None and request < 512:
            what = f"read requests of {device} ask for {request} B, 512 B and more are usual"
            step = "raise it in the firmware or the device's settings; then: sudo lspci -vv | grep MaxReadReq"
            yield Cause(("read request", device), what, step, evidence="lspci", devices=frozenset({device}))
    for device, values in figures.items():
        if down := values.get("nvlinks_off"):
            what = f"{down} NVLinks of {device} are down" if down > 1 else f"an NVLink of {device} is down"
            step = "nvidia-smi nvlink -s; nvidia-smi nvlink -e; dmesg | grep -i xid"
            change = changes.fewer_nvlinks(device, down)
            part = (system.device(device).part or "") if system is not None and device in system.devices else ""
            fault = on_a_board(part)
            yield Cause(
                ("nvlink", device), what, step, evidence="nvlink -s", change=change, fault=fault,
                devices=frozenset({device}),
            )  # fmt: skip


def _uneven_nvlinks(system: System) -> Iterator[Cause]:
    """Pairs of GPUs with fewer NVLinks than the others: boards join all of their pairs alike (since the A100)."""
    boards = {name for name in system.of_kind(Kind.GPU) if on_a_board(system.device(name).part or "")}
    counts = {
        (link.a, link.b): link.count
        for link in system.links
        if link.kind is LinkKind.NVLINK and link.count_known and {link.a, link.b} <= boards
    }
    most = max(counts.values(), default=0)
    for (a, b), count in counts.items():
        if count < most:
            what = f"{a} and {b} are joined by {count} NVLinks, other pairs of the board by {most}"
            step = "nvidia-smi nvlink -s; nvidia-smi nvlink -e; dmesg | grep -i xid"
            devices = frozenset({a, b})
            yield Cause(("nvlink", a, b), what, step, evidence=system.source, fault=True, devices=devices)


def _throttles(conditions: MachineConditions) -> Iterator[Cause]:
    for state in conditions.throttles:
        reasons = [reason for reason in state.reasons if reason.lower() not in _IDLE]
        if reasons:
            what = f"the clocks of {state.device} are throttled: {', '.join(reasons)}"
            step = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"
            devices = frozenset({state.device})
            yield Cause(("throttling", state.device), what, step, evidence=state.source, devices=devices)


def _redirections(system: System, conditions: MachineConditions) -> Iterator[Cause]:
    """ACS and the IOMMU, where they turn traffic between two devices that a switch joins up to the root port."""
    free, policies = with_intended_policies(system), system.policies
    acs = replace(free, policies=replace(free.policies, acs_redirect=policies.acs_redirect))
    if policies.acs_redirect and (pairs := _with_longer_routes(free, acs)):
        ports = conditions.redirecting(*policies.acs_redirect)
        step = "turn it off unless virtual machines need it: boot with pci=disable_acs_redir=..., or " + (
            f"sudo setpci -s {ports[0].port} ECAP_ACS+6.w=0000 for each port"
            if ports and ports[0].port
            else "setpci at each port"
        )
        names = ", ".join(sorted(policies.acs_redirect))
        what = f"ACS at {names} sends traffic between {_pairs_text(pairs)} up to the root port and back"
        evidence = ports[0].source if ports else system.source
        change = changes.acs_redirection(policies.acs_redirect)
        yield Cause(("acs",), what, step, evidence=evidence, change=change, fault=True, devices=_of(pairs))
    iommu = replace(free, policies=replace(free.policies, iommu=policies.iommu))
    if policies.iommu == "translate" and (pairs := _with_longer_routes(free, iommu)):
        what = f"the IOMMU translates, so traffic between {_pairs_text(pairs)} goes up to the root port and back"
        step = "boot with iommu=pt (or amd_iommu=off, intel_iommu=off), then: cat /sys/kernel/iommu_groups/*/type"
        change = changes.iommu_translation()
        yield Cause(("iommu",), what, step, evidence=system.source, change=change, fault=True, devices=_of(pairs))


def _with_longer_routes(free: System, bound: System) -> list[tuple[str, str]]:
    """The pairs, one of them a GPU, whose route is longer on `bound` than on `free`."""
    pairs = []
    for a, b in combinations(free.of_kind(Kind.GPU, Kind.NIC), 2):
        if Kind.GPU not in (free.device(a).kind, free.device(b).kind):
            continue
        try:
            if len(route(bound, a, b).hops) > len(route(free, a, b).hops):
                pairs.append((a, b))
        except LanewiseError:
            continue
    return pairs


def _no_peers(conditions: MachineConditions, by_design: frozenset[frozenset[str]], expected: System) -> Iterator[Cause]:
    """Pairs that should be peers and that the driver says are none, those of one reason together."""
    should = {frozenset((pair.a, pair.b)) for pair in peers(expected) if pair.allowed} - by_design
    lost: dict[str, dict[frozenset[str], PeerState]] = defaultdict(dict)
    for state in _of_peers(conditions):
        pair = frozenset((state.a, state.b))
        if state.possible is False and pair in should:
            lost[state.status].setdefault(pair, state)
    for status, states in lost.items():
        pairs = [(state.a, state.b) for state in states.values()]
        reason = STATUS.get(status, status)
        what = f"{_pairs_text(pairs)} {'are' if len(pairs) == 1 else 'are state'} no peers, by the driver: {reason}"
        step = "nvidia-smi topo -p2p r; look at ACS and IOMMU, at BAR1 (Above 4G Decoding), at the driver"
        source = next(iter(states.values())).source
        change = changes.no_peer_access(frozenset(states))
        yield Cause(("peers", status), what, step, evidence=source, change=change, fault=True, devices=_of(pairs))


def _missing(actual_system: System, target: System) -> Iterator[Cause]:
    for kind, word in ((Kind.GPU, "GPU"), (Kind.NIC, "network card"), (Kind.SSD, "drive"), (Kind.RAID, "controller")):
        actual, should = len(actual_system.of_kind(kind)), len(target.of_kind(kind))
        if actual < should:
            many = should - actual
            what = f"{many} {word}{'s' if many > 1 else ''} missing: {target.name} has {should}, found {actual}"
            step = "lspci -nn; dmesg | grep -iE 'pcie|Xid'; reseat what is missing"
            yield Cause(("missing", kind.value), what, step, evidence=actual_system.source, fault=True)


def _lesser_links(actual_system: System, target: System) -> Iterator[Cause]:
    """Devices of one name whose link can do less than it should: the wrong slot, riser or cable."""
    for name in target.of_kind(Kind.GPU, Kind.NIC, Kind.SSD):
        should = changes.link_above(target, name)
        actual = changes.link_above(actual_system, name) if name in actual_system.devices else None
        # Cards and drives of two descriptions may be numbered otherwise: only like is compared with like.
        if should is None or actual is None or actual_system.device(name).part != target.device(name).part:
            continue
        figures = ((actual.gen, should.gen), (actual.lanes, should.lanes))
        if any(have is not None and have < (want or 0) for have, want in figures):
            can = speed(actual.gen, actual.lanes)
            what = f"the link of {name} can be no more than {can}, {target.name} has {speed(should.gen, should.lanes)}"
            step = "look which slot, riser or cable it is in: sudo lspci -tv; sudo lspci -vv | grep LnkCap"
            change = changes.link_speed(name, actual.gen, actual.lanes)
            evidence, devices = actual_system.source, frozenset({name})
            yield Cause(("slot", name), what, step, evidence=evidence, change=change, fault=True, devices=devices)


def _pairs_text(pairs: Iterable[tuple[str, str]]) -> str:
    texts = [f"{a} and {b}" for a, b in pairs]
    shown = ", ".join(texts[:3])
    return f"{shown} and {len(texts) - 3} more pairs" if len(texts) > 3 else shown


def _of(pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    return frozenset(name for pair in pairs for name in pair)
