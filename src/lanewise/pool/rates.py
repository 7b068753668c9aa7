"""The rates of all compositions of a pool at once, before and after a placement, and how good the placement is."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from lanewise.errors import LanewiseError
from lanewise.perf.resources import Resource
from lanewise.perf.sharing import Shares, SolverFlow, share
from lanewise.pool.loads import PathLoad, loads_of, required_rates
from lanewise.pool.model import BlockState, Composition, CompositionState, Pool, ReservationState, is_enough
from lanewise.topology.compose import attach
from lanewise.topology.model import System


@dataclass(frozen=True, slots=True)
class TenantPaths:
    """Devices of one composition with one load, each with `before` B/s while everything is active."""

    composition: str
    devices: tuple[str, ...]
    load: PathLoad
    required: float | None
    before: float = 0.0

    @property
    def kept(self) -> bool:
        """Whether they have now what was requested."""
        return is_enough(self.before, self.required)


@dataclass(frozen=True, slots=True)
class OwnPaths:
    """`count` devices of one load that a placement adds, each with the requested rate in B/s."""

    load: PathLoad
    count: int
    required: float | None


@dataclass(frozen=True, slots=True)
class PlacementScore:
    """How good a placement is; less is better, one after the other.

    `broken` counts devices of others that would no longer have what they were promised, `shortfall` is the largest
    missing part of a requested rate (0..1), `lost` is what others lose, `total` what this composition gets, and
    `slowest` what its slowest path gets, in B/s.
    """

    broken: int
    shortfall: float
    lost: float
    total: float
    slowest: float
    hops: int

    @property
    def key(self) -> tuple[float, ...]:
        """What placements are sorted by; rates that differ by less than 1 MB/s count as equal."""
        lost, total, slowest = (round(rate, -6) for rate in (self.lost, self.total, self.slowest))
        return self.broken, round(self.shortfall, 6), lost, -total, -slowest, self.hops

    @property
    def good(self) -> bool:
        """Whether everybody has what was requested."""
        return not self.broken and self.shortfall == 0


class PoolRates:
    """All paths of a pool's compositions, and what they get when others come: weighted max-min over all resources."""

    def __init__(self, pool: Pool) -> None:
        self._numbers: dict[Resource, int] = {}
        self._capacities: list[float] = []
        self._flows: dict[PathLoad, SolverFlow] = {}
        tenants = list(_tenant_paths(pool))
        self._tenant_flows = [self._flow(tenant.load, len(tenant.devices)) for tenant in tenants]
        shares = share(self._capacities, self._tenant_flows) if tenants else Shares((), (), ())
        self.tenants = [replace(tenant, before=rate) for tenant, rate in zip(tenants, shares.rates, strict=True)]
        used = zip(shares.utilization, self._capacities, strict=True)
        self._left = {number: capacity * (1 - share_used) for number, (share_used, capacity) in enumerate(used)}
        self._component, self._members = self._components()

    def after(self, own: Sequence[OwnPaths]) -> tuple[list[float], dict[int, float]]:
        """The rate of each device of `own`, and of the tenants, by number, that may get another one, in B/s."""
        flows = [self._flow(paths.load, paths.count) for paths in own]
        alone, loads = self._alone(flows)
        # Where both fit, everybody keeps what limits him: the rates of the two together are max-min fair as they are.
        if all(load <= self._left.get(number, math.inf) for number, load in loads.items()):
            return alone, {}
        components = {self._component[number] for number in loads if number in self._component}
        affected = sorted(tenant for component in components for tenant in self._members[component])
        rates = share(self._capacities, [*flows, *(self._tenant_flows[number] for number in affected)]).rates
        return list(rates[: len(own)]), dict(zip(affected, rates[len(own) :], strict=True))

    def score(self, own: Sequence[OwnPaths], owner: str | None = None, more_hops: int = 0) -> PlacementScore:
        """The score of a placement; paths that composition `owner` has already count as its own."""
        rates, after = self.after(own)
        short = [_missing(rate, paths.required) for rate, paths in zip(rates, own, strict=True)]
        total = math.fsum(rate * paths.count for rate, paths in zip(rates, own, strict=True))
        broken, lost = 0, 0.0
        for number, rate in after.items():
            tenant = self.tenants[number]
            if tenant.composition != owner and rate < tenant.before:
                lost += (tenant.before - rate) * len(tenant.devices)
                broken += len(tenant.devices) if tenant.kept and not is_enough(rate, tenant.required) else 0
        for number, tenant in enumerate(self.tenants) if owner is not None else ():
            if tenant.composition == owner:
                rate = after.get(number, tenant.before)
                total += rate * len(tenant.devices)
                rates.append(rate)
                short.append(_missing(rate, tenant.required) if tenant.kept else 0.0)
        hops = sum(paths.load.hops * paths.count for paths in own) + more_hops
        return PlacementScore(broken, max(short, default=0.0), lost, total, min(rates, default=0.0), hops)

    def _alone(self, flows: Sequence[SolverFlow]) -> tuple[list[float], dict[int, float]]:
        """What flows get without any tenant, and how much of each resource they then take."""
        index = {number: place for place, number in enumerate({number for flow in flows for number, _ in flow.amounts})}
        local = [
            replace(flow, amounts=tuple((index[number], amount) for number, amount in flow.amounts)) for flow in flows
        ]
        shares = share([self._capacities[number] for number in index], local) if flows else Shares((), (), ())
        used = zip(index, shares.utilization, strict=True)
        return list(shares.rates), {number: part * self._capacities[number] for number, part in used}

    def path(self, load: PathLoad) -> tuple[tuple[int, float], ...]:
        """The shared resources of a load by number, each with what 1 B/s takes of it."""
        return self._flow(load, 1).amounts

    def capacity(self, number: int) -> float:
        """The capacity of a resource."""
        return self._capacities[number]

    def is_busy(self, number: int) -> bool:
        """Whether any composition uses a resource now."""
        return number in self._component

    def _flow(self, load: PathLoad, count: int) -> SolverFlow:
        if load not in self._flows:
            amounts = tuple((self._number(resource), amount) for resource, amount in load.shared)
            self._flows[load] = SolverFlow(amounts, cap=load.cap)
        flow = self._flows[load]
        return flow if count == 1 else replace(flow, count=count)

    def _number(self, resource: Resource) -> int:
        if resource not in self._numbers:
            self._numbers[resource] = len(self._capacities)
            self._capacities.append(resource.capacity)
        return self._numbers[resource]

    def _components(self) -> tuple[dict[int, int], dict[int, list[int]]]:
        """Of each resource that tenants use its component, and of each component the tenants that it joins."""
        parent: dict[int, int] = {}

        def top(number: int) -> int:
            while parent.setdefault(number, number) != number:
                parent[number] = parent[parent[number]]
                number = parent[number]
            return number

        numbers = [[number for number, _ in self.path(tenant.load)] for tenant in self.tenants]
        for used in numbers:
            for number in used[1:]:
                parent[top(number)] = top(used[0])
        members: dict[int, list[int]] = defaultdict(list)
        for index, used in enumerate(numbers):
            if used:
                members[top(used[0])].append(index)
        return {number: top(number) for used in numbers for number in used}, members


def _missing(rate: float, required: float | None) -> float:
    return 0.0 if required is None or is_enough(rate, required) else 1.0 - rate / required


def _tenant_paths(pool: Pool) -> Iterable[TenantPaths]:
    """The paths of everybody who has blocks or will: compositions, also while they are composed, and reservations."""
    tenants = [one for one in pool.compositions.values() if one.state is not CompositionState.RELEASED]
    tenants += [
        Composition(one.name, one.server, one.blocks, one.requirements)
        for one in pool.reservations.values()
        if one.state is ReservationState.ACTIVE
    ]
    pool = replace(pool, system=_as_it_will_be(pool, tenants))
    for tenant in tenants:
        required = required_rates(pool, tenant.blocks, tenant.requirements)
        alike: dict[tuple[PathLoad, float | None], list[str]] = defaultdict(list)
        for name, load in loads_of(pool, tenant).items():
            alike[load, required[name]].append(name)
        for (load, rate), devices in alike.items():
            yield TenantPaths(tenant.name, tuple(devices), load, rate)


def _as_it_will_be(pool: Pool, tenants: Iterable[Composition]) -> System:
    """The system with the blocks attached that are claimed or reserved and not there yet."""
    system = pool.system
    for tenant in tenants:
        for block in map(pool.block, tenant.blocks):
            coming = block.state in (BlockState.COMPOSING, BlockState.UNUSED)
            if coming and system.device(block.device).host is None:
                with suppress(LanewiseError):
                    system = attach(system, block.device, tenant.server)
    return system
