"""The batching system by itself: the most queries a second it answers, and what it adds to a query's time.

    python benchmarks/system_overhead.py [-o benchmarks/runs/DATE-system-overhead.json]

A native thread issues, an engine that takes no time answers. Ceiling: a million queries, all due at once, handed over
one by one as LoadGen's Server scenario does and, coalesced, in one call; 16-byte samples show the queues, 150,528-byte
ones the copies, of which the library holds 256 MiB. Overhead: Poisson arrivals at stated rates, alone and beside a busy
Python thread, time-out 0: latency from the scheduled time. Five rounds; every value is kept, medians are shown.
"""

from __future__ import annotations

import statistics
import threading
from typing import Any

import kept
import numpy as np

from lanewise import _native
from lanewise.loadtest import system as batching
from lanewise.loadtest.session import open_system
from lanewise.options.loadtest import BatchingOptions

ROUNDS = 5
IMAGE = 150528


def opened(sample_bytes: int, library: int, batch: int) -> _native.BatchingSystem:
    options = BatchingOptions(sample_bytes=sample_bytes, library=library, batch=batch, timeout=0.0, service=(0.0, 0.0))
    system = open_system(options)
    system.load(list(range(library)))
    return system


def ceiling(sample_bytes: int, library: int, batch: int, coalesce: bool, count: int) -> dict[str, Any]:
    system = opened(sample_bytes, library, batch)
    samples = np.arange(count, dtype=np.uint64) * 7919 % library
    rates = []
    for _ in range(ROUNDS):
        found = _native.replay(system, np.zeros(count), samples, coalesce=coalesce)
        assert (found["answers"] == 1).all()
        rates.append(count / (found["answered"].max() * 1e-9))
    how = "coalesced" if coalesce else "one by one"
    rate = statistics.median(rates)
    moved = rate * sample_bytes / 1e9
    print(f"{sample_bytes} B, batch {batch}, {how}: {rate / 1e6:.2f} M QPS, {moved:.2f} GB/s", flush=True)
    return {"what": "ceiling", "sample_bytes": sample_bytes, "batch": batch, "issue": how, "qps": rates, "median": rate}


def overhead(rate: float, busy: bool, seconds: float = 2.0) -> dict[str, Any]:
    system = opened(16, 1024, 64)
    values: dict[str, list[float]] = {"p50": [], "p99": [], "p50 in the system": []}
    stop = threading.Event()
    if busy:
        threading.Thread(target=spin, args=(stop,), daemon=True).start()
    for seed in range(ROUNDS):
        times = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, int(rate * seconds)))
        found = _native.replay(system, times, np.arange(len(times), dtype=np.uint64) % 1024)
        late = (found["answered"] - found["scheduled"]) * 1e-3
        values["p50"].append(float(np.percentile(late, 50)))
        values["p99"].append(float(np.percentile(late, 99)))
        values["p50 in the system"].append(batching.statistics(system).stages["total"]["p50"] * 1e6)
    stop.set()
    shown = {name: statistics.median(each) for name, each in values.items()}
    beside = "a busy Python thread" if busy else "nothing"
    print(f"{rate:.0f} QPS beside {beside}: " + ", ".join(f"{k} {v:.1f} us" for k, v in shown.items()), flush=True)
    return {"what": "overhead", "qps": rate, "beside": beside, "us": values, "median": shown}


def spin(stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        number = (number * 31 + 7) % 1000003


def page(made: kept.Record) -> str:
    """Both tables."""
    lines = kept.heading("The system under test alone", made)
    lines += ["| sample | batch | issued | M QPS, median | range | GB/s |", "|---|---|---|---|---|---|"]
    for row in (row for row in made["rows"] if row["what"] == "ceiling"):
        low, high = min(row["qps"]) / 1e6, max(row["qps"]) / 1e6
        rate = row["median"]
        lines.append(f"| {row['sample_bytes']} B | {row['batch']} | {row['issue']} | {rate / 1e6:.3f} | "
                     f"{low:.3f} .. {high:.3f} | {rate * row['sample_bytes'] / 1e9:.2f} |")  # fmt: skip
    lines += ["", "| QPS | beside | p50, us | p99, us | p50 in the system, us |", "|---|---|---|---|---|"]
    for row in (row for row in made["rows"] if row["what"] == "overhead"):
        cells = [f"{row['qps']:.0f}", row["beside"], *(f"{value:.1f}" for value in row["median"].values())]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", (__doc__ or "").split("\n\n")[2].strip(), ""])


def main() -> None:
    """Measures everything and keeps it."""
    asked = kept.options(__doc__, "system-overhead").parse_args()
    made = kept.begin(asked)
    rows = [ceiling(16, 1024, batch, coalesce, 10**6) for batch in (1, 64) for coalesce in (False, True)]
    rows.append(ceiling(IMAGE, (256 << 20) // IMAGE, 64, False, 50_000))
    rows += [overhead(rate, busy) for rate in (1_000, 50_000, 200_000) for busy in (False, True)]
    made["rows"] = rows
    kept.keep(made, page, asked.out)


if __name__ == "__main__":
    main()
