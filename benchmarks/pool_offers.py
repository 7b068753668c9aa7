"""Offers of a pool: against first fit and against every placement, and how long one takes in a large pool.

    python benchmarks/pool_offers.py [-o benchmarks/runs/DATE-pool-offers.json] [--note TEXT]

200 small random inventories (two or three servers, seven GPUs, cables of unequal width; most have a tenant) are each
asked for one to three GPUs. The best of all placements is found by predicting every one with `perf.predict`. "search"
is what larger pools use, made to work on these small ones too. 200 inventories of four times the servers and switches,
with 28 GPUs and up to four tenants, are asked for up to twelve GPUs and compared with first fit alone: the first free
server and the first free GPUs. Then requests in a pool of 1,000 devices and 64 hosts: empty, and with 32 servers of
eight GPUs from anywhere; the first of a process, and again.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import kept
from pool_systems import large_pool

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pool.random_pools import Inventory, best_of_all, placements, random_inventory, score

from lanewise.errors import LanewiseError
from lanewise.pool import operations, search
from lanewise.pool.candidates import candidates
from lanewise.pool.model import Composition, CompositionRequest, NoOffer, PathRequirement, Pool
from lanewise.pool.offers import offers
from lanewise.pool.rates import PlacementScore
from lanewise.topology.model import Kind

INVENTORIES, SAME = 200, 2e6  # keys are rounded to 1 MB/s
_Result = TypeVar("_Result")


def ranked_best(inventory: Inventory, most_of_all: int = search.MOST_OF_ALL) -> tuple[PlacementScore | None, float]:
    """The score of the best placement that the search comes by, and what all tenants get before it in B/s."""
    before, search.MOST_OF_ALL = search.MOST_OF_ALL, most_of_all
    try:
        found = candidates(inventory.pool, inventory.request)
        ranked = found.placements(inventory.request.requirements).ranked()
    except NoOffer:
        return None, 0.0
    finally:
        search.MOST_OF_ALL = before
    tenants = math.fsum(tenant.before * len(tenant.devices) for tenant in found.rates.tenants)
    return (ranked[0][0] if ranked else None), tenants


def first_fit(inventory: Inventory) -> PlacementScore | None:
    """The score of the first server and blocks, None where they do not reach each other."""
    try:
        return score(inventory, *next(placements(inventory)))
    except (StopIteration, LanewiseError):
        return None


def same(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """Whether two keys say the same within their rounding."""
    return all(abs(x - y) <= SAME for x, y in zip(a, b, strict=True)) and a[:1] + a[-1:] == b[:1] + b[-1:]


def against_all(seed: int) -> kept.Record:
    """A small inventory: whether the offer, and the search made to work on it, are as good as the best of all."""
    inventory = random_inventory(seed)
    best = best_of_all(inventory)
    row: kept.Record = {"seed": seed, "best": best}
    for name, most in (("offers", search.MOST_OF_ALL), ("search", 0)):
        result = ranked_best(inventory, most)[0]
        row[name] = result and result.key
        row[f"{name}_best"] = (result is None) == (best is None) and same(result.key if result else (), best or ())
    return row


def against_first_fit(seed: int) -> kept.Record:
    """A larger inventory: the pool's total rate and the requests met, with first fit and with the offer."""
    inventory = random_inventory(seed, gpus=28, size=4)
    first = first_fit(inventory)
    chosen, tenants = ranked_best(inventory)
    row: kept.Record = {"seed": seed}
    for name, result in (("first_fit", first), ("offer", chosen)):
        row[name] = result and {"good": result.good, "total": tenants - result.lost + result.total, "lost": result.lost}
    row["not_worse"] = first is None or (
        chosen is not None and (chosen.key <= first.key or same(chosen.key, first.key))
    )
    return row


def timed(function: Callable[[], _Result]) -> tuple[list[float], _Result | None]:
    """CPU and wall seconds of a call, and its result."""
    cpu, wall = time.process_time(), time.monotonic()
    try:
        result = function()
    except NoOffer:
        result = None
    return [time.process_time() - cpu, time.monotonic() - wall], result


def crowded(pool: Pool) -> Pool:
    """The pool with eight GPUs from anywhere for every second server, each promised 0.5 GB/s."""
    rng = random.Random(3)
    free = [block.name for block in pool.free(Kind.GPU)]
    rng.shuffle(free)
    for number, server in enumerate(pool.servers[::2]):
        blocks = tuple(free[8 * number : 8 * number + 8])
        pool = operations.claim(pool, Composition(f"job{number}", server, blocks, (PathRequirement(Kind.GPU, 8, 5e8),)))
        for block in blocks:
            pool = operations.with_block(pool, f"job{number}", block)
        pool = operations.settled(pool, f"job{number}")
    return pool


def large() -> kept.Record:
    """CPU and wall seconds of requests in the large pool."""
    requests = {
        "8 GPUs": CompositionRequest((PathRequirement(Kind.GPU, 8),)),
        "8 GPUs with 5 GB/s each": CompositionRequest((PathRequirement(Kind.GPU, 8, 5e9),)),
        "8 GPUs with 20 GB/s each (refused)": CompositionRequest((PathRequirement(Kind.GPU, 8, 20e9),)),
        "8 GPUs, 2 network cards, 4 drives": CompositionRequest(
            (PathRequirement(Kind.GPU, 8, 5e9, nics=2), PathRequirement(Kind.SSD, 4))
        ),
    }
    rows: kept.Record = {}
    for state in ("empty", "32 servers composed"):
        read, system = timed(large_pool)
        assert system is not None
        pool = operations.pool_of(system)
        pool = pool if state == "empty" else crowded(pool)
        rows[f"{state}: read the description"] = read
        for turn in ("first", "again"):
            for name, request in requests.items():
                rows[f"{state}: {name}, {turn}"] = timed(lambda pool=pool, request=request: offers(pool, request))[0]  # type: ignore[misc]
    return rows


def page(record: kept.Record) -> str:
    """The figures as text."""
    small, large_ones = record["small"], record["larger"]
    both = [(row["first_fit"], row["offer"]) for row in large_ones if row["first_fit"] and row["offer"]]
    gains = sorted(offer["total"] / first["total"] - 1 for first, offer in both)
    lines = kept.heading("Offers of a pool", record)
    for name, words in (("offers", "offers"), ("search", "the search of larger pools, made to work here")):
        count = sum(row[f"{name}_best"] for row in small)
        lines.append(f"* {words}: as good as the best of all placements in {count} of {len(small)} small inventories")
    lines += [
        f"* never worse than first fit: {sum(row['not_worse'] for row in large_ones)} of {len(large_ones)} larger ones",
        f"* everybody has the requested rates: first fit {sum(first['good'] for first, _ in both)}, offers "
        f"{sum(offer['good'] for _, offer in both)} of {len(both)}",
        f"* total rate of the pool over that with first fit: median {_pct(statistics.median(gains))}, quartiles "
        f"{_pct(statistics.quantiles(gains)[0])} and {_pct(statistics.quantiles(gains)[2])}, "
        f"more in {sum(gain > 1e-3 for gain in gains)}, less in {sum(gain < -1e-3 for gain in gains)} of {len(gains)}",
        f"* others lose: first fit {statistics.mean(first['lost'] for first, _ in both) / 1e9:.2f} GB/s on average, "
        f"offers {statistics.mean(offer['lost'] for _, offer in both) / 1e9:.2f} GB/s",
        "",
        "1,000 devices, 64 hosts: seconds to the offers (five, each predicted in full)",
        "",
        "| request | CPU s | wall s |",
        "|---|---:|---:|",
        *(f"| {name} | {cpu:.2f} | {wall:.2f} |" for name, (cpu, wall) in record["large"].items()),
    ]
    return "\n".join(lines) + "\n"


def _pct(part: float) -> str:
    return f"{100 * part:+.1f} %"


def main() -> None:
    """Compare, time, keep."""
    options = kept.options(__doc__, "pool-offers").parse_args()
    record = kept.begin(options)
    record["large"] = large()
    record["small"] = [against_all(seed) for seed in range(INVENTORIES)]
    record["larger"] = [against_first_fit(seed) for seed in range(INVENTORIES)]
    kept.keep(record, page, options.out)


if __name__ == "__main__":
    main()
