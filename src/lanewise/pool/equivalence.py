"""Which free blocks and which free servers are alike, so that a choice among thousands is one among a few classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from lanewise.pool.model import Pool, ReservationState, ResourceBlock
from lanewise.topology.model import Device, Kind, Link, System


@dataclass(frozen=True, slots=True)
class BlockClass:
    """Free blocks of one part at one place in the tree, in the order of the description; any of them does as well."""

    kind: Kind
    part: str | None
    above: str
    blocks: tuple[str, ...]


def block_classes(pool: Pool) -> tuple[BlockClass, ...]:
    """The classes of all free blocks, in the order of their first block."""
    members: dict[Hashable, list[ResourceBlock]] = defaultdict(list)
    for block in pool.free():
        members[(block.kind, block.part, place(pool.system, block.device))].append(block)
    return tuple(
        BlockClass(same[0].kind, same[0].part, above(pool.system, same[0].device), tuple(block.name for block in same))
        for same in members.values()
    )


def above(system: System, device: str) -> str:
    """The device that a block is cabled to, '' without a cable."""
    links = system.links_at(device)
    return links[0].far_end(device) if links else ""


def place(system: System, device: str) -> Hashable:
    """Where a device hangs and by which links: equal for devices of one part that can take each other's place."""
    return frozenset(
        (link.far_end(device), _figures(link), _groups(system.device(link.far_end(device)), device))
        for link in system.links_at(device)
    )


def free_servers(pool: Pool) -> tuple[str, ...]:
    """The servers that have no composition and that no reservation keeps."""
    reserved = {one.server for one in pool.reservations.values() if one.state is ReservationState.ACTIVE}
    return tuple(name for name in pool.servers if name not in reserved and pool.composition_on(name) is None)


def server_classes(pool: Pool) -> tuple[tuple[str, ...], ...]:
    """Free servers, those together that have the same parts cabled alike to the same devices of the fabric."""
    own: dict[str, list[Device]] = defaultdict(list)
    for device in pool.system.devices.values():
        if device.host is not None and device.name not in pool.blocks:
            own[device.host].append(device)
    members: dict[Hashable, list[str]] = defaultdict(list)
    for server in free_servers(pool):
        members[_build(pool.system, own[server])].append(server)
    return tuple(tuple(names) for names in members.values())


def _build(system: System, own: list[Device]) -> Hashable:
    """What a server is made of, its devices by their index and all others by name."""
    number = {device.name: index for index, device in enumerate(own)}
    policies = system.policies
    devices = tuple(
        (
            device.kind, device.part, device.numa, device.numa_nodes, device.shared,
            policies.peer_scope.get(device.name), device.name in policies.acs_redirect,
            device.name in policies.staging.values(), _numbered_groups(device, number),
        )
        for device in own
    )  # fmt: skip
    links = tuple(
        (
            index,
            number.get(link.far_end(name), link.far_end(name)),
            link.a == name,
            link.port,
            link.bridge,
            *_figures(link),
        )
        for name, index in number.items()
        for link in system.links_at(name)
    )
    domains = tuple(number[domain.root] for domain in system.domains if domain.root in number)
    return devices, links, domains


def _figures(link: Link) -> tuple[Hashable, ...]:
    """What a link carries, whichever devices it joins."""
    return link.kind, link.gen, link.lanes, link.rate, link.count, link.max_payload, link.length


def _groups(switch: Device, neighbour: str) -> frozenset[int]:
    return frozenset(index for index, group in enumerate(switch.partitions) if neighbour in group)


def _numbered_groups(device: Device, number: Mapping[str, int]) -> Hashable:
    return tuple(frozenset(number.get(name, name) for name in group) for group in device.partitions)
