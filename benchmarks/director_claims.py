"""How long a claim takes in a pool of 1,000 devices and 64 servers while 32 clients compose, attach and release.

    python benchmarks/director_claims.py [--clients 32] [--cycles 20] [--database PATH or URL]

A claim is the call of `Director.compose` without `wait`: the rules, the transaction with claims, intent and event, and
its commit to disk; the driver's steps follow in the director's own threads, over a simulated fabric. Each client has a
server of its own: it composes one to four free devices, attaches one more, and releases them all, without a pause.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import kept
from pool_systems import large_pool

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from director.races import run_all

from lanewise.director.drivers.sim import SimDriver
from lanewise.director.engine import Director
from lanewise.director.errors import BlockInUse
from lanewise.director.records import Task
from lanewise.director.store.database import Store
from lanewise.errors import Unreachable
from lanewise.pool.model import CompositionRequest

Samples = dict[str, list[float]]


def timed(samples: Samples, name: str, operation: Callable[[], Task]) -> Task | None:
    """The task that an operation became, its seconds kept; None if the block was another client's by then."""
    began = time.perf_counter()
    try:
        task = operation()
    except (BlockInUse, Unreachable):
        samples["refused"].append(time.perf_counter() - began)
        return None
    samples[name].append(time.perf_counter() - began)
    return task


def client(director: Director, number: int, cycles: int, samples: Samples) -> None:
    """One client's cycles."""
    chance = random.Random(number)

    def free(count: int) -> tuple[str, ...]:
        return tuple(chance.sample([block.name for block in director.view().pool.free()], count))

    for _ in range(cycles):
        request = CompositionRequest(blocks=free(chance.randint(1, 4)), server=f"host{number}")
        task = timed(samples, "compose", partial(director.compose, request, wait=False))
        if task is None:
            continue
        name = director.wait(task.name).composition
        more = CompositionRequest(blocks=free(1), extends=name)
        added = timed(samples, "attach", partial(director.compose, more, wait=False))
        if added is not None:
            director.wait(added.name)
        gone = timed(samples, "release", partial(director.release, name, wait=False))
        assert gone is not None
        director.wait(gone.name)


def measure(url: str, clients: int, cycles: int) -> kept.Record:
    """The seconds of every operation of all clients."""
    store = Store(url)
    director = Director(store, SimDriver(large_pool()))
    began = time.perf_counter()
    director.start()
    start = time.perf_counter() - began
    samples: Samples = {name: [] for name in ("compose", "attach", "release", "refused")}
    began = time.perf_counter()
    run_all([partial(client, director, number, cycles, samples) for number in range(clients)])
    seconds = time.perf_counter() - began
    director.close()
    store.close()
    return {"start": start, "seconds": seconds, "samples": samples}


def page(record: kept.Record) -> str:
    """Median, 99th percentile and largest of every operation."""
    lines = ["| operation | calls | median ms | p99 ms | largest ms |", "|---" * 5 + "|"]
    every = {"compose and attach": record["samples"]["compose"] + record["samples"]["attach"], **record["samples"]}
    for name, values in every.items():
        if len(values) > 1:
            p99 = statistics.quantiles(values, n=100, method="inclusive")[98]
            row = [statistics.median(values), p99, max(values)]
            lines.append(f"| {name} | {len(values)} | {' | '.join(f'{1000 * value:.1f}' for value in row)} |")
    said = f"{record['clients']} clients for {record['seconds_all']:.1f} s; the director had started within "
    said += f"{record['start']:.1f} s. Target: the p99 of a claim under 50 ms (SQLite)."
    return "\n".join([*kept.heading("Claims in a pool of 1,000 devices", record), said, "", *lines, ""])


def main() -> None:
    """Measures, and keeps every sample."""
    parser = kept.options(__doc__, "director-claims")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--database", default="", help="default: SQLite in a temporary folder")
    options = parser.parse_args()
    record = kept.begin(options)
    record["clients"] = options.clients
    with tempfile.TemporaryDirectory() as folder:
        result = measure(options.database or f"{folder}/director.db", options.clients, options.cycles)
    record |= {"start": result["start"], "seconds_all": result["seconds"], "samples": result["samples"]}
    kept.keep(record, page, options.out)


if __name__ == "__main__":
    main()
