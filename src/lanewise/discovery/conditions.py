"""What a discovered machine's facts say of its condition: every link now and at most, ACS, NUMA nodes, peers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lanewise.discovery.facts import MACHINE
from lanewise.results.conditions import AcsState, Conditions, LinkState, NumaState, PeerState, Throttle
from lanewise.topology.model import Kind

if TYPE_CHECKING:
    from lanewise.discovery.build import Discovery
    from lanewise.discovery.merge import Merged
    from lanewise.discovery.shape import Edge

_LINK = ("gen", "lanes", "gen_now", "lanes_now")


def conditions(found: Discovery) -> Conditions:
    """The conditions of a discovered machine, by the names of its system."""
    merged, shape = found.merged, found.shape
    load = merged.value(MACHINE, "under_load")
    under_load = load if isinstance(load, bool) else None
    return Conditions(
        links=tuple(_link(edge, under_load, merged) for edge in shape.edges if _said(edge, merged)),
        acs=tuple(_acs(found)),
        numa=tuple(_numa(found)),
        p2p=tuple(_peers(found)),
        throttles=tuple(_throttles(found)),
        iommu=merged.word(MACHINE, "iommu"),
        under_load=under_load,
        notes=found.system.assumptions,
    )


def _said(edge: Edge, merged: Merged) -> bool:
    return any(merged.value(end, key) is not None for end in (edge.upper, edge.lower) for key in _LINK)


def _link(edge: Edge, under_load: bool | None, merged: Merged) -> LinkState:
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


def _acs(found: Discovery) -> Iterator[AcsState]:
    for port, device in found.shape.ports.items():
        fact = found.merged.fact(port, "acs")
        if fact:
            yield AcsState(device, port, fact.value is True, str(fact.source))


def _numa(found: Discovery) -> Iterator[NumaState]:
    for node in found.shape.nodes.values():
        if node.kind in (Kind.CPU, Kind.NVSWITCH) or not node.addresses:
            continue
        here = node.addresses[0]
        fact = found.merged.fact(here, "numa")
        yield NumaState(
            node.name, found.merged.number(here, "numa"), found.shape.root_nodes.get(here),
            str(fact.source) if fact else "",
        )  # fmt: skip


def _peers(found: Discovery) -> Iterator[PeerState]:
    """The first source of every pair and ability; the better kinds of dumps come first."""
    said: set[tuple[str, str, str]] = set()
    for peer in found.merged.peers:
        a, b = found.shape.called.get(peer.a, ""), found.shape.called.get(peer.b, "")
        if a and b and (a, b, peer.ability) not in said:
            said.add((a, b, peer.ability))
            yield PeerState(a, b, peer.ability, peer.status, str(peer.source))


def _throttles(found: Discovery) -> Iterator[Throttle]:
    for node in found.shape.of_kind(Kind.GPU):
        fact = next((f for here in node.addresses if (f := found.merged.fact(here, "throttle"))), None)
        if fact:
            yield Throttle(node.name, tuple(str(fact.value).split(", ")), str(fact.source))
