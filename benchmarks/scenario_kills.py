"""A sweep is killed at a random moment, its driver, a worker or its raylet; resumed, it must end with the same rows.

    python benchmarks/scenario_kills.py [--kills 20] [--seed 1] [--engines ray:2,local:2]

Each round runs `lanewise predict --sweep --on ENGINE --results FOLDER`, kills one process by SIGKILL a random time
after the first batch is in the folder, and runs the same command again until it ends well. A fault is a row that an
undisturbed run has and this one lacks, one that is there twice, one with another value, or a command that has to be
started again after a worker was lost, which the sweep should survive.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import kept
from process_tree import descendants, kind_of

SYSTEM = kept.ROOT / "examples" / "node-layouts.yaml"
COMMAND = [str(Path(sys.executable).with_name("lanewise")), "predict", str(SYSTEM)]
COMMAND += ["--flows", "data->gpu[0-3], cache->gpu[4-7]", "--sweep", "first=3,4", "--sweep", "data=1..15"]
COMMAND += ["--sweep", "cache=1..10"]
Rows = Counter[tuple[object, ...]]


def start(on: str, folder: Path) -> subprocess.Popen[bytes]:
    """The sweep in a process of its own."""
    command = [*COMMAND, "--on", on, "--results", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def rows_of(folder: Path) -> Rows:
    """Every row of the folder with its values, and how often it is there."""
    import pyarrow.parquet

    rows: Rows = Counter()
    for path in folder.glob("*.parquet"):
        table = pyarrow.parquet.read_table(path).drop_columns(["record"]).to_pylist()
        rows.update(tuple(row.values()) for row in table)
    return rows


def kill_round(on: str, victim: str, delay: float, folder: Path, expected: Rows) -> kept.Record:
    """One kill, and the rows after the sweep was resumed."""
    process = start(on, folder)
    while process.poll() is None and not list(folder.glob("*.parquet")):
        time.sleep(0.02)
    time.sleep(delay)
    victims = [each for each in descendants(process.pid) if kind_of(each, process.pid) == victim]
    before, killed = len(rows_of(folder)), False
    if process.poll() is None and victims:
        os.kill(random.choice(victims), signal.SIGKILL)
        killed = True
    code, resumed = process.wait(), 0
    while code != 0 and resumed < 3:
        resumed += 1
        code = start(on, folder).wait()
    rows = rows_of(folder)
    faults = [f"{len(expected - rows)} rows lost"] if expected - rows else []
    faults += [f"{sum((rows - expected).values())} rows too many"] if rows - expected else []
    faults += [f"exit code {code}"] if code else []
    faults += ["a lost worker ended the sweep"] if victim == "worker" and resumed else []
    return {"engine": on, "victim": victim, "delay": delay, "killed": killed, "before": before, "resumed": resumed,
            "rows": sum(rows.values()), "faults": faults}  # fmt: skip


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
    random.seed(options.seed)
    record = kept.begin(options)
    with tempfile.TemporaryDirectory() as folder:
        undisturbed = Path(folder, "undisturbed")
        began = time.monotonic()
        assert start("local:2", undisturbed).wait() == 0
        span = time.monotonic() - began
        expected = rows_of(undisturbed)
        record |= {"expected": sum(expected.values()), "rows": []}
        for number in range(options.kills):
            on = options.engines.split(",")[number // 3 % len(options.engines.split(","))]
            victims = ("driver", "worker", "raylet") if on.startswith("ray") else ("driver", "worker", "driver")
            delay = random.uniform(0, 0.7 * span)
            row = kill_round(on, victims[number % 3], delay, Path(folder, str(number)), expected)
            record["rows"].append(row)
            print(row, file=sys.stderr)
            kept.keep(record, None, options.out)
    kept.keep(record, page, options.out)


if __name__ == "__main__":
    main()
