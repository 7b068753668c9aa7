"""Query dispatch against UCX, gRPC and a bare socket, by turns: queries/s and round trips between two processes.

    python benchmarks/dispatch_peers.py --ucx SITE-PACKAGES/libucx [-o benchmarks/runs/DATE-dispatch.json]

Every program of benchmarks/peers is a Frontend and a node, two processes: the Frontend keeps a window of queries
outstanding, sample after sample of a library of 256 MiB; the node receives each into the next of its slots (256 of
150,528 B are 38 MB, more than most caches), sums it with the same CRC-32 and answers with the sum, which the Frontend
compares with that of the sample. A wrong sum ends the benchmark. Without --pinned the kernel places threads; with it
the Frontend is on CPU 0 and the node on CPU 1, in all programs. What differs:

- dispatch: the library as a load test uses it. In throughput runs a thread issues as slots become free; in round trips
  the next query is issued from the call that brings the answer, as UCX does (with -thread: by a thread of its own, as
  LoadGen does). Both sides look for a while before they sleep.
- UCX: active messages, one thread a side, which polls without end, so it needs both CPUs for itself; UCX chooses
  between eager and rendezvous.
- framed socket: blocking calls, two threads at the Frontend, one at the node; data goes from the socket into its slot.
- gRPC: one asynchronous bidirectional stream, one thread a side and gRPC's own; the sum is taken in its message.

Each run lasts `--seconds` after a warm-up of 0.3 s, in a process of its own, the programs in turn. CPU time that other
processes took meanwhile is kept with each run; a run waits 10 s at most for a quiet machine, all of them together no
longer than `--wait`. Medians are of the runs while others took less than 10 % of the CPU time, if these are three at
least.
UCX's wheel: pip download libucx-cu12 --no-deps; gRPC: libgrpc++-dev and protobuf-compiler-grpc of Debian.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kept

BUILD = kept.ROOT / "build" / "peers"
IMAGE, SHORT = 150528, 8
SLOTS, LIBRARY = 256, (256 << 20) // IMAGE
QUIET = 0.1  # of the CPU time at most to others
LONGEST_WAIT = 10.0  # s, for one run


@dataclass(frozen=True)
class Setup:
    """What is compared: programs with their transports, the size of a sample, and how many queries are outstanding."""

    title: str
    programs: tuple[tuple[str, str], ...]
    sample_bytes: int
    window: int
    slots: int = SLOTS


DISPATCH, UCX, FRAMED, GRPC = "dispatch_queries", "ucx_messages", "framed_socket", "grpc_queries"
SHM = ((DISPATCH, "shm"), (UCX, "shm"))
TCP = ((DISPATCH, "tcp"), (UCX, "tcp"), (FRAMED, "tcp"), (GRPC, "tcp"))
SETUPS = [
    Setup("shm, 256 outstanding", (*SHM, (GRPC, "unix")), IMAGE, 256),
    Setup("shm, 16 outstanding", (*SHM, (GRPC, "unix")), IMAGE, 16),
    Setup("tcp, 256 outstanding", (*TCP, (DISPATCH, "tcp-zerocopy")), IMAGE, 256),
    Setup("tcp, 16 outstanding", TCP, IMAGE, 16),
    Setup("shm, 4096 outstanding", SHM, SHORT, 4096, 4096),
    Setup("shm, one outstanding", (*SHM, (DISPATCH, "shm-thread")), IMAGE, 1),
    Setup("shm, one outstanding", (*SHM, (DISPATCH, "shm-thread")), SHORT, 1),
    Setup("tcp, one outstanding", TCP, IMAGE, 1),
    Setup("tcp, one outstanding", TCP, SHORT, 1),
]


def build(ucx: Path) -> None:
    command = ["cmake", "-S", str(kept.ROOT / "benchmarks/peers"), "-B", str(BUILD), f"-DUCX={ucx.resolve()}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(BUILD), "-j2"], check=True, stdout=subprocess.DEVNULL)


def busy() -> float:
    """Seconds of CPU time of this machine that were not idle, of all CPUs, since it started."""
    ticks = [int(each) for each in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    per_second: int = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[3] - ticks[4]) / per_second


def children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def wait_for_quiet(limit: float) -> float:
    """Waits until others leave the CPUs alone, `limit` seconds at most; returns how long that took."""
    began = time.monotonic()
    while (left := limit - (time.monotonic() - began)) > 0:
        before = busy()
        time.sleep(min(0.3, left))
        if busy() - before < QUIET * 0.3 * (os.cpu_count() or 1):
            break
    return time.monotonic() - began


def run(setup: Setup, program: str, transport: str, pin: bool, seconds: float) -> dict[str, Any]:
    library = LIBRARY if setup.sample_bytes == IMAGE else 1024
    words = [transport, *map(str, (setup.sample_bytes, setup.window, setup.slots, library, seconds))]
    environment = {**os.environ, "UCX_WARN_UNUSED_ENV_VARS": "n", "UCX_LOG_LEVEL": "error"}
    before, own, began = busy(), children(), time.monotonic()
    done = subprocess.run([str(BUILD / program), *words, "pin" if pin else "free"], env=environment,
                          stdout=subprocess.PIPE, text=True, timeout=60, check=True)  # fmt: skip
    wall = (time.monotonic() - began) * (os.cpu_count() or 1)
    others = max(0.0, busy() - before - (children() - own)) / wall
    return {**json.loads(done.stdout), "others": round(others, 3)}


def measure(arguments: argparse.Namespace, record: kept.Record) -> None:
    """Fills record["rows"], a row for each setup and program."""
    rows = record["rows"] = [
        {"setup": setup.title, "sample_bytes": setup.sample_bytes, "window": setup.window, "program": program,
         "transport": transport, "runs": []}
        for setup in SETUPS for program, transport in setup.programs
    ]  # fmt: skip
    left = arguments.wait
    for number in range(arguments.rounds):
        one_by_one = iter(rows)
        for setup in SETUPS:
            for program, transport in setup.programs:
                left -= wait_for_quiet(min(left, LONGEST_WAIT))
                done = run(setup, program, transport, arguments.pinned, arguments.seconds)
                next(one_by_one)["runs"].append(done)
        print(f"round {number + 1} of {arguments.rounds}, load {os.getloadavg()[0]:.1f}", flush=True)
        kept.keep(record, None, arguments.out)


def median(row: dict[str, Any], key: str) -> float:
    quiet: list[float] = [each[key] for each in row["runs"] if each["others"] < QUIET]
    return statistics.median(quiet) if len(quiet) >= 3 else statistics.median(float(each[key]) for each in row["runs"])


def table(rows: list[dict[str, Any]]) -> list[str]:
    """A row of Markdown each, and how the first of them compares."""
    lines = ["| program | transport | queries/s, median | best | p50, us | best | CPU us a query, Frontend + node | "
             "to others | dispatch / it |", "|---|---|---:|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
    first = rows[0]
    latency = first["window"] == 1
    for row in rows:
        runs = row["runs"]
        ratio = (median(row, "p50_us") / median(first, "p50_us") if latency else
                 median(first, "qps") / median(row, "qps"))  # fmt: skip
        others = statistics.median(each["others"] for each in runs)
        quiet = sum(each["others"] < QUIET for each in runs)
        cpu = f"{median(row, 'frontend_cpu_us'):.1f} + {median(row, 'node_cpu_us'):.1f}"
        lines.append(f"| {row['program']} | {row['transport']} | {median(row, 'qps'):,.0f} | "
                     f"{max(each['qps'] for each in runs):,.0f} | {median(row, 'p50_us'):.2f} | "
                     f"{min(each['p50_us'] for each in runs):.2f} | {cpu} | "
                     f"{100 * others:.0f} % ({quiet} of {len(runs)} quiet) | {ratio:.2f} |")  # fmt: skip
    return lines


def page(record: kept.Record) -> str:
    """A table for each setup."""
    lines = kept.heading("Query dispatch and its peers", record)
    lines += [*(__doc__ or "").split("\n\n", 2)[2].strip().splitlines(), ""]
    lines += ["The last column: queries/s of dispatch over those of the row; with one outstanding, the row's median "
              "round trip over that of dispatch. Above 1 dispatch is ahead.", ""]  # fmt: skip
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in record["rows"]:
        groups.setdefault((row["setup"], row["sample_bytes"]), []).append(row)
    for (setup, size), rows in groups.items():
        lines += [f"## {setup}, {size:,} B", "", *table(rows), ""]
    return "\n".join(lines)


def main() -> None:
    """Builds, measures and keeps."""
    parser = kept.options(__doc__, "dispatch")
    parser.add_argument("--ucx", type=Path, required=True, help="folder with UCX's include and lib")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each program (default 5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a run (default 1)")
    parser.add_argument("--wait", type=float, default=600.0, help="s to wait for a quiet machine, in all (default 600)")
    parser.add_argument("--pinned", action="store_true", help="Frontend on CPU 0, node on CPU 1")
    arguments = parser.parse_args()
    record = kept.begin(arguments)
    build(arguments.ucx)
    measure(arguments, record)
    kept.keep(record, page, arguments.out)


if __name__ == "__main__":
    main()
