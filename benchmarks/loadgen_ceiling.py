"""The load generator's own ceiling on two cores, and what a busy Python thread beside it costs.

    python benchmarks/loadgen_ceiling.py [--cores 0,1] [--note TEXT] [--out benchmarks/runs/DATE-loadgen-ceiling.json]

A system that answers at once; p99 of 15 ms from the scheduled time, LoadGen's VALID (early stopping included). `through
a thread` is the way of a real system's answers, `within the call` leaves LoadGen's own cost. The memory is checked
before each run. Writes the JSON and a page of the same name.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import sys
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lanewise import _loadgen, _native
from lanewise.loadtest.loadgen import LoadGenRunner, Setup
from lanewise.loadtest.run import Load
from lanewise.loadtest.selftest import Effort, ceilings, null_runner

ROOT = Path(__file__).parents[1]
TARGETS = {"plain": 1e6, "coalesced": 2e6}
BESIDE_PYTHON = 50_000.0  # queries/s


def rates(folder: Path, seconds: float) -> list[dict[str, Any]]:
    """The ceilings of both modes and both ways of answers."""
    found = []
    for at_once in (False, True):
        effort = Effort(start=100_000.0, seconds=seconds, tries=3)
        for each in ceilings(null_runner(folder, at_once), effort, say=lambda text: print(text, file=sys.stderr)):
            way = "within the call" if at_once else "through a thread"
            found.append({"answers": way, "target": TARGETS[each.mode], **asdict(each)})
    return found


def beside_python(folder: Path, busy: bool, at_once: bool) -> dict[str, Any]:
    """Latencies at 50 k queries/s, with or without a Python thread that never rests."""
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            pass

    thread = threading.Thread(target=spin)
    if busy:
        thread.start()
    try:
        runner = LoadGenRunner(_native.NullSystem(), folder, Setup(direct=at_once, end_hopeless=False))
        runs = [runner.run(Load(qps=BESIDE_PYTHON, seconds=5.0, seed=seed)) for seed in (1, 2, 3)]
    finally:
        stop.set()
        if busy:
            thread.join()
    best = min(runs, key=lambda each: each.latency["p99"])
    return {
        "busy Python thread": busy, "answers": "within the call" if at_once else "through a thread",
        "p50": best.latency["p50"], "p99": best.latency["p99"], "lag p99": best.lag["p99"],
        "p99 of all runs": [each.latency["p99"] for each in runs],
    }  # fmt: skip


def machine() -> dict[str, Any]:
    """What it ran on, and how busy that was before."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "cpu": model[1] if model else platform.machine(), "cores used": sorted(os.sched_getaffinity(0)),
        "cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version(),
        "load_before": os.getloadavg(),
    }  # fmt: skip


def page(record: dict[str, Any]) -> str:
    """Both tables."""
    about = f"LoadGen {record['loadgen']}. Machine: {record['machine']}. {record['note']}"
    return "\n".join([
        f"# The load generator's own ceiling, {record['date']}", "",
        f"Command: `{record['command']}`. {about}".rstrip(), "",
        "Largest rate that is VALID with p99 <= 15 ms on a system that answers at once; up to three runs a rate.", "",
        "| answers | mode | largest valid, 1/s | least not valid, 1/s | target, 1/s | p99, ms | lag p99, ms |",
        "|---|---|---|---|---|---|---|", *map(ceiling_row, record["ceilings"]), "",
        f"At {BESIDE_PYTHON:,.0f} queries/s, the run with the least p99 of three (target: p99 < 1 ms).", "",
        "| busy Python thread | answers | p50, us | p99, us | lag p99, us | p99 of all runs, us |",
        "|---|---|---|---|---|---|", *map(beside_row, record["beside python"]), "",
    ])  # fmt: skip


def ceiling_row(each: dict[str, Any]) -> str:
    """One line of the first table."""
    rates = " | ".join("" if rate is None else f"{rate:,.0f}" for rate in (each["qps"], each["failed"], each["target"]))
    late = " | ".join(f"{1e3 * each[what]['p99']:.2f}" for what in ("latency", "lag"))
    return f"| {each['answers']} | {each['mode']} | {rates} | {late} |"


def beside_row(each: dict[str, Any]) -> str:
    """One line of the second table."""
    times = " | ".join(f"{1e6 * each[what]:.0f}" for what in ("p50", "p99", "lag p99"))
    runs = ", ".join(f"{value * 1e6:.0f}" for value in each["p99 of all runs"])
    return f"| {'yes' if each['busy Python thread'] else 'no'} | {each['answers']} | {times} | {runs} |"


def main() -> None:
    """Runs everything and writes both files."""
    today = datetime.date.today().isoformat()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", default="0,1", help="cores to stay on")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a run of the search")
    parser.add_argument("--note", default="", help="what else ran on the machine")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "runs" / f"{today}-loadgen-ceiling.json")
    asked = parser.parse_args()
    os.sched_setaffinity(0, {int(core) for core in asked.cores.split(",")})
    command = f"python benchmarks/loadgen_ceiling.py --cores {asked.cores} --seconds {asked.seconds}"
    record: dict[str, Any] = {
        "date": today, "command": command,
        "loadgen": _loadgen.VERSION, "machine": machine(), "note": asked.note,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        record["beside python"] = [
            beside_python(Path(scratch), busy, at_once) for busy in (False, True) for at_once in (False, True)
        ]
        record["ceilings"] = rates(Path(scratch), asked.seconds)
    for each in record["ceilings"]:
        each["failed"] = each["failed"] if each["failed"] < float("inf") else None
    asked.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    asked.out.with_suffix(".md").write_text(page(record), encoding="utf-8")
    print(page(record))


if __name__ == "__main__":
    main()
