"""Ten thousand scenarios on one and on two workers: speed-up, overhead a scenario, memory, and who takes the CPU time.

    python benchmarks/scenario_sweep.py [--scenarios 10000] [--engines ray:1,ray:2]

Each engine runs in a process of its own, into a new folder of results. Once a second the CPU time of every process
below it is read: the driver, Ray's raylet, its gcs_server, its other processes (agents, monitors), the workers. `work`
is the sum of what the workers say that their batches took; overhead a scenario is the workers' time from the first
batch to the last answer that is not work, and, apart from it, the driver's CPU time. Other work on the machine makes
the wall time longer, and the CPU time of the workers hardly.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kept

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from process_tree import ProcessTimes

from lanewise.api import sweep
from lanewise.engines.choice import open_engine
from lanewise.engines.work import BatchResult, WorkBatch, WorkEngine
from lanewise.options.predict import PredictOptions, ServiceOptions
from lanewise.options.system import SystemOptions
from lanewise.options.workers import WorkerOptions

SYSTEM = kept.ROOT / "examples" / "node-layouts.yaml"
FLOWS = "data->gpu[0-2], cache->gpu[4-5]"  # the fewest flows that take more than 10 ms a scenario
SWEEP = ("first=3,4", "gen=4,5", "lanes=8,16", "socket=2,3", "data=1..25", "cache=1..25")


class WatchedEngine:
    """An engine that notes when the first batch was submitted, when the last one finished, and what all took."""

    def __init__(self, engine: WorkEngine) -> None:
        self.engine, self.first, self.last, self.work, self.batches = engine, 0.0, 0.0, 0.0, 0

    def submit(self, batch: WorkBatch) -> None:
        """Note the first batch."""
        self.first = self.first or time.monotonic()
        self.engine.submit(batch)

    def next_result(self, timeout: float | None = None) -> BatchResult | None:
        """Note what a batch took."""
        result = self.engine.next_result(timeout)
        if result is not None:
            self.last, self.work, self.batches = time.monotonic(), self.work + result.seconds, self.batches + 1
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def __enter__(self) -> WatchedEngine:
        self.engine.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self.engine.__exit__(*failure)


def child(on: str, folder: str, count: int) -> None:
    """One sweep in this process; prints its figures as JSON."""
    watched: list[WatchedEngine] = []

    def watch(name: str | None) -> Any:
        watched.append(WatchedEngine(open_engine(name)))
        return watched[0]

    vars(sweep)["open_engine"] = watch
    start = time.monotonic()
    options = PredictOptions(flows=FLOWS, sweep=SWEEP)
    answers = sweep.predict_sweep(SystemOptions(str(SYSTEM)), options, ServiceOptions(),
                                  WorkerOptions(on=on, results=Path(folder)))  # fmt: skip
    finished = [answer for answer, _ in zip(answers, range(count), strict=False)]
    answers.close()  # type: ignore[attr-defined]
    spent = resource.getrusage(resource.RUSAGE_SELF)
    (engine,) = watched
    figures = {
        "scenarios": len(finished), "total": time.monotonic() - start, "wall": engine.last - engine.first,
        "work": engine.work, "batches": engine.batches, "driver": spent.ru_utime + spent.ru_stime,
        "rss": spent.ru_maxrss * 1024,
    }  # fmt: skip
    print(json.dumps(figures))


def measure(on: str, count: int) -> kept.Record:
    """The figures of a sweep on that engine, with the CPU time of every kind of process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--child", on, folder, str(count)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        with ProcessTimes(process.pid) as times:
            output, _ = process.communicate()
        rows = list(_rows(Path(folder)))
    figures: kept.Record = json.loads(output.splitlines()[-1])
    workers = int(on.partition(":")[2])
    idle = workers * figures["wall"] - figures["work"]
    return {"engine": on, "workers": workers, "rows": len(rows), "twice": len(rows) - len(set(rows)),
            "cpu": times.by_kind(), "overhead": idle / figures["scenarios"], **figures}  # fmt: skip


def _rows(folder: Path) -> Iterator[tuple[str, str]]:
    import pyarrow.parquet

    for path in folder.glob("*.parquet"):
        table = pyarrow.parquet.read_table(path, columns=["scenario", "flow"])
        yield from zip(table["scenario"].to_pylist(), table["flow"].to_pylist(), strict=True)


def page(record: kept.Record) -> str:
    """A line an engine, and the speed-up of each over the first."""
    rows = record["rows"]
    columns = ["engine", "scenarios", "rows", "rows twice", "work s", "wall s", "scenarios/s", "speed-up"]
    columns += ["overhead ms", "driver CPU ms", "driver MB"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in rows:
        rate = row["scenarios"] / row["wall"]
        gain = rate / (rows[0]["scenarios"] / rows[0]["wall"])
        each = 1e3 / row["scenarios"]
        times = f"{row['work']:.1f} | {row['wall']:.1f} | {rate:.1f} | {gain:.2f} | {row['overhead'] * 1e3:.2f}"
        lines.append(
            f"| {row['engine']} | {row['scenarios']} | {row['rows']} | {row['twice']} | {times} | "
            f"{row['driver'] * each:.2f} | {row['rss'] / 1e6:.0f} |"
        )
    kinds = sorted({kind for row in rows for kind in row["cpu"]})
    lines += ["", "CPU time in s, user and system, by process:", "", f"| engine | {' | '.join(kinds)} |",
              "|---" * (1 + len(kinds)) + "|"]  # fmt: skip
    for row in rows:
        spent = " | ".join(f"{row['cpu'].get(kind, 0):.1f}" for kind in kinds)
        lines.append(f"| {row['engine']} | {spent} |")
    said = f"`{FLOWS}` on `examples/node-layouts.yaml`, {' '.join(f'`--sweep {each}`' for each in SWEEP)}. "
    said += "Wall time is that from the first batch to the last answer, without the start of the engine; work is the "
    said += "sum of what batches took in their workers, as far as the machine let them run; overhead is the workers' "
    said += "wall time without work, for each scenario."
    return "\n".join([*kept.heading("Ten thousand scenarios", record), said, "", *lines, ""])


def main() -> None:
    """Run and keep."""
    parser = kept.options(__doc__, "scenario-sweep")
    parser.add_argument("--scenarios", type=int, default=10_000)
    parser.add_argument("--engines", default="ray:1,ray:2")
    options = parser.parse_args()
    record = {**kept.begin(options), "flows": FLOWS, "sweep": SWEEP, "rows": []}
    for on in options.engines.split(","):
        record["rows"].append(measure(on, options.scenarios))
        print(json.dumps(record["rows"][-1]), file=sys.stderr)
        kept.keep(record, None, options.out)
    kept.keep(record, page, options.out)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
