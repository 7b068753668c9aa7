"""What the captures say is wrong with a machine, before anything is measured: each with where it stands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from lanewise.checking import change as changes
from lanewise.checking.change import Change
from lanewise.errors import LanewiseError
from lanewise.results.conditions import STATUS, Conditions, LinkState, PeerState
from lanewise.routes.find import route
from lanewise.routes.matrix import peers
from lanewise.topology.model import Kind, System

# Chipset, GPU or topology not supported.
_BY_DESIGN = ("CNS", "GNS", "TNS")
_REACH = ("read", "write", "peers")
_IDLE = ("idle", "gpu_idle", "none", "not active", "")


@dataclass(frozen=True, slots=True)
class Suspect:
    """Something that would slow paths down: `key` tells suspects apart, `what` names it in a clause.

    `evidence` is where it was observed (empty: no direct evidence), `step` the command to type next, `change` how the
    model predicts with it (None: it cannot). A `fault` is reported even if no path suffers; a `sign` only shows
    that something is wrong. `devices`: whose.
    """

    key: tuple[str, ...]
    what: str
    step: str
    evidence: str = ""
    change: Change | None = None
    fault: bool = False
    devices: frozenset[str] = frozenset()
    sign: bool = False


@dataclass(frozen=True, slots=True)
class Packets:
    """Max payload in use and at most and the read request size of a device in B, its NVLinks that are down.

    None is unknown.
    """

    device: str
    payload: int | None = None
    most: int | None = None
    read_request: int | None = None
    nvlinks_off: int | None = None


@dataclass(frozen=True)
class Machine:
    """What was read of the machine itself: its system, conditions and packet sizes; `system` None: nothing."""

    system: System | None = None
    conditions: Conditions = field(default_factory=Conditions)
    packets: tuple[Packets, ...] = ()


def intended(system: System) -> System:
    """A system as found with the policies that it should have: no ACS redirection, no translating IOMMU."""
    iommu = "off" if system.policies.iommu == "translate" else system.policies.iommu
    return replace(system, policies=replace(system.policies, acs_redirect=frozenset(), iommu=iommu))


def suspects(machine: Machine, target: System | None) -> tuple[Suspect, ...]:
    """All that captures and driver say against the machine; `target` is what it should be, if that is known."""
    all_suspects = [*_links(machine.conditions), *_numa(machine.conditions), *_packets(machine.packets)]
    all_suspects += _nvlinks(machine.packets)
    all_suspects += _throttles(machine.conditions)
    if machine.system is not None:
        all_suspects += _redirections(machine)
    expected = target or (intended(machine.system) if machine.system is not None else None)
    if expected is not None:
        natural = apart_by_design(machine) if target is None else frozenset()
        lost = [state for state in _of_peers(machine) if frozenset((state.a, state.b)) not in natural]
        all_suspects += _no_peers(lost, expected)
    if target is not None and machine.system is not None:
        all_suspects += [*_missing(machine.system, target), *_lesser_links(machine.system, target)]
    return tuple(all_suspects)


def apart_by_design(machine: Machine) -> frozenset[frozenset[str]]:
    """The pairs that the driver calls no peers because of what the machine is built of: that is no fault of it."""
    return frozenset(frozenset((state.a, state.b)) for state in _of_peers(machine) if state.status in _BY_DESIGN)


def _of_peers(machine: Machine) -> list[PeerState]:
    """What the driver says of peers; of PCIe alone only where a pair has no other way: NVLink has no need of it."""
    states = machine.conditions.p2p
    reach = {frozenset((state.a, state.b)) for state in states if state.ability in _REACH and state.possible}
    return [
        state
        for state in states
        if state.ability in _REACH or (state.ability == "pci" and frozenset((state.a, state.b)) not in reach)
    ]


def trained(device: str, gen: int | None, lanes: int | None, could: str, seen: str, port: str = "") -> Suspect:
    """A link that runs below what it `could`; without evidence (`seen`) it may do so."""
    verb = "runs" if seen else "may be running"
    port_text, could_text = f" below {port}" if port else "", f" ({could})" if could else ""
    what = f"{device}'s link {verb} at {speed(gen, lanes)}{port_text}{could_text}"
    look = f"sudo lspci -vv -s {port} | grep Lnk" if port else "sudo lspci -vv | grep -E '^[0-9a-f]|LnkSta:'"
    step = f"reseat the card or its cable, try another slot, then look again under load: {look}"
    change = changes.narrower(device, gen, lanes)
    return Suspect(("link", device), what, step, seen, change, True, frozenset({device}))


def speed(gen: int | None, lanes: int | None) -> str:
    """A link's speed as people write it."""
    return f"Gen{gen or '?'} x{lanes or '?'}"


def _links(conditions: Conditions) -> Iterator[Suspect]:
    for link in conditions.links:
        if not link.narrow and not (link.slow and link.under_load):
            continue
        gen = link.gen_now if link.slow and link.under_load else link.gen
        seen = f"{link.source}{', under load' if link.under_load else ''}"
        best = speed(link.gen, link.lanes)
        # Without what the port can do, a slot of fewer lanes is as likely as a fault.
        both = link.port_lanes is not None and link.device_lanes is not None
        could = f"both ends support {best}" if both else f"one end supports {best}, the other is not in the dump"
        yield replace(trained(link.device, gen, link.lanes_now, could, seen, link.port), fault=both)


def idle_links(conditions: Conditions) -> Iterator[LinkState]:
    """Links that ran at a lower generation when nobody says that they were busy: no fault of an idle GPU."""
    yield from (link for link in conditions.links if link.slow and not link.under_load)


def _numa(conditions: Conditions) -> Iterator[Suspect]:
    for state in conditions.numa:
        if not state.differs or state.node is None:
            continue
        what = f"{state.device} states NUMA node {state.node}, the root port above it belongs to node {state.root_node}"
        step = (
            "update the firmware, or bind by hand: "
            f"numactl --cpunodebind={state.root_node} --membind={state.root_node} COMMAND"
        )
        moved = changes.far_memory(state.node, state.device)
        yield Suspect(("numa", state.device), what, step, state.source, moved, True, frozenset({state.device}))


def _packets(packets: tuple[Packets, ...]) -> Iterator[Suspect]:
    """Packets smaller than a device can; what its port can do is not known here, so this is no fault by itself."""
    for state in packets:
        if state.payload is not None and state.most is not None and state.payload < state.most:
            what = f"max payload of {state.device} is {state.payload} B, it can {state.most} B"
            step = "boot with pci=pcie_bus_perf, or set the payload in the firmware; then: sudo lspci -vv | grep MaxPay"
            change = changes.payload(state.device, state.payload)
            yield Suspect(("payload", state.device), what, step, "lspci", change, False, frozenset({state.device}))
        if state.read_request is not None and state.read_request < 512:
            what = f"read requests of {state.device} ask for {state.read_request} B, 512 B and more are usual"
            step = "raise it in the firmware or the device's settings; then: sudo lspci -vv | grep MaxReadReq"
            yield Suspect(("read request", state.device), what, step, "lspci", None, False, frozenset({state.device}))


def _nvlinks(packets: tuple[Packets, ...]) -> Iterator[Suspect]:
    """NVLinks that are down: no fault by itself, as a bridge need not take all that a card has."""
    for state in packets:
        if state.nvlinks_off:
            what = f"{state.nvlinks_off} NVLinks of {state.device} are down"
            step = "nvidia-smi nvlink -s; nvidia-smi nvlink -e; dmesg | grep -i xid"
            change = changes.fewer_nvlinks(state.device, state.nvlinks_off)
            yield Suspect(("nvlink", state.device), what, step, "nvlink -s", change, False, frozenset({state.device}))


def _throttles(conditions: Conditions) -> Iterator[Suspect]:
    for state in conditions.throttles:
        reasons = [reason for reason in state.reasons if reason.lower() not in _IDLE]
        if reasons:
            what = f"the clocks of {state.device} are held down: {', '.join(reasons)}"
            step = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"
            devices = frozenset({state.device})
            yield Suspect(("throttling", state.device), what, step, state.source, None, False, devices)


def _redirections(machine: Machine) -> Iterator[Suspect]:
    """ACS and the IOMMU, where they turn traffic between two devices that a switch joins up to the root port."""
    system, conditions = machine.system, machine.conditions
    if system is None:
        return
    free, policies = intended(system), system.policies
    if policies.acs_redirect:
        acs = replace(free, policies=replace(free.policies, acs_redirect=policies.acs_redirect))
        turned = _turned(free, acs)
        if turned:
            ports = conditions.redirecting(*policies.acs_redirect)
            step = "turn it off unless virtual machines need it: boot with pci=disable_acs_redir=..., or " + (
                f"sudo setpci -s {ports[0].port} ECAP_ACS+6.w=0000 for each port"
                if ports and ports[0].port
                else "setpci at each port"
            )
            names = ", ".join(sorted(policies.acs_redirect))
            what = f"ACS at {names} sends traffic between {_pairs(turned)} up to the root port and back"
            seen = ports[0].source if ports else system.source
            change = changes.redirected(policies.acs_redirect)
            yield Suspect(("acs",), what, step, seen, change, True, _of(turned))
    if policies.iommu == "translate":
        turned = _turned(free, replace(free, policies=replace(free.policies, iommu="translate")))
        if turned:
            what = f"the IOMMU translates, so traffic between {_pairs(turned)} goes up to the root port and back"
            step = "boot with iommu=pt (or amd_iommu=off, intel_iommu=off), then: cat /sys/kernel/iommu_groups/*/type"
            yield Suspect(("iommu",), what, step, system.source, changes.translated(), True, _of(turned))


def _turned(free: System, bound: System) -> list[tuple[str, str]]:
    """The pairs, one of them a GPU, whose way is longer than it would be without."""
    names = free.of_kind(Kind.GPU, Kind.NIC)
    found = []
    for a, b in combinations(names, 2):
        if Kind.GPU not in (free.device(a).kind, free.device(b).kind):
            continue
        try:
            longer = len(route(bound, a, b).hops) > len(route(free, a, b).hops)
        except LanewiseError:
            continue
        found += [(a, b)] if longer else []
    return found


def _no_peers(states: Sequence[PeerState], expected: System) -> Iterator[Suspect]:
    """Pairs that should be peers and that the driver says are none, those of one reason together."""
    should = {frozenset((pair.a, pair.b)) for pair in peers(expected) if pair.allowed}
    lost: dict[str, dict[frozenset[str], PeerState]] = defaultdict(dict)
    for state in states:
        pair = frozenset((state.a, state.b))
        if state.possible is False and pair in should:
            lost[state.status].setdefault(pair, state)
    for status, pairs in lost.items():
        named = [(state.a, state.b) for state in pairs.values()]
        reason = STATUS.get(status, status)
        what = f"{_pairs(named)} {'are' if len(named) == 1 else 'are state'} no peers, by the driver: {reason}"
        step = "nvidia-smi topo -p2p r; look at ACS and IOMMU, at the driver's version, at other GPUs between them"
        source = next(iter(pairs.values())).source
        change = changes.no_peers(frozenset(pairs))
        yield Suspect(("peers", status), what, step, source, change, True, _of(named))


def _missing(actual_system: System, target: System) -> Iterator[Suspect]:
    for kind, word in ((Kind.GPU, "GPU"), (Kind.NIC, "network card"), (Kind.SSD, "drive"), (Kind.RAID, "controller")):
        actual, should = actual_system.of_kind(kind), target.of_kind(kind)
        if len(actual) < len(should):
            many = len(should) - len(actual)
            what = (
                f"{many} {word}{'s' if many > 1 else ''} missing: {target.name} has {len(should)}, found {len(actual)}"
            )
            step = "lspci -nn; dmesg | grep -iE 'pcie|Xid'; reseat what is missing"
            yield Suspect(("missing", kind.value), what, step, actual_system.source, None, True)


def _lesser_links(actual_system: System, target: System) -> Iterator[Suspect]:
    """Devices of one name whose link can do less than it should: the wrong slot, riser or cable."""
    for name in target.of_kind(Kind.GPU, Kind.NIC, Kind.SSD):
        should = changes.link_above(target, name)
        actual = changes.link_above(actual_system, name) if name in actual_system.devices else None
        # Cards and drives of two descriptions may be numbered otherwise: only like is compared with like.
        if should is None or actual is None or actual_system.device(name).part != target.device(name).part:
            continue
        less = [
            (have or 0) < (want or 0) and have is not None
            for have, want in ((actual.gen, should.gen), (actual.lanes, should.lanes))
        ]
        if any(less):
            can = speed(actual.gen, actual.lanes)
            what = f"the link of {name} can be no more than {can}, {target.name} has {speed(should.gen, should.lanes)}"
            step = "look which slot, riser or cable it is in: sudo lspci -tv; sudo lspci -vv | grep LnkCap"
            change = changes.narrower(name, actual.gen, actual.lanes)
            yield Suspect(("slot", name), what, step, actual_system.source, change, True, frozenset({name}))


def _pairs(pairs: list[tuple[str, str]]) -> str:
    shown = ", ".join(f"{a} and {b}" for a, b in pairs[:3])
    return f"{shown} and {len(pairs) - 3} more pairs" if len(pairs) > 3 else shown


def _of(pairs: list[tuple[str, str]]) -> frozenset[str]:
    return frozenset(name for pair in pairs for name in pair)
