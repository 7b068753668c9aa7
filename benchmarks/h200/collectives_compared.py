"""Collectives that were predicted against those measured: how many are within 10 % and in range, by size.

    python benchmarks/h200/collectives_compared.py FOLDER RUN.json

FOLDER holds `lanewise predict SYSTEM --collective NAME --launch 'nccl-tests -g' --sizes 8B:1GiB` as
NAME-predicted.run.json; RUN.json is written by `lanewise measure collectives`.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

MIB = 2**20
CLASSES = (("256 MiB and more", 256 * MIB, 2**63), ("1 to 128 MiB", MIB, 256 * MIB), ("below 1 MiB", 0, MIB))
WITHIN = 0.10


def bus_bandwidths(run: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The rows of bus bandwidth by operation and bytes."""
    rows = [row for row in json.loads(run.read_text())["rows"] if row["metric"] == "bus_bandwidth"]
    return {(row["scenario"], row["settings"]["bytes"]): row for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("run", type=Path)
    options = parser.parse_args()
    predicted: dict[tuple[str, int], dict[str, Any]] = {}
    for file in sorted(options.folder.glob("*-predicted.run.json")):
        predicted |= bus_bandwidths(file)
    measured = bus_bandwidths(options.run)
    print("| sizes | rows | within 10 % | in range | median of predicted / measured |\n|---|---:|---:|---:|---:|")
    for name, least, below in CLASSES:
        keys = [key for key in measured if key in predicted and least <= key[1] < below]
        ratios = [predicted[key]["value"] / measured[key]["value"] for key in keys]
        within = sum(abs(ratio - 1) <= WITHIN for ratio in ratios)
        inside = sum(predicted[key]["low"] <= measured[key]["value"] <= predicted[key]["high"] for key in keys)
        print(f"| {name} | {len(keys)} | {within} | {inside} | {statistics.median(ratios):.2f} |")


if __name__ == "__main__":
    main()
