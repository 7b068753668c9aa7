"""What a device of a composition loads while it is active: a flow between it and the memory of its server."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from lanewise.catalog import Catalog
from lanewise.errors import LanewiseError
from lanewise.perf.flow import Flow
from lanewise.perf.flow_demand import FlowDemand, flow_demand
from lanewise.perf.resources import Resource
from lanewise.pool.equivalence import place
from lanewise.pool.model import Composition, PathRequirement, Pool, ResourceBlock
from lanewise.routes.model import LinkDirection
from lanewise.topology.model import Kind, RouteCacheKey, System

_OF_A_FABRIC = ("window", "host_link")


@dataclass(frozen=True, eq=False)
class PathLoad:
    """What 1 B/s to a device takes of resources that others use too, and the most its own ones give (`cap`, B/s).

    `hops` is the number of links on the path. Devices of one class have one load, compared by identity.
    """

    shared: tuple[tuple[Resource, float], ...]
    cap: float
    hops: int


def active_flow(kind: Kind, device: str, server: str) -> Flow:
    """The flow of an active device: from a drive to memory, from memory to a GPU or network card."""
    return Flow(device, server) if kind is Kind.SSD else Flow(server, device)


# Of the cables of a system, the load of each class of devices on each server, and the catalogue that it rests on.
_LOADS: WeakKeyDictionary[RouteCacheKey, tuple[Catalog, dict[Hashable, PathLoad]]] = WeakKeyDictionary()


def path_load(system: System, block: ResourceBlock, server: str) -> PathLoad:
    """The load of a block attached to a server in `system`; Unreachable if nothing known would limit its flow."""
    catalog, loads = _LOADS.get(system.cabling_key, (None, {}))
    if catalog is not system.catalog:
        loads = {}
        _LOADS[system.cabling_key] = system.catalog, loads
    domain = system.domain_of(block.device)
    same = (server, block.kind, block.part, place(system, block.device), domain and (domain.name, domain.root))
    if same not in loads:
        loads[same] = load_of(flow_demand(system, active_flow(block.kind, block.device, server)), block.device)
    return loads[same]


def load_of(demand: FlowDemand, device: str) -> PathLoad:
    """A flow's demand with all resources that only this device uses as its cap."""
    shared = []
    cap = demand.cap()
    for resource, amount in demand.per_byte.items():
        if _is_own(resource, device):
            cap = min(cap, resource.capacity / amount if amount else math.inf)
        else:
            shared.append((resource, amount))
    return PathLoad(tuple(shared), cap, len(demand.routes[0].hops))


def _is_own(resource: Resource, device: str) -> bool:
    place = resource.place
    ends = (place.start, place.end) if isinstance(place, LinkDirection) else place
    return device in ends and resource.kind not in _OF_A_FABRIC


def required_rates(
    pool: Pool, blocks: Iterable[str], requirements: Iterable[PathRequirement]
) -> dict[str, float | None]:
    """The rate in B/s that each of the blocks must have: requirements are given out in order, None for what is left."""
    rates: dict[str, float | None] = dict.fromkeys(blocks)
    left = list(rates)
    for requirement in requirements:
        fitting = [name for name in left if fits(pool.blocks[name], requirement)][: requirement.count]
        rates.update(dict.fromkeys(fitting, requirement.rate))
        left = [name for name in left if name not in fitting]
    return rates


def fits(block: ResourceBlock, requirement: PathRequirement) -> bool:
    """Whether a block is of the kind and part that a requirement names."""
    return block.kind is requirement.kind and requirement.part in (None, block.part)


def paired_cards(pool: Pool, blocks: Iterable[str], requirements: Iterable[PathRequirement]) -> tuple[str, ...]:
    """The network cards that came along with other devices; they carry what those do instead of host memory."""
    every = list(requirements)
    cards = [name for name in blocks if pool.blocks[name].kind is Kind.NIC]
    number = sum(requirement.count for requirement in every if requirement.kind is Kind.NIC)
    return tuple(cards[number:]) if any(requirement.nics for requirement in every) else ()


def active_blocks(pool: Pool, composition: Composition) -> tuple[str, ...]:
    """The blocks of a composition that are attached to its server now and carry data to or from its memory."""
    paired = paired_cards(pool, composition.blocks, composition.requirements)
    return tuple(
        name for name in composition.blocks
        if name not in paired and pool.system.device(pool.block(name).device).host == composition.server
    )  # fmt: skip


def loads_of(pool: Pool, composition: Composition) -> dict[str, PathLoad]:
    """The load of each active block of a composition; a block of which nothing is known is left out."""
    loads: dict[str, PathLoad] = {}
    for name in active_blocks(pool, composition):
        with suppress(LanewiseError):
            loads[name] = path_load(pool.system, pool.block(name), composition.server)
    return loads
