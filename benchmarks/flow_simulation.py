"""Speed of the flow simulation against the number of overlapping flows, beside SimGrid where it can be had.

    python benchmarks/flow_simulation.py [--simgrid PREFIX] [--out benchmarks/runs/DATE-flow-simulation.json]

The network: 8 GPUs behind two shared uplinks and one host memory. 22 resources (each direction of 8 GPU links
and 2 uplinks 24 GB/s; memory reads and writes 40 GB/s) and 24 classes of flows, all coupled by the memory:
host to GPU, GPU to host, and GPU to the GPU of the same place behind the other uplink.
The load: n slots; in each, one transfer after another of a random class and size (1 to 64 MB), 10 us apart on
average. A first run fixes all start times, so both tools get the same list; an event is a start or an end.
Two wide networks follow (64 nodes of 8 GPUs, 1,536 classes, one fabric), without a peer.
SimGrid (PREFIX has lib/libsimgrid.so and include/simgrid) runs tests/oracles/simgrid_flows.cpp.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import kept
import numpy as np

import lanewise._native as native
from lanewise.perf.sharing import SolverFlow, finish_times

ROOT = Path(__file__).parents[1]
OVERLAPS = (8, 64, 256, 1000, 10_000, 100_000)
MEMORY_FLOWS = (1_000, 10_000, 100_000, 1_000_000)
GPUS, UPLINKS = 8, 2
# Fastest settings: no TCP window, no cross traffic, lazy updates.
SIMGRID = ("network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0", "network/optim:Lazy",
           "contexts/factory:raw", "contexts/stack-size:64")  # fmt: skip
# Beside its default precision (1e-9 s, 1e-5 B), which at few flows is slower and off by 1e-10.
SIMGRID_SHARP = ("precision/timing:1e-12", "precision/work-amount:1e-9")

# Wide networks, by name: nodes of 8 GPUs on one fabric, and how many transfers are under way at a time.
WIDE = {"64x8 GPUs, few active": (64, 64), "64x8 GPUs, all active": (64, 4096)}

Workload = dict[str, Any]


def network() -> tuple[list[float], list[SolverFlow]]:
    """Capacities (B/s) and classes; resources: GPU links down, up, uplinks down, up, memory reads, writes."""
    capacities = [24e9] * (2 * GPUS + 2 * UPLINKS) + [40e9, 40e9]
    read, write = len(capacities) - 2, len(capacities) - 1
    classes = []
    for gpu in range(GPUS):
        peer = (gpu + GPUS // UPLINKS) % GPUS
        here, there = gpu * UPLINKS // GPUS, peer * UPLINKS // GPUS
        down, up = 2 * GPUS + here, 2 * GPUS + UPLINKS + here
        paths = ((read, down, gpu), (GPUS + gpu, up, write), (GPUS + gpu, up, 2 * GPUS + there, peer))
        classes += [SolverFlow(tuple((r, 1.0) for r in path)) for path in paths]
    return capacities, classes


def wide_network(nodes: int) -> tuple[list[float], list[SolverFlow]]:
    """Each GPU has PCIe and a network port; 8 ports of storage; one fabric. GPU to two peers, storage to GPU."""
    gpus = 8 * nodes
    capacities = [64e9] * (2 * gpus) + [50e9] * (2 * gpus) + [50e9] * 8 + [gpus * 20e9]
    storage, fabric = 4 * gpus, 4 * gpus + 8
    classes = []
    for gpu in range(gpus):
        into = {peer: (3 * gpus + peer, gpus + peer) for peer in (gpu, (gpu + 8) % gpus, (gpu + gpus // 2) % gpus)}
        out = (gpu, 2 * gpus + gpu, fabric)
        paths = [(storage + gpu % 8, fabric, *way) if peer == gpu else (*out, *way) for peer, way in into.items()]
        classes += [SolverFlow(tuple((r, 1.0) for r in path)) for path in paths]
    return capacities, classes


def workload(overlap: int, flows: int, seed: int = 1, nodes: int = 0) -> Workload:
    """`flows` transfers with about `overlap` of them under way at any time, as columns sorted by start."""
    rng = random.Random(seed)
    capacities, classes = wide_network(nodes) if nodes else network()
    count = len(classes)
    engine = native.FlowEngine(
        native.Network(capacities, [list(k.amounts) for k in classes], [1.0] * count, [math.inf] * count)
    )
    waiting = sorted(rng.random() * 1e-4 for _ in range(overlap))
    rows: list[tuple[int, float, float]] = []
    while len(rows) < flows:
        if not waiting or engine.next_event_time() <= waiting[0]:
            for _ in engine.advance():
                heapq.heappush(waiting, engine.now + rng.expovariate(1e5))
        else:
            engine.advance_to(heapq.heappop(waiting))
            rows.append((rng.randrange(count), float(rng.randrange(1_000_000, 64_000_000)), engine.now))
            engine.add(rows[-1][0], rows[-1][1], len(rows))
    table = np.array(rows)
    return {"capacities": capacities, "classes": classes, "flow_class": table[:, 0].astype(np.int32),
            "size": table[:, 1].copy(), "start": table[:, 2].copy()}  # fmt: skip


def ours(load: Workload, repeats: int) -> tuple[dict[str, Any], np.ndarray]:
    """Events per second, and per second of CPU time, of each repeat and at best; and the finish times."""
    speeds, cpu_speeds = [], []
    columns = (load["flow_class"], load["size"], load["start"])
    for _ in range(repeats):
        began, cpu_began = time.perf_counter(), time.process_time()
        finishes = finish_times(load["capacities"], load["classes"], *columns)
        cpu_speeds.append(2 * len(finishes) / (time.process_time() - cpu_began))
        speeds.append(2 * len(finishes) / (time.perf_counter() - began))
    every = {"all_events_per_s": speeds, "all_events_per_cpu_s": cpu_speeds}
    return {"events_per_s": max(speeds), "events_per_cpu_s": max(cpu_speeds), **every}, finishes


def memory(overlap: int) -> float:
    """Peak memory in bytes that simulating adds in a fresh process: all transfers start at once and stay."""
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")  # sets the high-water mark back to what is in use now
    before = _status("VmRSS")
    capacities, classes = network()
    flow_class = (np.arange(overlap) % len(classes)).astype(np.int32)
    finish_times(capacities, classes, flow_class, np.linspace(1e6, 64e6, overlap), np.zeros(overlap))
    return _status("VmHWM") - before


def _status(key: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return float(line.split()[1]) * 1024
    return math.nan


def memory_in_child(overlap: int) -> float:
    """`memory`, measured in a process of its own."""
    command = [sys.executable, __file__, "--memory", str(overlap)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def build_simgrid(prefix: Path, folder: Path) -> Path:
    """Compiles the SimGrid program; CalledProcessError if that fails."""
    program = folder / "simgrid_flows"
    headers = (prefix / "include", *prefix.glob("simgrid-*/include"), prefix / "build/include")
    includes = [f"-I{path}" for path in headers]
    lib = next(path for path in (prefix / "lib", prefix / "build/lib") if path.is_dir())
    source = ROOT / "tests/oracles/simgrid_flows.cpp"
    libraries = [f"-L{lib}", "-lsimgrid", f"-Wl,-rpath,{lib}"]
    command = ["g++", "-std=c++17", "-O3", *includes, str(source), *libraries, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def simgrid(program: Path, load: Workload, flows: int, sharp: bool, repeats: int) -> dict[str, Any]:
    """The first `flows` transfers through SimGrid and through ours, each at its best of `repeats`."""
    part = {**load, **{key: load[key][:flows] for key in ("flow_class", "size", "start")}}
    settings = SIMGRID + (SIMGRID_SHARP if sharp else ())
    speeds = []
    with tempfile.TemporaryDirectory() as folder:
        given, got = Path(folder, "in.txt"), Path(folder, "out.txt")
        given.write_text(as_text(part))
        options = ["--log=root.thres:error", *(f"--cfg={each}" for each in settings)]
        for _ in range(repeats):
            command = [str(program), str(given), str(got), *options]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                why = (done.stderr or f"exit {done.returncode}").strip()[-300:]
                return {"flows": flows, "settings": settings, "failed": why}
            lines = got.read_text().splitlines()
            speeds.append(2 * flows / float(lines[0]))
    finishes = np.array(lines[2:], dtype=float)
    own, reference = ours(part, repeats)
    before, after = (float(each) * 1024 for each in lines[1].split())
    return {
        "flows": flows,
        "settings": settings,
        "events_per_s": max(speeds),
        "all_events_per_s": speeds,
        "lanewise_events_per_s_same_flows": own["events_per_s"],
        "lanewise_all_events_per_s_same_flows": own["all_events_per_s"],
        "memory_B": after - before,
        "largest_relative_difference": float(np.max(np.abs(finishes / reference - 1))),
    }


def as_text(load: Workload) -> str:
    """A workload in the format that tests/oracles/simgrid_flows.cpp reads."""
    lines = [
        f"{len(load['capacities'])} {' '.join(map(repr, load['capacities']))}",
        str(len(load["classes"])),
    ]
    lines += [" ".join(map(str, (len(k.amounts), *(r for r, _ in k.amounts)))) for k in load["classes"]]
    lines.append(str(len(load["size"])))
    columns = (load["flow_class"], load["size"], load["start"])
    lines += [f"{int(k)} {int(b)} {float(s)!r}" for k, b, s in zip(*columns, strict=True)]
    return "\n".join(lines) + "\n"


def measure(overlap: int, program: Path | None) -> dict[str, Any]:
    """One row: both tools at one number of overlapping flows."""
    flows = max(200_000, 5 * overlap)
    load = workload(overlap, flows)
    speeds, finishes = ours(load, 5)
    row: dict[str, Any] = {
        "overlap_asked": overlap,
        "overlap_mean": float(np.sum(finishes - load["start"]) / load["start"][-1]),
        "flows": flows,
        "lanewise": speeds,
    }
    if program is not None and overlap <= 10_000:
        # Fewer where it is slower, but always some hundred beyond the first filling: ends are among them.
        part = min(flows, {8: 100_000, 64: 40_000, 256: 10_000, 1000: 5_000, 10_000: 10_300}[overlap])
        precisions, repeats = ((True, False), 5) if overlap <= 1000 else ((True,), 1)
        row["simgrid"] = [simgrid(program, load, part, sharp, repeats) for sharp in precisions]
    return row


def measure_wide(name: str) -> dict[str, Any]:
    """One row of a wide network, ours alone."""
    nodes, overlap = WIDE[name]
    load = workload(overlap, max(5 * overlap, 20_000), nodes=nodes)
    speeds, _ = ours(load, 5)
    return {"network": name, "overlap_asked": overlap, "flows": len(load["size"]), "classes": len(load["classes"]),
            "lanewise": speeds}  # fmt: skip


def simgrid_program(prefix: Path | None, folder: Path) -> tuple[Path | None, str]:
    """The peer's program, or None and the reason."""
    if prefix is None:
        return None, "not requested: give --simgrid PREFIX"
    try:
        return build_simgrid(prefix, folder), str(prefix)
    except (subprocess.CalledProcessError, StopIteration, FileNotFoundError) as error:
        return None, f"could not be built from {prefix}: {error}"


def main() -> None:
    """Measures all rows, prints them and writes them with the command and the machine."""
    options = kept.options(__doc__, "flow-simulation")
    options.add_argument("--simgrid", type=Path, help="where SimGrid 4.x is installed or built")
    options.add_argument("--overlaps", type=int, nargs="*", default=OVERLAPS)
    options.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.memory is not None:
        print(memory(given.memory))
        return
    with tempfile.TemporaryDirectory() as folder:
        program, about = simgrid_program(given.simgrid, Path(folder))
        print(f"SimGrid: {about}", flush=True)
        result = kept.begin(given) | {"compiler": kept.first_line("c++", "--version"), "simgrid": about, "rows": []}
        result["memory"] = [{"flows": n, "bytes": memory_in_child(n)} for n in MEMORY_FLOWS]
        rows = [partial(measure, each, program) for each in given.overlaps]
        rows += [partial(measure_wide, each) for each in WIDE]
        for row in rows:
            result["rows"].append(row())
            print(json.dumps(result["rows"][-1]), flush=True)
            kept.keep(result, None, given.out)


if __name__ == "__main__":
    main()
