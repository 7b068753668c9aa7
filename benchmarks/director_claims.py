"""How long a claim takes in a pool of 1,000 devices and 64 servers while 32 clients compose, attach and release.

    python benchmarks/director_claims.py [--clients 32] [--cycles 20] [--rounds 5] [--step-ms 0]

A claim is the call of `Director.compose` without `wait`: the rules, the transaction with claims, intent and event, and
its commit to disk; the driver's steps follow in the director's own threads, over a simulated fabric. Each client has a
server of its own: it composes one to four free devices, attaches one more, and releases them all, without a pause. By
default the fabric takes no time for a device, so that the director alone is measured at its limit; real ones take 0.1 s
and more.
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


def measure(path: str, clients: int, cycles: int, delay: float) -> kept.Record:
    """The seconds of every operation of all clients, on a fabric that takes so many seconds for each device."""
    store = Store(path)
    director = Director(store, SimDriver(large_pool(), delay=delay))
    began = time.perf_counter()
    director.start()
    start = time.perf_counter() - began
    samples: Samples = {name: [] for name in ("compose", "attach", "release", "refused")}
    began = time.perf_counter()
    run_all([partial(client, director, number, cycles, samples) for number in range(clients)])
    seconds = time.perf_counter() - began
    director.close()
    store.close()
    digits = {name: [round(value, 6) for value in values] for name, values in samples.items()}
    return {"start": start, "seconds": seconds, "samples": digits}


def page(record: kept.Record) -> str:
    """Median, 99th percentile and largest of every operation, for each round."""
    lines = ["| round | operation | calls | median ms | p99 ms | largest ms |", "|---" * 6 + "|"]
    for number, row in enumerate(record["rows"], 1):
        samples = row["samples"]
        every = {"claim (compose and attach)": samples["compose"] + samples["attach"], "release": samples["release"]}
        for name, values in every.items():
            p99 = statistics.quantiles(values, n=100, method="inclusive")[98]
            figures = " | ".join(f"{1000 * value:.1f}" for value in (statistics.median(values), p99, max(values)))
            lines.append(f"| {number} | {name} | {len(values)} | {figures} |")
    seconds = ", ".join(f"{row['seconds']:.1f}" for row in record["rows"])
    said = f"{record['clients']} clients for {seconds} s. Target: the p99 of a claim under 50 ms (SQLite)."
    return "\n".join([*kept.heading("Claims in a pool of 1,000 devices", record), said, "", *lines, ""])


def main() -> None:
    """Measures, and keeps every sample."""
    parser = kept.options(__doc__, "director-claims")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="of the database, default: the system's temporary folder")
    parser.add_argument("--step-ms", type=float, default=0.0, help="what the fabric takes for each device")
    options = parser.parse_args()
    record = kept.begin(options)
    record["clients"] = options.clients
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        paths = [f"{folder}/{number}.db" for number in range(options.rounds)]
        delay = options.step_ms / 1000
        record["rows"] = [measure(path, options.clients, options.cycles, delay) for path in paths]
    kept.keep(record, page, options.out)


if __name__ == "__main__":
    main()
