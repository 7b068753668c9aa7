"""Kills one process of a running sweep (its driver, a worker, Ray's raylet) and resumes it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from process_tree import descendants, kind_of

ROOT = Path(__file__).parents[1]
SYSTEM = ROOT / "examples" / "node-layouts.yaml"
FLOWS = "data->gpu[0-3], cache->gpu[4-7]"
Rows = Counter[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class KillRound:
    """One kill: which process, when (s after the first rows), what was on disk, and what the resumed sweep lacks."""

    engine: str
    victim: str
    delay: float
    killed: bool
    before: int
    resumed: int
    rows: int
    faults: list[str]


def start(on: str, folder: Path, sweep: Sequence[str]) -> subprocess.Popen[bytes]:
    """The sweep in a process of its own."""
    values = [word for each in sweep for word in ("--sweep", each)]
    program = str(Path(sys.executable).with_name("lanewise"))
    command = [program, "predict", str(SYSTEM), "--flows", FLOWS, *values, "--on", on, "--results", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def rows_of(folder: Path) -> Rows:
    """Every row of the folder with its values, and how often it is there."""
    import pyarrow.parquet

    rows: Rows = Counter()
    for path in folder.rglob("*.parquet"):
        table = pyarrow.parquet.read_table(path).drop_columns(["record"]).to_pylist()
        rows.update(tuple(row.values()) for row in table)
    return rows


def kill_round(
    on: str, victim: str, delay: float, folder: Path, expected: Rows, sweep: Sequence[str], chance: random.Random
) -> KillRound:
    """One kill, and the rows after the sweep was resumed, compared with those of an undisturbed one."""
    process = start(on, folder, sweep)
    while process.poll() is None and not list(folder.glob("*.parquet")):
        time.sleep(0.02)
    time.sleep(delay)
    victims = [each for each in descendants(process.pid) if kind_of(each, process.pid) == victim]
    before, killed = sum(rows_of(folder).values()), False
    if process.poll() is None and victims:
        os.kill(chance.choice(victims), signal.SIGKILL)
        killed = True
    code, resumed = process.wait(), 0
    while code != 0 and resumed < 3:
        resumed += 1
        code = start(on, folder, sweep).wait()
    rows = rows_of(folder)
    faults = [f"{len(expected - rows)} rows lost"] if expected - rows else []
    faults += [f"{sum((rows - expected).values())} rows too many"] if rows - expected else []
    faults += [f"exit code {code}"] if code else []
    faults += ["a lost worker ended the sweep"] if victim == "worker" and resumed else []
    return KillRound(on, victim, delay, killed, before, resumed, sum(rows.values()), faults)
