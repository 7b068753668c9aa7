"""Pieces of a KV cache between host memory and one H200: predicted, measured, compared.

    python benchmarks/h200/blocks.py predict FOLDER   # FOLDER/predicted.json, before anything is measured
    python benchmarks/h200/blocks.py measure FOLDER   # FOLDER/measured.txt, on the machine: needs g++ and CUDA alone
    python benchmarks/h200/blocks.py compare FOLDER   # both, side by side

Pieces of 4 KiB to 4 MiB, together 1 GiB but at most 65,536 of them; both directions; one call a piece and one for all.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SYSTEM = "h200-pair"
SOFTWARE = ("cuMemcpyAsync", "cuMemcpyBatchAsync")
FLOWS = {"d2h": "gpu0->host0", "h2d": "host0->gpu0"}
TOTAL, MOST = 1 << 30, 65_536


def cases() -> Iterator[tuple[str, str, int, int]]:
    """Software, direction, pieces and bytes of each."""
    for software in SOFTWARE:
        for direction in FLOWS:
            for size in (4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20):
                yield software, direction, min(TOTAL // size, MOST), size


def predict(folder: Path) -> None:
    """Writes what the model says of every case, in seconds."""
    import lanewise  # the machine that measures need not have it

    rows = []
    for software, direction, pieces, size in cases():
        text = f"{pieces} x {size // 1024} KiB"
        answer = lanewise.predict_blocks(SYSTEM, FLOWS[direction], text, software).transfers[0]
        rows.append({
            "software": software, "direction": direction, "pieces": pieces, "size": size,
            "time": answer.time, "low": answer.low, "high": answer.high, "limit": str(answer.limit),
        })  # fmt: skip
    (folder / "predicted.json").write_text(json.dumps(rows, indent=1) + "\n")


def measure(folder: Path) -> None:
    """Builds blocks.cpp and runs every case in turn."""
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "blocks"
        source = Path(__file__).with_suffix(".cpp")
        cuda = Path("/usr/local/cuda")
        options = ["-O2", "-std=c++17", f"-I{cuda}/include", f"-L{cuda}/lib64/stubs"]
        subprocess.run(["g++", *options, str(source), "-lcuda", "-o", str(program)], check=True)
        with (folder / "measured.txt").open("w") as lines:
            for case in cases():
                subprocess.run([program, *map(str, case)], check=True, stdout=lines)


def compare(folder: Path) -> None:
    """Prints the table, and how many cases lie within 10 %."""
    predicted = {
        (row["software"], row["direction"], row["pieces"], row["size"]): row
        for row in json.loads((folder / "predicted.json").read_text())
    }
    errors: dict[str, list[float]] = {}
    print("| software | direction | pieces | KiB each | predicted ms | interval ms | measured ms ", end="")
    print("| GB/s | error | in interval | limit |")
    print("|---|---|---:|---:|---:|---|---:|---:|---:|---|---|")
    for line in (folder / "measured.txt").read_text().splitlines():
        software, direction, pieces, size, *rounds = line.split()
        row = predicted[software, direction, int(pieces), int(size)]
        took = median(map(float, rounds))
        error = row["time"] / took - 1
        errors.setdefault(software, []).append(error)
        inside = "yes" if row["low"] <= took <= row["high"] else "no"
        print(
            f"| {software} | {direction} | {pieces} | {int(size) >> 10} | {row['time'] * 1e3:.2f} | "
            f"{row['low'] * 1e3:.2f} to {row['high'] * 1e3:.2f} | {took * 1e3:.2f} | "
            f"{int(pieces) * int(size) / took / 1e9:.1f} | {error:+.0%} | {inside} | {row['limit']} |"
        )
    for software, each in errors.items():
        close = sum(abs(error) <= 0.10 for error in each)
        print(f"\n{software}: median error {median(map(abs, each)):.1%}, {close} of {len(each)} within 10 %")


def main() -> None:
    """Runs one of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("predict", "measure", "compare"))
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    {"predict": predict, "measure": measure, "compare": compare}[options.what](options.folder)


if __name__ == "__main__":
    main()
