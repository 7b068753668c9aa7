"""What a discovered machine's facts say of its condition: every link now and at most, ACS, NUMA nodes, peers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lanewise.discovery.facts import MACHINE
from lanewise.results.conditions import AcsState, Conditions, LinkState, NumaState, PeerState, Throttle
from lanewise.topology.model import Kind

if TYPE_CHECKING:
    from lanewise.discovery.build import Discovery
    from lanewise.discovery.draft import DraftLink
    from lanewise.discovery.merge import Merged

_LINK = ("gen", "lanes", "gen_now", "lanes_now")


def conditions(discovery: Discovery) -> Conditions:
    """The conditions of a discovered machine, by the names of its system."""
    merged, draft = discovery.merged, discovery.draft
    load = merged.value(MACHINE, "under_load")
    under_load = load if isinstance(load, bool) else None
    return Conditions(
        links=tuple(_link(edge, under_load, merged) for edge in draft.links if _has_speed(edge, merged)),
        acs=tuple(_acs(discovery)),
        numa=tuple(_numa(discovery)),
        p2p=tuple(_peers(discovery)),
        throttles=tuple(_throttles(discovery)),
        iommu=merged.word(MACHINE, "iommu"),
        under_load=under_load,
        notes=discovery.system.assumptions,
    )


def _has_speed(edge: DraftLink, merged: Merged) -> bool:
    return any(merged.value(end, key) is not None for end in (edge.upper, edge.lower) for key in _LINK)


def _link(edge: DraftLink, under_load: bool | None, merged: Merged) -> LinkState:
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


def _acs(discovery: Discovery) -> Iterator[AcsState]:
    for port, device in discovery.draft.ports.items():
        fact = discovery.merged.fact(port, "acs")
        if fact:
            yield AcsState(device, port, fact.value is True, str(fact.source))


def _numa(discovery: Discovery) -> Iterator[NumaState]:
    for node in discovery.draft.devices.values():
        if node.kind in (Kind.CPU, Kind.NVSWITCH) or not node.addresses:
            continue
        bdf = node.addresses[0]
        fact = discovery.merged.fact(bdf, "numa")
        yield NumaState(
            node.name, discovery.merged.number(bdf, "numa"), discovery.draft.root_nodes.get(bdf),
            str(fact.source) if fact else "",
        )  # fmt: skip


def _peers(discovery: Discovery) -> Iterator[PeerState]:
    """The first source of every pair and ability; the better kinds of dumps come first."""
    reported: set[tuple[str, str, str]] = set()
    for peer in discovery.merged.peers:
        a, b = discovery.draft.names.get(peer.a, ""), discovery.draft.names.get(peer.b, "")
        if a and b and (a, b, peer.ability) not in reported:
            reported.add((a, b, peer.ability))
            yield PeerState(a, b, peer.ability, peer.status, str(peer.source))


def _throttles(discovery: Discovery) -> Iterator[Throttle]:
    for node in discovery.draft.of_kind(Kind.GPU):
        fact = next((f for bdf in node.addresses if (f := discovery.merged.fact(bdf, "throttle"))), None)
        if fact:
            yield Throttle(node.name, tuple(str(fact.value).split(", ")), str(fact.source))
