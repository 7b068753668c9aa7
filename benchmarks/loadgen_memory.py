"""Bytes that LoadGen holds for a query at the peak of a run: what loadtest.load_run.check_memory checks for before it.

    python benchmarks/loadgen_memory.py [--out FILE.json]

The largest resident size of a process with one run of a million queries (of four million samples in Offline), less that
of one with a short run, over the queries more.
"""

from __future__ import annotations

import subprocess
import sys

import kept

from lanewise.loadtest import load_run

RUN = """
import resource, sys, tempfile
from pathlib import Path
from lanewise.loadtest.load_run import LoadSpec
from lanewise.loadtest.selftest import null_runner
scenario, count = sys.argv[1], float(sys.argv[2])
with tempfile.TemporaryDirectory() as folder:
    found = null_runner(Path(folder)).run(LoadSpec(scenario, 200_000.0, count / 200_000.0, 1000, bound=10.0))
print(found.queries, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def resident(scenario: str, count: float) -> tuple[int, int]:
    """Queries that were answered, and the most bytes that the process held."""
    command = [sys.executable, "-c", RUN, scenario, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    queries, held = map(int, done.stdout.split())
    return queries, held


def main() -> None:
    """Both scenarios, and the page."""
    asked = kept.options(__doc__, "loadgen-memory").parse_args()
    record = kept.begin(asked)
    record["rows"] = []
    for scenario, count, counted in (
        ("Server", 1e6, load_run.PER_QUERY),
        ("Offline", 4e6, load_run.PER_SAMPLE),
    ):
        (few, base), (many, held) = resident(scenario, 20_000.0), resident(scenario, count)
        row = {"scenario": scenario, "queries": many, "held": held, "base": base, "counted": counted}
        record["rows"].append({**row, "each": (held - base) / (many - few)})
    kept.keep(record, page, asked.out)


def page(record: kept.Record) -> str:
    """The table."""
    lines = [*kept.heading("Memory that LoadGen holds", record), "| scenario | queries | B each | counted with, B |"]
    lines.append("|---|---|---|---|")
    lines += [f"| {r['scenario']} | {r['queries']:,} | {r['each']:.0f} | {r['counted']} |" for r in record["rows"]]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
