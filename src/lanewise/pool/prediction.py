"""The predicted rates of one placement: of its own paths, exactly as `perf.predict`, and of other compositions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lanewise.checking.flow_rates import fine_interval
from lanewise.perf.concurrent_flows import flow_demands, solver_input
from lanewise.perf.flow import Flow
from lanewise.perf.predict import FlowRate, flow_rate
from lanewise.perf.sharing import SolverFlow, share
from lanewise.pool.loads import active_blocks, active_flow, paired_cards, required_rates
from lanewise.pool.model import SHORT, CompositionRequest, Offer, PathRate, Pool, TenantLoss
from lanewise.pool.rates import PoolRates, TenantPaths
from lanewise.pool.rules import why_no_peers
from lanewise.topology.compose import attach
from lanewise.topology.model import Kind, System


@dataclass(frozen=True, slots=True)
class _Solved:
    """Flows as predicted with all other compositions active, their rates alone, and what the others get."""

    together: tuple[FlowRate, ...]
    alone: tuple[float, ...]
    others: tuple[float, ...]


def predicted_offer(
    pool: Pool,
    rates: PoolRates,
    server: str,
    blocks: tuple[str, ...],
    request: CompositionRequest,
    pairs: Mapping[str, str] | None = None,
    alike: tuple[str, ...] = (),
) -> Offer:
    """The offer of these blocks on a server, be it enough or not; `pairs` has the device that each card serves.

    Unreachable or Contradiction for a block that cannot be attached.
    """
    system = pool.system
    for name in blocks:
        if system.device(pool.block(name).device).host != server:
            system = attach(system, pool.block(name).device, server)
    pairs = pairs or _pairs(pool, blocks, request)
    required = required_rates(pool, blocks, request.requirements)
    owner = pool.compositions.get(request.extends or "")
    active = [name for name in blocks if name not in pairs]
    if owner is not None:
        known = required_rates(pool, owner.blocks, owner.requirements)
        before = [name for name in active_blocks(pool, owner) if name not in required]
        required |= {name: known[name] for name in before}
        active = [*before, *active]
    others = [tenant for tenant in rates.tenants if tenant.composition != request.extends]
    solved = _solve(system, [active_flow(pool.block(name).kind, name, server) for name in active], others)
    own = _path_rates(pool, active, solved, required)
    with_memory = _solve(system, [Flow(card, device) for card, device in pairs.items()], others)
    cards = _path_rates(pool, list(pairs), with_memory, {})
    return Offer(
        server, blocks, (*own, *cards), _losses(others, solved.others), math.fsum(rate.rate for rate in own),
        requirements=request.requirements, paired=tuple(pairs.items()), notes=why_no_peers(system, (*active, *pairs)),
        alike=tuple(name for name in alike if name != server),
    )  # fmt: skip


def _pairs(pool: Pool, blocks: Sequence[str], request: CompositionRequest) -> dict[str, str]:
    """The device that each card of a given placement serves: the devices in order, as many to each card."""
    cards = paired_cards(pool, blocks, request.requirements)
    devices = [name for name in blocks if name not in cards and pool.block(name).kind is not Kind.NIC]
    return {card: devices[number * len(devices) // len(cards)] for number, card in enumerate(cards) if devices}


def _solve(system: System, flows: Sequence[Flow], others: Sequence[TenantPaths]) -> _Solved:
    demands = flow_demands(system, flows)
    resources, own = solver_input(demands)
    alone = share([resource.capacity for resource in resources], own).rates if own else ()
    index = {resource: number for number, resource in enumerate(resources)}
    tenants = []
    for tenant in others:
        for resource, _ in tenant.load.shared:
            if resource not in index:
                index[resource] = len(resources)
                resources.append(resource)
        amounts = tuple((index[resource], amount) for resource, amount in tenant.load.shared)
        tenants.append(SolverFlow(amounts, cap=tenant.load.cap, count=len(tenant.devices)))
    if not own and not tenants:
        return _Solved((), (), ())
    shares = share([resource.capacity for resource in resources], [*own, *tenants])
    limits = [None if number is None else resources[number] for number in shares.limits]
    together = tuple(
        flow_rate(system, demand, (rate,), limit)
        for demand, rate, limit in zip(demands, shares.rates, limits, strict=False)
    )
    return _Solved(together, tuple(alone), tuple(shares.rates[len(own) :]))


def _path_rates(
    pool: Pool, names: Sequence[str], solved: _Solved, required: Mapping[str, float | None]
) -> tuple[PathRate, ...]:
    return tuple(
        _path_rate(pool, name, rate, alone, required.get(name))
        for name, rate, alone in zip(names, solved.together, solved.alone, strict=True)
    )


def _path_rate(pool: Pool, name: str, rate: FlowRate, alone: float, required: float | None) -> PathRate:
    low, high = fine_interval(rate)
    return PathRate(
        name, pool.block(name).kind, rate.routes[0].nodes, rate.rate, low, high, alone, rate.limit, rate.basis,
        rate.rests_on, required, rate.doubt,
    )  # fmt: skip


def _losses(others: Sequence[TenantPaths], after: Sequence[float]) -> tuple[TenantLoss, ...]:
    losses = [
        TenantLoss(tenant.composition, device, tenant.before, rate, tenant.required)
        for tenant, rate in zip(others, after, strict=True)
        if rate < tenant.before * (1 - SHORT)
        for device in tenant.devices
    ]
    return tuple(sorted(losses, key=lambda loss: -loss.lost))
