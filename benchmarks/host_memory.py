"""Memory rates beside likwid-bench and mbw in the same call, round by round, so that what else runs hits all alike.

    python benchmarks/host_memory.py [--rounds 5] [--out benchmarks/runs/DATE-host-memory.json]

Peers (apt install likwid mbw; x86): likwid-bench with and without stores past the caches, its copies halved, as it
counts what is read and what is written; mbw's memcpy (-t0). Not mbw's -t2: Debian's 1.2.2 reads one and the same block
of 256 KiB, from the cache (seen by printing the arguments of mempcpy). A figure is the median of the rounds. Writes the
JSON and a page of the same name.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import kept

MIB = 2**20
SIZE = 1024  # MiB of each buffer, as lanewise takes it


def output(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def lanewise(kind: str, threads: int) -> dict[str, Any]:
    """The row of `lanewise measure host` for one kind of work."""
    binary = Path(sys.executable).with_name("lanewise")
    shown = output(str(binary), "measure", "host", "--what", kind, "--nodes", "0", "--threads", str(threads),
                   "--bytes", f"{SIZE}MiB", "--json")  # fmt: skip
    (row,) = json.loads(shown)
    scale = 1e-9 if row["unit"] == "B/s" else 1e9  # GB/s, and ns of a load
    return {
        "value": row["value"] * scale, "samples": [value * scale for value in row["samples"]], "how": row["how"]
    }  # fmt: skip


def likwid(kernel: str, threads: int) -> dict[str, Any]:
    """GB/s of payload of likwid-bench, through as much memory in all as lanewise takes."""
    copies = kernel.startswith("copy")
    group = f"S0:{SIZE * MIB * (2 if copies else 1) // 1_000_000}MB:{threads}"
    text = output("likwid-bench", "-t", kernel, "-i", "8", "-w", group)
    found = re.search(r"MByte/s:\s+([\d.]+)", text)
    assert found, text
    return {"value": float(found[1]) / 1e3 / (2 if copies else 1)}


def mbw() -> dict[str, Any]:
    """GB/s of mbw's memcpy by one thread."""
    values = re.findall(
        r"^\d+\s.*Copy: ([\d.]+) MiB/s", output("mbw", "-q", "-n", "10", "-t0", str(SIZE)), re.MULTILINE
    )
    samples = [float(value) * MIB / 1e9 for value in values]
    return {"value": statistics.median(samples), "samples": samples}


def cases() -> dict[str, dict[str, Callable[[], dict[str, Any]]]]:
    """What is measured, and who measures it."""
    found: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {}
    kernels = {"copy": ("copy_mem_avx", "copy_avx"), "read": ("load_avx",), "write": ("store_mem_avx", "store_avx")}
    for work, names in kernels.items():
        for threads in (1, 2):
            tools: dict[str, Callable[[], dict[str, Any]]] = {"lanewise": partial(lanewise, work, threads)}
            tools |= {f"likwid-bench {name}": partial(likwid, name, threads) for name in names}
            found[f"{work}, threads: {threads}"] = tools
    found["copy, threads: 1"]["mbw -t0"] = mbw
    return found | {"latency, ns": {"lanewise": partial(lanewise, "latency", 1)}}


def measure(rounds: int) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """All cases, round after round."""
    asked = cases()
    found: dict[str, dict[str, list[dict[str, Any]]]] = {case: {tool: [] for tool in asked[case]} for case in asked}
    for number in range(rounds):
        for case, tools in asked.items():
            for tool, run in tools.items():
                result = run()
                found[case][tool].append(result)
                print(f"round {number + 1} {case}: {tool} {result['value']:.2f}", file=sys.stderr)
    return found


def page(record: dict[str, Any]) -> str:
    """The medians as a table."""
    lines = [
        *kept.heading("Host memory beside likwid-bench and mbw", record),
        "GB/s of payload (latency: ns), median of the rounds, smallest to largest round in brackets.",
        "",
        "| case | tool | median | rounds |",
        "|---|---|---|---|",
    ]
    for case, tools in record["cases"].items():
        for tool, results in tools.items():
            values = [result["value"] for result in results]
            middle, low, high = statistics.median(values), min(values), max(values)
            lines.append(f"| {case} | {tool} | {middle:.2f} | {len(values)} ({low:.2f} to {high:.2f}) |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs everything and writes both files."""
    parser = kept.options(__doc__, "host-memory")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    for tool in ("likwid-bench", "mbw"):
        if shutil.which(tool) is None:
            sys.exit(f"error: {tool} is not installed\nhint:  apt install likwid mbw")
    record = kept.begin(asked)
    record["cases"] = measure(asked.rounds)
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
