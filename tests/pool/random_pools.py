"""Small random pools, and the best placement in them by trying every one with `perf.predict`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from lanewise.errors import LanewiseError
from lanewise.perf.concurrent_flows import flow_demands, solver_input
from lanewise.perf.sharing import share
from lanewise.pool import operations
from lanewise.pool.equivalence import free_servers
from lanewise.pool.loads import active_flow, fits, required_rates
from lanewise.pool.model import Composition, CompositionRequest, PathRequirement, Pool, is_enough
from lanewise.pool.rates import PlacementScore
from lanewise.topology.compose import attach
from lanewise.topology.model import Kind, System
from lanewise.topology.read import read_system

PARTS = ("l40s", "h100-nvl")


@dataclass(frozen=True)
class Inventory:
    """A pool and a request to it."""

    pool: Pool
    request: CompositionRequest


def random_inventory(seed: int, gpus: int = 7, size: int = 1) -> Inventory:
    """Servers and GPUs on a tree of switches, with cables of unequal width; some servers have a composition already.

    Of `size` 1 two or three servers, two to four switches, and at most one tenant; a tenant requested 2 or 5 GB/s a
    GPU, or for no rate. One to three GPUs are requested, at 3, 6 or 11 GB/s each, or at any rate. Larger ones are so
    many times as large.
    """
    rng = Random(seed)
    switches, servers = size * rng.randint(2, 4), size * rng.randint(2, 3)
    hosts = ", ".join(f"host{n}" for n in range(servers))
    lines = ["lanewise: 1", "system: random-pool", f"hosts: [{hosts}]", "devices:"]
    lines += [f"  cpu{n}: {{cpu: xeon-gold-6454s, host: host{n}}}" for n in range(servers)]
    lines += [f"  hba{n}: {{adapter: cdi-gen4-host-adapter, host: host{n}}}" for n in range(servers)]
    lines += [f"  sw{n}: {{switch: cdi-gen4-fabric-switch}}" for n in range(switches)]
    lines += [f"  gpu{n}: {{gpu: {rng.choice(PARTS)}, host: null}}" for n in range(gpus)]
    lines.append("links:")
    for n in range(servers):
        lines.append(f"  - {{from: cpu{n}, to: hba{n}, pcie: gen4 x16}}")
        lines.append(f"  - {{from: hba{n}, to: sw{rng.randrange(switches)}, fabric: gen4 x16}}")
    for n in range(1, switches):
        lines.append(f"  - {{from: sw{rng.randrange(n)}, to: sw{n}, fabric: gen4 x{rng.choice((4, 8, 16))}}}")
    lines += [f"  - {{from: sw{rng.randrange(switches)}, to: gpu{n}, pcie: gen4 x16}}" for n in range(gpus)]
    pool = operations.pool_of(read_system("\n".join(lines) + "\n", "random.yaml"))
    for number in range(size):
        if rng.random() < 0.7:
            pool = _occupied(pool, rng, number)
    rate = rng.choice((None, 3e9, 6e9, 11e9))
    return Inventory(pool, CompositionRequest((PathRequirement(Kind.GPU, rng.randint(1, 3 * size), rate),)))


def _occupied(pool: Pool, rng: Random, number: int) -> Pool:
    free = sorted(block.name for block in pool.free())
    blocks = tuple(rng.sample(free, rng.randint(1, 2)))
    promise = (PathRequirement(Kind.GPU, len(blocks), rng.choice((None, 2e9, 5e9))),)
    name = f"tenant{number}"
    pool = operations.claim(pool, Composition(name, f"host{number}", blocks, promise))
    for block in blocks:
        pool = operations.with_block(pool, name, block)
    return operations.settled(pool, name)


def placements(inventory: Inventory) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every server and choice of blocks for an inventory's only requirement, first fit first."""
    (requirement,) = inventory.request.requirements
    free = [block.name for block in inventory.pool.free() if fits(block, requirement)]
    for server in free_servers(inventory.pool):
        for blocks in combinations(free, requirement.count):
            yield server, blocks


def score(inventory: Inventory, server: str, blocks: Sequence[str]) -> PlacementScore:
    """How good a placement is, by predicting every path before and after."""
    pool, request = inventory.pool, inventory.request
    after = pool.system
    for name in blocks:
        after = attach(after, name, server)
    own = dict.fromkeys(blocks, request.requirements[0].rate)
    tenants = {
        name: rate
        for one in pool.compositions.values()
        for name, rate in required_rates(pool, one.blocks, one.requirements).items()
    }
    old = _rates(pool.system, tenants)
    new = _rates(after, [*tenants, *blocks])
    broken = 0
    for name, required in tenants.items():
        broken += is_enough(old[name][0], required) and not is_enough(new[name][0], required)
    return PlacementScore(
        broken,
        max(0.0 if is_enough(new[name][0], rate) else 1 - new[name][0] / (rate or 1.0) for name, rate in own.items()),
        sum(max(0.0, old[name][0] - new[name][0]) for name in tenants),
        sum(new[name][0] for name in blocks),
        min(new[name][0] for name in blocks),
        sum(new[name][1] for name in blocks),
    )


def _rates(system: System, devices: Sequence[str] | dict[str, float | None]) -> dict[str, tuple[float, int]]:
    """The rate of each device with all of them active, and the links on its path."""
    if not devices:
        return {}
    flows = [active_flow(Kind.GPU, name, str(system.device(name).host)) for name in devices]
    demands = flow_demands(system, flows)  # of links that several flows share the pool takes all that they carry
    resources, solver_flows = solver_input(demands)
    rates = share([resource.capacity for resource in resources], solver_flows).rates
    hops = [len(demand.routes[0].hops) for demand in demands]
    return dict(zip(devices, zip(rates, hops, strict=True), strict=True))


def best_of_all(inventory: Inventory) -> tuple[float, ...] | None:
    """The key of the best placement, None if there is none."""
    keys = []
    for server, blocks in placements(inventory):
        try:
            keys.append(score(inventory, server, blocks).key)
        except LanewiseError:
            continue
    return min(keys, default=None)
