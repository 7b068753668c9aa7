"""Speed, memory and accuracy of the event simulation of inference services.

    python benchmarks/service_simulation.py [-o benchmarks/runs/DATE-service-simulation.json] [--only PART ...]

Parts: host (one host of 8 GPUs, batches copied over one cable), cluster (64 nodes of 8 GPUs at a million queries a
second), memory (resident, against the length of a run), accuracy (percentiles beside closed forms of queues), peak (the
peak of an M/D/1 server over ten seeds), grid (every cell of the study composable-server with a search of its own).
Writes raw data and a page beside it. CPU seconds stand beside wall seconds: the machine may be shared.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import kept
from oracles.queue_percentiles import mm1_sojourn, wait_percentile

import lanewise._native as native
from lanewise.api import load_catalog, load_study, load_system
from lanewise.catalog import Catalog, Figure
from lanewise.results.plan import Service
from lanewise.results.service_result import SearchRun
from lanewise.serving import queues
from lanewise.serving.ceiling import ceiling
from lanewise.serving.durations import Durations
from lanewise.serving.load import ServiceLoad
from lanewise.serving.peak import SearchOptions, search
from lanewise.serving.search import find_peak
from lanewise.serving.simulation import CHAIN, Simulation, SimulationInput
from lanewise.serving.verdict import invalid_reason
from lanewise.serving.workload import workload

# Queries/s of one GPU, as the study composable-server fits them: docs/accuracy.md.
FITTED = {"l40s": 43_684.0, "h100-nvl": 63_132.0}
RESNET = workload("resnet50")
SERVICE, BOUND = 1e-3, 15e-3  # s, of the M/D/1 server
NODES, GPUS, QPS = 64, 8, 1e6
LINK = 25e9  # B/s of a node's host link, of a NIC
Row = dict[str, Any]


def catalog() -> Catalog:
    """The parts catalogue with the fitted rates."""
    made = load_catalog()
    for part, rate in FITTED.items():
        figure = Figure(rate, "1/s", "docs/accuracy.md", basis="fitted")
        made = made.with_part(made.get(part).with_figure("service.resnet50.server", figure))
    return made


def timed(what: Callable[[], Any], runs: int) -> tuple[Any, Row]:
    """The last result, with wall and CPU seconds of each run."""
    walls, cpus, result = [], [], None
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        result = what()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return result, {"wall_s": walls, "cpu_s": cpus}


def eight() -> Simulation:
    """One host with 8 L40S behind one Gen4 cable."""
    return Simulation(
        load_system("composable-server-gen4", {"path": 3, "gpus": 8}, catalog()), [ServiceLoad(RESNET, qps=1.0)]
    )


def host(runs: int) -> list[Row]:
    """One core, one host, at three loads."""
    simulation = eight()
    most = ceiling(simulation, 0, [0.0]).qps
    rows = []
    for share in (0.5, 0.9, 0.98):
        outcome, times = timed(partial(simulation.run, [share * most], SimulationInput(10.0)), runs)
        out = outcome.services[0]
        flows = 4 * out.batches  # a start and an end of the copy and of the answer
        best = min(times["cpu_s"])
        rows.append({
            "load": share, "qps": share * most, "queries": out.answered, "batches": out.batches, "flow_events": flows,
            "queries_per_s": out.answered / best, "flow_events_per_s": flows / best, **times,
        })  # fmt: skip
    return rows


def service(batch: int, rate: float = QPS) -> native.Service:
    """A million queries a second in batches, each to the pool with the fewest."""
    made = native.Service()
    made.rate, made.batch, made.timeout, made.bound = rate, batch, 1e-3, BOUND
    return made


def own_links() -> tuple[native.Network, native.Scenario]:
    """Each node copies batches over a host link of its own; GPUs are 80 % busy."""
    network = native.Network([LINK] * 2 * NODES, [[(n, 1.0)] for n in range(2 * NODES)], [1.0] * 2 * NODES,
                             [math.inf] * 2 * NODES)  # fmt: skip
    made, size, batch = native.Scenario(), RESNET.bytes_in, 8
    made.services, made.gpus = [service(batch)], NODES * GPUS
    made.pools = [native.Pool(0, native.Leg()) for _ in range(NODES)]
    times = [0.8 * NODES * GPUS / QPS * count for count in range(1, batch + 1)]
    made.workers = [
        native.Worker(g // GPUS, g, 4, native.Leg(g // GPUS, size, 2.7e-6, 1e-6, LINK, 2),
                      native.Leg(NODES + g // GPUS, RESNET.bytes_out, 2.7e-6, 1e-6, LINK), times)
        for g in range(NODES * GPUS)
    ]  # fmt: skip
    return network, made


def one_fabric(nics: int = 8) -> tuple[native.Network, native.Scenario]:
    """Every query is a message through a NIC of the Frontend and a NIC of its node, to its GPU.

    The fabric between them blocks nothing, as in the ready systems; the Frontend's NICs are 75 % busy. Answers of 4 B
    are a packet each, which takes time and no share of a link.
    """
    size, batch, count = RESNET.bytes_in, 8, NODES * GPUS
    capacities = [LINK] * nics + [LINK] * NODES + [LINK] * count
    node, gpu = nics, nics + NODES
    ways = [(g % nics, node + g // GPUS, gpu + g) for g in range(count)]
    uses = [[(resource, 1.0) for resource in way] for way in ways]
    network = native.Network(capacities, uses, [1.0] * len(uses), [math.inf] * len(uses))
    made = native.Scenario()
    made.services, made.gpus = [service(batch)], count
    made.pools = [native.Pool(0, native.Leg(g, size, 0.0, 2e-6, LINK, 1, CHAIN)) for g in range(count)]
    times = [0.8 * count / QPS * each for each in range(1, batch + 1)]
    made.workers = [
        native.Worker(g, g, 4, native.Leg(slots=2), native.Leg(latency=2e-6), times)
        for g in range(count)
    ]  # fmt: skip
    return network, made


def cluster(runs: int) -> list[Row]:
    """64 nodes of 8 GPUs at a million queries a second, both ways; simulated seconds a second."""
    rows = []
    for name, build, seconds in (("own host links", own_links, 0.5), ("one fabric", one_fabric, 1.0)):
        network, made = build()
        made.duration = seconds
        outcome, times = timed(partial(native.simulate, network, made), runs)
        out, best = outcome.services[0], min(times["cpu_s"])
        messages = out.batches if name == "own host links" else out.answered
        rows.append({
            "cluster": name, "simulated_s": seconds, "queries": out.answered, "batches": out.batches,
            "transfers_at_most": messages + out.batches, "p99_s": out.percentile(0.99),
            "simulated_s_per_s": seconds / best, **times,
        })  # fmt: skip
    return rows


def memory_of(seconds: float) -> Row:
    """Peak memory in bytes that a run of so many simulated seconds adds, in a process of its own."""
    command = [sys.executable, __file__, "--memory", str(seconds)]
    found: Row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def memory_here(seconds: float) -> Row:
    """The same in this process."""
    simulation = eight()
    rate = 0.9 * ceiling(simulation, 0, [0.0]).qps
    Path("/proc/self/clear_refs").write_text("5")  # sets the high-water mark back to what is in use now
    before = _status("VmRSS")
    outcome = simulation.run([rate], SimulationInput(seconds, steps=100))
    return {"simulated_s": seconds, "queries": outcome.services[0].answered,
            "most_in_flight": outcome.most_in_flight, "bytes": _status("VmHWM") - before}  # fmt: skip


def _status(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((float(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":")), math.nan)


def line(rate: float, servers: int, variation: float, duration: float, seed: int) -> native.ServiceOutcome:
    """Servers of 1 ms that share a line; the first tenth is left out."""
    made, one = native.Scenario(), native.Service()
    one.rate, one.variation, one.bound = rate, variation, BOUND
    made.services, made.gpus, made.duration, made.seed = [one], servers, duration, seed
    made.pools = [native.Pool(0, native.Leg())]
    made.workers = [native.Worker(0, g, 1, native.Leg(), native.Leg(), [SERVICE]) for g in range(servers)]
    made.skip = 0.1 * duration
    return native.simulate(native.Network([], [], [], []), made).services[0]


def accuracy(runs: int) -> list[Row]:
    """Percentiles of queues beside their closed forms; means over seeds."""
    rows = []
    for name, servers, load in (("M/M/1", 1, 0.7), ("M/D/1", 1, 0.8), ("M/D/8", 8, 0.8), ("M/D/64", 64, 0.9)):
        rate, variation = servers * load / SERVICE, 1.0 if name == "M/M/1" else 0.0
        found = [line(rate, servers, variation, 5000.0 / servers, seed) for seed in range(1, runs + 1)]
        for share in (0.5, 0.9, 0.99):
            if name == "M/M/1":
                exact = mm1_sojourn(rate, SERVICE, share)
            else:
                exact = SERVICE + wait_percentile(queues.mdc(rate, SERVICE, servers), share)
            ours = [out.percentile(share) for out in found]
            rows.append({"queue": name, "load": load, "share": share, "exact_s": exact, "simulated_s": ours,
                         "error_pct": 100 * (statistics.mean(ours) / exact - 1)})  # fmt: skip
    return rows


def peak(seeds: int = 10) -> Row:
    """The peak of an M/D/1 server by the search, for several seeds."""
    exact = queues.md1_peak(SERVICE, BOUND)
    found, trials, start = [], [], time.perf_counter()
    for seed in range(seeds):

        def trial(qps: float, number: int, duration: float) -> SearchRun:
            out = native_trial(qps, number, duration)
            reason = invalid_reason(out.counted, out.late)
            return SearchRun(qps, number, not reason, out.percentile(0.99), out.counted, reason)

        each = find_peak(trial, durations=Durations(BOUND, longest=2e4), bracket=(700.0, 1000.0), precision=0.001,
                         seed=1 + 1000 * seed)  # fmt: skip
        found.append(each.rate)
        trials.append(len(each.runs))
    errors = [100 * (each / exact - 1) for each in found]
    return {"exact": exact, "peaks": found, "runs": trials, "mean_error_pct": statistics.mean(errors),
            "worst_error_pct": max(errors, key=abs), "wall_s": time.perf_counter() - start}  # fmt: skip


def native_trial(qps: float, seed: int, duration: float) -> native.ServiceOutcome:
    """One run of the M/D/1 server, nothing left out."""
    made, one = native.Scenario(), native.Service()
    one.rate, one.bound = qps, BOUND
    made.services, made.gpus, made.duration, made.seed = [one], 1, duration, seed
    made.pools = [native.Pool(0, native.Leg())]
    made.workers = [native.Worker(0, 0, 1, native.Leg(), native.Leg(), [SERVICE])]
    return native.simulate(native.Network([], [], [], []), made).services[0]


def cells() -> list[tuple[str, dict[str, int]]]:
    """Every system and setting that the study composable-server asks a service of, once."""
    study = load_study("composable-server")
    found: dict[tuple[str, tuple[tuple[str, int], ...]], None] = {}
    for row in study.rows:
        if isinstance(row.scenario, Service):
            ref = study.systems[row.system]
            found[ref.system, tuple(sorted({**ref.settings, **row.settings}.items()))] = None
    return [(system, dict(settings)) for system, settings in found]


def grid(threads: int) -> Row:
    """A full search of the peak for every cell; the native run lets other threads go on."""
    parts = catalog()

    def grid_point(cell: tuple[str, dict[str, int]]) -> Row:
        simulation = Simulation(load_system(cell[0], cell[1], parts), [ServiceLoad(RESNET, qps=1.0)])
        start = time.perf_counter()
        each = search(simulation, 0, [1.0], SearchOptions())[0]
        return {"system": cell[0], **cell[1], "peak": each.rate, "steady": ceiling(simulation, 0, [1.0]).qps,
                "interval": each.interval, "runs": len(each.runs), "wall_s": time.perf_counter() - start}  # fmt: skip

    start, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        rows = list(pool.map(grid_point, cells()))
    return {"threads": threads, "wall_s": time.perf_counter() - start, "cpu_s": time.process_time() - cpu,
            "cells": rows}  # fmt: skip


def table(title: str, rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    """Rows as Markdown, numbers to four digits."""

    def show(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) and abs(value) < 1e4 else f"{value:,.0f}" if isinstance(
            value, (int, float)) else str(value)  # fmt: skip

    lines = ["", f"## {title}", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return lines + ["| " + " | ".join(show(row.get(name, "")) for name in columns) + " |" for row in rows]


def page(found: Row) -> str:
    """The same in words, for people."""
    lines = [*kept.heading("Event simulation of services", found), f"Compiler: {found['compiler']}."]
    titles = {
        "host": ("One host, 8 L40S behind one Gen4 cable; best of the runs, CPU time",
                 ["load", "qps", "queries", "batches", "flow_events", "queries_per_s", "flow_events_per_s"]),
        "cluster": ("64 nodes of 8 GPUs, a million queries a second",
                    ["cluster", "simulated_s", "queries", "batches", "transfers_at_most", "p99_s",
                     "simulated_s_per_s"]),
        "memory": ("Memory against the length of a run", ["simulated_s", "queries", "most_in_flight", "bytes"]),
        "accuracy": ("Percentiles beside closed forms", ["queue", "load", "share", "exact_s", "error_pct"]),
    }  # fmt: skip
    for part, (title, columns) in titles.items():
        if part in found:
            lines += table(title, found[part], columns)
    if "peak" in found:
        columns = ["exact", "mean_error_pct", "worst_error_pct", "wall_s"]
        lines += table("Peak of an M/D/1 server, ten seeds", [found["peak"]], columns)
    if "grid" in found:
        whole = found["grid"]
        title = f"Peaks of the study composable-server: {whole['wall_s']:.1f} s on {whole['threads']} threads"
        lines += table(title, whole["cells"], ["system", "path", "gpus", "peak", "steady", "runs", "wall_s"])
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures the parts asked for, writes them and prints the page."""
    parts: dict[str, Callable[[int], Any]] = {
        "host": host, "cluster": cluster, "memory": lambda _: [memory_of(each) for each in (1.0, 10.0, 100.0)],
        "accuracy": accuracy, "peak": lambda _: peak(), "grid": lambda _: grid(2),
    }  # fmt: skip
    parser = kept.options(__doc__, "service-simulation")
    parser.add_argument("--only", nargs="*", choices=list(parts), default=list(parts))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--memory", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.memory is not None:
        print(json.dumps(memory_here(asked.memory)))
        return
    found = kept.begin(asked) | {"compiler": kept.first_line("c++", "--version")}
    for name in asked.only:
        found[name] = parts[name](asked.runs)
        kept.keep(found, None, asked.out)
    kept.keep(found, page, asked.out)


if __name__ == "__main__":
    main()
