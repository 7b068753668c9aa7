"""Batch copies in several manners, and cached loads by read size, buffers and readers, on one H200.

    python benchmarks/h200/batches_and_loads.py predict FOLDER            # before: FOLDER/predicted.json, expected.json
    python benchmarks/h200/batches_and_loads.py measure FOLDER [DISK]     # there, with g++ and CUDA; DISK for a model
    python benchmarks/h200/batches_and_loads.py compare FOLDER            # the tables

Of one batch call the model has a prediction (predicted.json, as `predict --blocks -o` writes it). Of calls on several
streams, and of loads whose buffers fit into the CPU's caches, it has none: expected.json says what is expected and why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import lanewise
from lanewise.results.block_rows import GOODPUT

sys.path.insert(0, str(Path(__file__).parent))
from model_load import make

SYSTEM, GPU = "h200-pair", os.environ.get("GPU", "gpu0")
FLOWS = {"d2h": "gpu0->host0", "h2d": "host0->gpu0"}
TOTAL = int(os.environ.get("TOTAL", 1 << 30))
SIZES = (32 << 10, 128 << 10, 512 << 10)
# Streams, threads, copies a call (0: one call a stream), flags (1: prefer overlap with kernels), access order.
MANNERS = (
    (1, 1, 0, 0, 1), (1, 1, 0, 0, 3), (1, 1, 0, 1, 1), (1, 1, 0, 1, 3), (1, 1, 1024, 0, 1), (1, 1, 128, 0, 1),
    (2, 1, 0, 0, 1), (2, 2, 0, 0, 1), (2, 1, 256, 0, 1), (2, 1, 64, 0, 1), (2, 2, 256, 1, 3), (3, 1, 256, 0, 1),
    (4, 1, 0, 0, 1), (4, 1, 256, 0, 1), (4, 4, 0, 0, 1), (4, 1, 256, 1, 3), (8, 1, 128, 0, 1),
)  # fmt: skip
READERS, IO, DEPTHS = (4, 8, 12), tuple(mib << 20 for mib in (2, 4, 8, 16)), (4,)
EXPECTED = {
    "batches": "On one stream the pieces run in turn, 0.6 us between two; flags, access order and the number of calls "
    "change nothing. If the 0.6 us are of a channel of a copy engine, two streams hide them: 0.97 of the peak or more "
    "at 128 KiB. If they are of the engine, streams change nothing at all. The first is expected.",
    "loads": "Reads alone went into one buffer a reader, the load's into two: 64 MiB at 8 readers, which no core's "
    "cache (2 MiB) holds, so that each byte crosses the memory once more. Expected with io x depth at most 1 MiB: 0.95 "
    "of the slower stage or more at each number of readers (24.7 GB/s of 4, 41 of 8, 50.5 of 12); with 4 MiB x 4: at "
    "most 0.9.",
}
Row = dict[str, Any]


def predict(out: Path) -> None:
    """One call of each size and direction, and the expectations in words."""
    predictions = [
        lanewise.predict_blocks(SYSTEM, flow, f"{TOTAL // size} x {size >> 10} KiB", "cuMemcpyBatchAsync")
        for size in SIZES for flow in FLOWS.values()
    ]  # fmt: skip
    rows = [row for prediction in predictions for row in lanewise.block_rows(prediction)]
    lanewise.save_run(lanewise.as_measured_run((), rows=rows), out / "predicted.json")
    (out / "expected.json").write_text(json.dumps(EXPECTED, indent=1) + "\n", encoding="utf-8")


def batches(out: Path) -> None:
    """Builds batches.cpp, and runs every manner of every size."""
    cuda = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    manners = "\n".join(" ".join(map(str, manner)) for manner in MANNERS)
    with tempfile.TemporaryDirectory() as scratch, (out / "batches.txt").open("w") as lines:
        program, source = Path(scratch) / "batches", Path(__file__).with_name("batches.cpp")
        includes, libraries = f"-I{cuda}/include", f"-L{os.environ.get('CUDA_STUBS', f'{cuda}/lib64/stubs')}"
        options = ["-O2", "-std=c++20", "-pthread", includes, libraries]
        subprocess.run(["g++", *options, str(source), "-lcuda", "-o", str(program)], check=True)
        # A copy of everything at once first: what the path gives.
        for size, text in ((64 << 20, "1 1 0 0 1"), *((size, manners) for size in SIZES)):
            for direction in FLOWS:
                words = [str(program), direction, str(max(1, TOTAL // size)), str(size)]
                subprocess.run(words, input=text, text=True, check=False, stdout=lines)


def loads(out: Path, folder: Path) -> None:
    """The cached mode by readers, size of reads and buffers; the first of each is compared with the file."""
    path = folder / "random.safetensors"
    make(path)
    rows: list[Row] = []
    try:
        for readers in READERS:
            for io in IO:
                for depth in DEPTHS:
                    options: Row = {
                        "readers": readers,
                        "io": io,
                        "depth": depth,
                        "skip_verify": io != IO[0],
                    }
                    run = lanewise.as_measured_run(
                        lanewise.measure_load(path, GPU, modes=("cached",), runs=5, **options)
                    )
                    values = {row.metric: row.value for row in run.rows}
                    rows.append(options | {"values": values, "limit": run.rows[0].how.get("limit", "")})
                    (out / "loads.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
                    shown = ", ".join(f"{name} {value:.4g}" for name, value in values.items() if value is not None)
                    print(f"{readers} readers, {io >> 10} KiB x {depth}: {shown}", flush=True)
    finally:
        path.unlink()


def kernels(out: Path) -> None:
    """Both kernels that copy pieces, verified: of blocks, and of queries gathered."""
    samples = list(lanewise.measure_kv("host", f"{TOTAL >> 17} x 128 KiB", runs=5, peak_bytes=min(TOTAL, 1 << 28)))
    lanewise.save_run(lanewise.as_measured_run(samples), out / "kv.run.json")
    gathered = list(lanewise.measure_gpu(cases=("queries_*",), devices="0"))
    lanewise.save_run(lanewise.as_measured_run(gathered), out / "queries.run.json")


def measure(out: Path, folder: Path) -> None:
    """All of it; a part that fails is printed, and the others go on."""
    began = time.monotonic()
    parts: dict[str, Callable[[], None]] = {
        "batches": lambda: batches(out), "kernels": lambda: kernels(out), "loads": lambda: loads(out, folder)
    }  # fmt: skip
    for name, part in parts.items():
        try:
            part()
        except Exception as error:  # the others are worth their time on the machine
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
        print(f"{name}: done after {time.monotonic() - began:.0f} s", flush=True)


def compare(out: Path) -> None:
    """The tables of the three."""
    predicted = {
        (row.flow, row.settings["bytes"]): row
        for row in lanewise.load_run(out / "predicted.json").rows if row.metric == GOODPUT
    }  # fmt: skip
    peaks: dict[str, float] = {}
    print(
        "| direction | KiB | streams | threads | copies | flags | order | posted ms | GB/s | of the peak | predicted |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|")
    for line in (out / "batches.txt").read_text().splitlines():
        direction, count, size, *manner = line.split()[:8]
        posted, *rounds = map(float, line.split()[8:])
        rate = int(count) * int(size) / median(rounds)
        if int(size) >= 1 << 20:
            peaks[direction] = rate
        row = predicted.get((FLOWS[direction], int(size)))
        one = row is not None and manner == ["1", "1", "0", "0", "1"]
        text = f"{row.value / 1e9:.1f} ({row.low / 1e9:.1f} to {row.high / 1e9:.1f})" if row and one else ""  # type: ignore[operator]
        print(f"| {direction} | {int(size) >> 10} | {' | '.join(manner)} | {posted * 1e3:.2f} | {rate / 1e9:.2f} | "
              f"{rate / peaks[direction]:.3f} | {text} |")  # fmt: skip
    print("\n| readers | KiB a read | buffers | GB/s | reads alone | copies alone | of the slower stage |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for each in json.loads((out / "loads.json").read_text(encoding="utf-8")):
        values = each["values"]
        rates = " | ".join(f"{values[name] / 1e9:.1f}" for name in ("total", "reads_alone", "copies_alone"))
        print(
            f"| {each['readers']} | {each['io'] >> 10} | {each['depth']} | {rates} | {values['of_slower_stage']:.3f} |"
        )


def main() -> None:
    """Runs one of the three."""
    verb, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    if verb == "predict":
        predict(out)
    elif verb == "measure":
        measure(out, Path(sys.argv[3] if len(sys.argv) > 3 else "."))
    else:
        compare(out)


if __name__ == "__main__":
    main()
