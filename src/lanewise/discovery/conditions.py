"""What a discovered machine's facts say of its condition: every link now and at most, ACS, NUMA nodes, peers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lanewise.discovery.draft import DraftLink, SystemDraft
from lanewise.discovery.facts import MACHINE, MachineFacts
from lanewise.results.conditions import AcsState, LinkState, MachineConditions, NumaState, OffBus, PeerState, Throttle
from lanewise.topology.model import Kind

_LINK = ("gen", "lanes", "gen_now", "lanes_now")


def conditions(merged: MachineFacts, draft: SystemDraft, notes: tuple[str, ...]) -> MachineConditions:
    """The conditions of a discovered machine, by the names of its system."""
    load = merged.value(MACHINE, "under_load")
    under_load = load if isinstance(load, bool) else None
    acs = ((device, port, merged.fact(port, "acs")) for port, device in draft.ports.items())
    throttles = (
        (gpu.name, next((fact for bdf in gpu.addresses if (fact := merged.fact(bdf, "throttle"))), None))
        for gpu in draft.of_kind(Kind.GPU)
    )
    return MachineConditions(
        links=tuple(
            _link(edge, under_load, merged)
            for edge in draft.links
            if any(merged.value(end, key) is not None for end in (edge.upper, edge.lower) for key in _LINK)
        ),
        acs=tuple(AcsState(device, port, fact.value is True, str(fact.source)) for device, port, fact in acs if fact),
        numa=tuple(_numa(merged, draft)),
        p2p=tuple(_peers(merged, draft)),
        throttles=tuple(
            Throttle(name, tuple(str(fact.value).split(", ")), str(fact.source)) for name, fact in throttles if fact
        ),
        off_bus=tuple(
            OffBus(node.name, bdf, str(fact.source))
            for node in draft.devices.values()
            for bdf in node.addresses
            if (fact := merged.fact(bdf, "off_bus"))
        ),
        iommu=merged.word(MACHINE, "iommu"),
        under_load=under_load,
        notes=notes,
    )


def _link(edge: DraftLink, under_load: bool | None, merged: MachineFacts) -> LinkState:
    def both(key: str) -> int | None:
        ends = [merged.number(end, key) for end in (edge.upper, edge.lower) if end]
        return min((value for value in ends if value is not None), default=None)

    ends = [(end, key) for end in (edge.lower, edge.upper) for key in ("lanes_now", "gen_now", "lanes", "gen")]
    source = next((str(fact.source) for end, key in ends if (fact := merged.fact(end, key))), "")
    return LinkState(
        edge.b, edge.upper, both("gen"), both("lanes"), both("gen_now"), both("lanes_now"), under_load, source,
        above=edge.a,
        device_gen=merged.number(edge.lower, "gen"), device_lanes=merged.number(edge.lower, "lanes"),
        port_gen=merged.number(edge.upper, "gen"), port_lanes=merged.number(edge.upper, "lanes"),
    )  # fmt: skip


def _numa(merged: MachineFacts, draft: SystemDraft) -> Iterator[NumaState]:
    for node in draft.devices.values():
        if node.kind in (Kind.CPU, Kind.NVSWITCH) or not node.addresses:
            continue
        bdf = node.addresses[0]
        fact = merged.fact(bdf, "numa")
        source = str(fact.source) if fact else ""
        yield NumaState(node.name, merged.number(bdf, "numa"), draft.root_nodes.get(bdf), source)


def _peers(merged: MachineFacts, draft: SystemDraft) -> Iterator[PeerState]:
    """The first source of every pair and ability; the better kinds of dumps come first."""
    reported: set[tuple[str, str, str]] = set()
    for peer in merged.peers:
        a, b = draft.names.get(peer.a, ""), draft.names.get(peer.b, "")
        if a and b and (a, b, peer.ability) not in reported:
            reported.add((a, b, peer.ability))
            yield replace(peer, a=a, b=b)
