"""How fast the command starts, beside Python alone, and how fast all routes of a large system are found.

    python benchmarks/start.py [--rounds 15]

Whole processes; each round starts all of them in turn, so that what else runs hits all alike. They keep their bytecode
in a folder of this run, which a first round fills, as a user's installation has it. CPU time is that of the process and
what it started. Budgets: 250 ms for a start, 100 ms for the routes between the 16 GPUs of rack-16gpu.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import kept

from lanewise.api import load_system
from lanewise.routes.find import route
from lanewise.topology.model import Kind

STARTS = {
    **{f"lanewise {text}": text.split() for text in ("--version", "--help", "predict --nope", "nope")},
    **{f"python -c '{code}'": ["-c", code] for code in ("pass", "import typer")},
}
START_BUDGET, ROUTES_BUDGET = 0.25, 0.1  # s
RACK = "rack-16gpu"


def start(name: str, bytecode: str) -> tuple[float, float]:
    """Wall and CPU seconds of one start."""
    program = Path(sys.executable)
    binary = program.with_name("lanewise") if name.startswith("lanewise") else program
    command = [str(binary), *STARTS[name]]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
    began, before = time.perf_counter(), cpu_of_children()
    subprocess.run(command, env=environment, capture_output=True, check=False)
    return time.perf_counter() - began, cpu_of_children() - before


def cpu_of_children() -> float:
    """Seconds of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def starts(rounds: int) -> list[kept.Record]:
    """All starts, round after round; the first does not count."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in STARTS}
    with tempfile.TemporaryDirectory() as bytecode:
        for number in range(rounds + 1):
            for name in STARTS:
                times = start(name, bytecode)
                if number:
                    found[name].append(times)
    return [{"what": name, "wall_s": [w for w, _ in times], "cpu_s": [c for _, c in times],
             "budget_s": START_BUDGET if name.startswith("lanewise") else None}
            for name, times in found.items()]  # fmt: skip


def routes(rounds: int) -> kept.Record:
    """All ways between the GPUs of a rack, in a system whose ways nobody has asked for yet."""
    walls, cpus = [], []
    for _ in range(rounds):
        system = load_system(RACK)
        gpus = system.of_kind(Kind.GPU)
        wall, cpu = time.perf_counter(), time.process_time()
        for source in gpus:
            for target in gpus:
                route(system, source, target)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    what = f"all {len(gpus) ** 2} routes of {RACK}"
    return {"what": what, "wall_s": walls, "cpu_s": cpus, "budget_s": ROUTES_BUDGET}


def row(each: kept.Record) -> str:
    """One line of the table, in ms."""
    times = [f"{1e3 * of(each[key]):.1f}" for key in ("wall_s", "cpu_s") for of in (statistics.median, min)]
    budget = each["budget_s"]
    kept_to = "" if budget is None else "yes" if statistics.median(each["wall_s"]) <= budget else "no"
    cells = [f"`{each['what']}`", *times, "" if budget is None else f"{1e3 * budget:.0f}", kept_to]
    return f"| {' | '.join(cells)} |"


def page(record: kept.Record) -> str:
    """The times as a table."""
    return "\n".join([
        *kept.heading("Starts", record), f"{record['rounds']} rounds, ms; the budget is of the median wall time.", "",
        "| what | wall, median | wall, least | CPU, median | CPU, least | budget | kept |",
        "|---|---|---|---|---|---|---|", *map(row, record["rows"]), "",
    ])  # fmt: skip


def main() -> None:
    """Times everything and keeps it."""
    parser = kept.options(__doc__, "start")
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    record = kept.begin(asked)
    record["rounds"], record["rows"] = asked.rounds, [*starts(asked.rounds), routes(asked.rounds)]
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
