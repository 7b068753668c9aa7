"""The search for the peak of a load test on simulated servers of known law: precision, runs, seconds of load.

    python benchmarks/peak_search.py [-o benchmarks/runs/DATE-peak-search.json] [--seeds 200] [--only LAW ...]

Simulated time costs nothing, so hundreds of searches can be told apart; `seconds` are those of load that a real search
would have taken, warm-ups and the Offline run included. Writes raw data and a page beside it.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

import kept

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from loadtest.known_runner import KnownRunner

from lanewise.loadtest.load_run import LoadSpec
from lanewise.loadtest.peak import find
from lanewise.options.loadtest import PeakOptions
from lanewise.serving.queues import md1_peak

BOUND = 0.015
BATCHES = tuple(0.002 + 0.00025 * size for size in range(1, 33))
LAWS: dict[str, tuple[dict[str, Any], float]] = {
    "M/D/1, 1 ms": ({"times": (0.001,)}, BOUND),
    "M/M/1, 1 ms": ({"times": (0.001,), "variation": 1.0}, BOUND),
    "8 servers, 8 ms": ({"times": (0.008,), "servers": 8}, BOUND),
    "batches up to 32": ({"times": BATCHES, "timeout": 0.001}, BOUND),
    "10x slower": ({"times": (0.01,)}, 10 * BOUND),
    "20x faster": ({"times": (0.00005,)}, BOUND / 20),
}


def true_peak(law: dict[str, Any], bound: float) -> float:
    """In closed form for M/D/1, else by bisection with runs of three million queries."""
    if set(law) == {"times"} and len(law["times"]) == 1:
        return md1_peak(law["times"][0], bound)
    runner = KnownRunner(stream=977, **law)
    low, high = 0.3 * runner.rate, runner.rate
    for step in range(14):
        middle = (low + high) / 2
        out = runner.run(LoadSpec(qps=middle, seconds=3e6 / middle, queries=1, seed=step + 1, bound=bound))
        low, high = (middle, high) if out.latency["p99"] <= bound and not out.ended_early else (low, middle)
    return low


def measure(name: str, seeds: int, first: int) -> dict[str, Any]:
    """One search a seed."""
    law, bound = LAWS[name]
    peak = true_peak(law, bound)
    rows = []
    for seed in range(first, first + seeds):
        found = find(KnownRunner(stream=seed, **law), PeakOptions(bound=bound, seconds=150.0))
        last = found.search_runs[-1]
        rows.append({
            "error_pct": 100 * (found.qps / peak - 1), "valid": found.best is not None and found.best.valid,
            "confirmed": found.confirmed, "last_run_valid": last.valid, "runs": len(found.search_runs),
            "seconds": found.seconds, "held": found.interval[0] <= peak <= found.interval[1],
        })  # fmt: skip
    return {"law": name, "peak": peak, "rows": rows}


def summary(found: dict[str, Any]) -> list[str]:
    """One line of the page."""
    rows = found["rows"]
    count, errors = len(rows), sorted(row["error_pct"] for row in rows)
    share = [100 * sum(row[key] for row in rows) / count for key in ("valid", "confirmed", "last_run_valid", "held")]
    within = 100 * sum(abs(error) <= 2 for error in errors) / count
    seconds = [row["seconds"] for row in rows]
    return [
        found["law"], f"{found['peak']:,.0f}", f"{within:.1f}", *(f"{each:.1f}" for each in share),
        f"{statistics.mean(errors):+.2f}", f"{errors[count // 20]:+.1f} to {errors[-1 - count // 20]:+.1f}",
        f"{statistics.mean(row['runs'] for row in rows):.1f} ({max(row['runs'] for row in rows)})",
        f"{statistics.mean(seconds):.0f} ({max(seconds):.0f})",
    ]  # fmt: skip


def page(data: dict[str, Any]) -> str:
    """The summary as Markdown."""
    heads = ["law", "peak QPS", "within 2 %", "answer VALID %", "confirmed %", "last run VALID %",
             "interval held %", "mean error %", "5 to 95 %", "runs (most)", "s of load (most)"]  # fmt: skip
    seeds = f"{data['seeds']} seeds from {data['first_seed']}"
    lines = [*kept.heading("Search for the peak", data), f"Searches: {seeds}.", ""]
    lines += ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(summary(each)) + " |" for each in data["laws"]]) + "\n"


def main() -> None:
    """Searches for every law asked for, writes as it goes and prints the page."""
    parser = kept.options(__doc__, "peak-search")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=10_001, help="the first seed; 1 to 300 served to tune the search")
    parser.add_argument("--only", nargs="*", choices=list(LAWS), default=list(LAWS))
    asked = parser.parse_args()
    data = kept.begin(asked) | {"seeds": asked.seeds, "first_seed": asked.first, "laws": []}
    for name in asked.only:
        data["laws"].append(measure(name, asked.seeds, asked.first))
        kept.keep(data, None, asked.out)
    kept.keep(data, page, asked.out)


if __name__ == "__main__":
    main()
