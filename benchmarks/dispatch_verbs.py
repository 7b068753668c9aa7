"""The query dispatch over RDMA verbs: nothing lost, nothing corrupt, and no CPU time while nothing happens.

    python benchmarks/dispatch_verbs.py [-o benchmarks/runs/DATE-dispatch-verbs.json]

Frontend and nodes are processes in User-Mode Linux with soft RoCE (tests/network/uml/build makes the kernel), four
queue pairs to each node: 10,000 queries of 150,528 B at once to one node and to two, every answer compared with the
CRC-32 of its sample; then 1,000 queries at 50 queries/s, which is mostly waiting.

One emulated CPU at 100 Hz: the counts are of use, and whether CPU time is far below the time that passed; rates are
not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import kept

RUN = kept.ROOT / "tests" / "network" / "uml" / "run"
GUEST = kept.ROOT / "tests" / "dispatch" / "verbs_guest.py"
IMAGE = 150_528
RUNS = (
    {"queries": 10_000, "sample_bytes": IMAGE},
    {"queries": 10_000, "sample_bytes": IMAGE, "nodes": 2},
    {"queries": 1_000, "sample_bytes": IMAGE, "qps": 50.0},
)


def total(rows: list[kept.Record], name: str) -> float:
    return sum(float(row[name]) for row in rows)


def page(made: kept.Record) -> str:
    """A row a run."""
    lines = kept.heading("Query dispatch over RDMA verbs (soft RoCE)", made)
    lines += [
        "| nodes | queries | answered once | corrupt | empty | groups to nodes | events there | groups back"
        " | events here | s | CPU, Frontend | CPU, nodes |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in made["rows"]:
        front, back, seconds = row["frontend"], row["node"], row["seconds"]
        cells = [row["nodes"], row["queries"], row["answered_once"], row["corrupt"], row["empty"],
                 *(f"{total(rows, name):.0f}" for rows, name in (
                     (front, "doorbells"), (back, "wakeups"), (back, "doorbells"), (front, "wakeups"))),
                 f"{seconds:.1f}", f"{100 * row['cpu_seconds'] / seconds:.0f} %",
                 f"{100 * total(back, 'cpu_seconds') / seconds:.0f} %"]  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, "", *(__doc__ or "").strip().splitlines()[4:], ""])


def main() -> None:
    """Runs all of it in one guest and keeps it."""
    asked = kept.options(__doc__, "dispatch-verbs").parse_args()
    made = kept.begin(asked)
    command = [str(RUN), sys.executable, str(GUEST), *map(json.dumps, RUNS)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ, cwd=kept.ROOT).stdout
    made["rows"] = [json.loads(line) for line in printed.splitlines() if line.startswith('{"nodes"')]
    kept.keep(made, page, asked.out)


if __name__ == "__main__":
    main()
