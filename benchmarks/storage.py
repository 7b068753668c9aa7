"""fio and Lanewise on the same file, in turn: rates at equal settings.

    python benchmarks/storage.py [--folder /var/tmp] [-o benchmarks/runs/DATE-storage.json]

A test file of 2 GiB is made in the folder and removed afterwards. Each case runs for 1.2 s by fio and by Lanewise, five
times over, in changing order; all read past the page cache through io_uring with registered buffers and files, the same
threads, I/O size and depth. The buffers of Lanewise lie in huge pages where the kernel gives them, those of fio do not,
so fio also runs with such buffers (a setting of glibc): that is the comparison at equal settings. Writes raw samples
and a page beside them; takes under three minutes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from typing import Any

import kept

from lanewise import measure_storage
from lanewise.results.estimate import median_interval

GIB = 1 << 30
SECONDS = 1.2
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # glibc 2.35 and later: malloc asks for them
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One setting of both tools."""

    io: int
    threads: int
    depth: int
    random: bool


CASES = (
    Case(4096, 1, 32, True),
    Case(4096, 2, 16, True),
    Case(1 << 20, 1, 8, False),
    Case(1 << 20, 2, 4, False),
    Case(8 << 20, 1, 4, False),
    Case(8 << 20, 2, 2, False),
)


def fio(path: str, case: Case, **environment: str) -> Row:
    """GB/s and latencies in us of one run of fio; each thread reads a part of the file of its own."""
    part = os.path.getsize(path) // case.threads
    command = [
        "fio", "--name=read", f"--filename={path}", f"--rw={'randread' if case.random else 'read'}", "--thread",
        "--ioengine=io_uring", "--direct=1", "--fixedbufs=1", "--registerfiles=1", "--group_reporting", "--time_based",
        f"--bs={case.io}", f"--iodepth={case.depth}", f"--numjobs={case.threads}", f"--runtime={SECONDS * 1000:.0f}ms",
        f"--size={part}", f"--offset_increment={part}", "--output-format=json",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    read = json.loads(done.stdout)["jobs"][0]["read"]
    late = read["clat_ns"]["percentile"]
    return {"GB/s": read["bw_bytes"] / 1e9, "p50_us": late["50.000000"] / 1e3, "p99_us": late["99.000000"] / 1e3}


def lanewise(path: str, case: Case) -> Row:
    """The same by Lanewise, with what it says about how."""
    taken = measure_storage(
        path, runs=1, modes="direct", io=case.io, threads=case.threads, depth=case.depth, random=case.random,
        seconds=SECONDS, size=os.path.getsize(path),
    )  # fmt: skip
    rows = {sample.metric: sample for sample in taken}
    late = {f"{name}_us": (rows[f"latency_{name}"].value or 0.0) * 1e6 for name in ("p50", "p99")}
    return {"GB/s": (rows["goodput"].value or 0.0) / 1e9, **late, "how": dict(rows["goodput"].how)}


def fio_huge(path: str, case: Case) -> Row:
    """fio with its buffers in huge pages."""
    return fio(path, case, **HUGE_PAGES)


def compare(path: str, case: Case, rounds: int) -> Row:
    """All in turn, the first one changing."""
    tools = {"fio": fio, "fio huge": fio_huge, "lanewise": lanewise}
    runs: dict[str, list[Row]] = {name: [] for name in tools}
    for number in range(rounds):
        for name in list(tools)[:: 1 if number % 2 else -1]:
            runs[name].append(tools[name](path, case))
    ours = [run["GB/s"] for run in runs["lanewise"]]
    ratios = {name: [b / a["GB/s"] for a, b in zip(runs[name], ours, strict=True)] for name in ("fio", "fio huge")}
    return {**asdict(case), "ratios": ratios, "runs": runs}


def make_file(folder: str) -> str:
    """A file of 2 GiB that does not compress, on the drive."""
    handle, path = tempfile.mkstemp(prefix="lanewise-fio-", dir=folder)
    with os.fdopen(handle, "wb") as out:
        for _ in range(2 * GIB // (16 << 20)):
            out.write(os.urandom(16 << 20))
        out.flush()
        os.fsync(out.fileno())
    return path


def page(data: Row) -> str:
    """The runs as a table."""
    lines = [
        *kept.heading("Lanewise beside fio", data),
        f"{data['fio']} on {data['file_system']}. "
        f"{data['rounds']} runs of {SECONDS} s each, in turn, past the page cache through io_uring. Ratios are medians "
        "of run by run, with the interval that holds the median with 95 %. `huge`: fio with its buffers in huge pages, "
        "as Lanewise has them, which is the comparison at equal settings. Target: at least 0.95.", "",
        "| I/O | order | threads | depth | GB/s fio | fio huge | Lanewise | of fio | of fio huge | interval "
        "| p50 us fio | Lanewise |", "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in data["cases"]:
        middle = {name: {key: statistics.median(run[key] for run in runs) for key in ("GB/s", "p50_us")}
                  for name, runs in row["runs"].items()}  # fmt: skip
        low, high = median_interval(row["ratios"]["fio huge"])
        cells = (
            f"{row['io'] // 1024} KiB", "random" if row["random"] else "sequential", row["threads"], row["depth"],
            *(f"{middle[name]['GB/s']:.3f}" for name in ("fio", "fio huge", "lanewise")),
            *(f"{statistics.median(row['ratios'][name]):.3f}" for name in ("fio", "fio huge")),
            f"{low:.3f} .. {high:.3f}", *(f"{middle[name]['p50_us']:.0f}" for name in ("fio", "lanewise")),
        )  # fmt: skip
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Run all cases and write them down."""
    parser = kept.options(__doc__, "storage")
    parser.add_argument("--folder", default="/var/tmp", help="where the test file is made")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    data = kept.begin(asked) | {
        "fio": kept.first_line("fio", "--version"), "rounds": asked.rounds, "seconds_each": SECONDS,
        "file_system": kept.first_line("stat", "-f", "-c", "%T", asked.folder),
    }  # fmt: skip
    path = make_file(asked.folder)
    try:
        data["cases"] = [compare(path, case, asked.rounds) for case in CASES]
    finally:
        os.unlink(path)
    kept.keep(data, page, asked.out)


if __name__ == "__main__":
    main()
