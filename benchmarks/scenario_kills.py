"""A sweep is killed at a random moment, its driver, a worker or its raylet; resumed, it must end with the same rows.

    python benchmarks/scenario_kills.py [--kills 20] [--seed 1] [--engines ray:2,local:2]

Each round runs `lanewise predict --sweep --on ENGINE --results FOLDER`, kills one process by SIGKILL a random time
after the first batch is in the folder, and runs the same command again until it ends well. A fault is a row that an
undisturbed run has and this one lacks, one that is there twice, one with another value, or a command that has to be
started again after a worker was lost, which the sweep should survive.
"""

from __future__ import annotations

import dataclasses
import random
import sys
import tempfile
import time
from pathlib import Path

import kept

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from sweep_kills import kill_round, rows_of, start

SWEEP = ("first=3,4", "data=1..15", "cache=1..10")


def page(record: kept.Record) -> str:
    """The sums, and every round."""
    rows = record["rows"]
    faults = sum(bool(row["faults"]) for row in rows)
    hits = sum(row["killed"] for row in rows)
    said = f"{hits} kills in {len(rows)} rounds hit a sweep of {record['expected']} rows, "
    said += f"{faults} rounds had a fault."
    lines = ["| engine | killed | s after the first rows | rows on disk then | resumed | rows at the end | faults |",
             "|---" * 7 + "|"]  # fmt: skip
    lines += [
        f"| {row['engine']} | {row['victim'] if row['killed'] else 'none, it had ended'} | {row['delay']:.2f} | "
        f"{row['before']} | {row['resumed']} times | {row['rows']} | {'; '.join(row['faults']) or 'none'} |"
        for row in rows
    ]
    return "\n".join([*kept.heading("Kills of sweeps", record), said, "", *lines, ""])


def main() -> None:
    """Run and keep."""
    parser = kept.options(__doc__, "scenario-kills")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engines", default="ray:2,local:2")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    record = kept.begin(options)
    with tempfile.TemporaryDirectory() as folder:
        undisturbed = Path(folder, "undisturbed")
        began = time.monotonic()
        assert start("local:2", undisturbed, SWEEP).wait() == 0
        span = time.monotonic() - began
        expected = rows_of(undisturbed)
        record |= {"expected": sum(expected.values()), "rows": []}
        for number in range(options.kills):
            on = options.engines.split(",")[number // 3 % len(options.engines.split(","))]
            victims = ("driver", "worker", "raylet") if on.startswith("ray") else ("driver", "worker", "driver")
            delay = chance.uniform(0, 0.7 * span)
            row = kill_round(on, victims[number % 3], delay, Path(folder, str(number)), expected, SWEEP, chance)
            record["rows"].append(dataclasses.asdict(row))
            print(row, file=sys.stderr)
            kept.keep(record, None, options.out)
    kept.keep(record, page, options.out)


if __name__ == "__main__":
    main()
