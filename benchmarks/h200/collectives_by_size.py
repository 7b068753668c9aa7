"""Collectives of rented machines by size, predicted by the tree as it is and measured.

    python benchmarks/h200/collectives_by_size.py

Each machine is predicted without what it taught. Bus bandwidths in GB/s; ! is a measured value out of the range.
"""

from __future__ import annotations

import json
import statistics
import tarfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from lanewise.api import load_system
from lanewise.collectives.curve import predict_collective
from lanewise.collectives.model import Collective, CollectivePoint, CollectiveSettings, Launch
from lanewise.evidence.reading import ready_machine

RUNS = Path(__file__).parents[1] / "runs"
# The record, the machine of the evidence, and the ranks that were measured.
RECORDS = (
    ("2026-11-28-four-gpus/h100", "h100-vm-4gpus", (2, 4)),
    ("2026-11-28-fourteenth-pair/h200", "h200-vm-2gpus-fourteenth", (2,)),
    ("2026-11-28-four-gpus-again/h200", "h200-vm-4gpus-fifth", (2, 4)),
)
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "sendrecv")
MIB = 2**20
CLASSES = (("256 MiB to 1 GiB", 256), ("8 to 128 MiB", 8), ("1 to 4 MiB", 1))


@dataclass(frozen=True, slots=True)
class SizeRow:
    """A predicted size and what was measured (B/s)."""

    predicted: CollectivePoint
    measured: float

    @property
    def error(self) -> float:
        return self.predicted.bus_bandwidth / self.measured - 1

    @property
    def in_range(self) -> bool:
        return self.predicted.low <= self.measured <= self.predicted.high

    def text(self) -> str:
        size, predicted = f"{self.predicted.size / MIB:g}M", f"{self.predicted.bus_bandwidth / 1e9:.3g}"
        return f"{size} {predicted}/{self.measured / 1e9:.3g} {self.error:+.0%}{'' if self.in_range else '!'}"


def measured_of(record: str, ranks: int, p2p: bool) -> dict[tuple[str, int], float]:
    """Bus bandwidths out of place by operation and bytes."""
    name = f"runs/ranks-{ranks}{'' if p2p else '-no-p2p'}.run.json"
    with tarfile.open(RUNS / record / "runs.tar.gz") as archive:
        file = archive.extractfile(name)
        rows = json.load(file)["rows"] if file is not None else []
    return {
        (row["scenario"], row["settings"]["bytes"]): row["value"]
        for row in rows
        if row["metric"] == "bus_bandwidth" and row["value"] is not None and row["scenario"] in OPERATIONS
    }


def main() -> None:
    rows: dict[tuple[str, str, str], list[SizeRow]] = defaultdict(list)
    for record, machine, groups in RECORDS:
        system = load_system(str(RUNS / record / "system.yaml"))
        use = "held out" if ready_machine(machine).held_out else "teaches"
        for ranks in groups:
            for p2p in (True, False):
                measured = measured_of(record, ranks, p2p)
                settings = CollectiveSettings(
                    version="2.28.9",
                    launch=Launch.ONE_PROCESS,
                    p2p=None if p2p else False,
                    without=frozenset({machine}),
                )
                for operation in OPERATIONS:
                    sizes = sorted(size for name, size in measured if name == operation)
                    if not sizes:
                        continue
                    curve = predict_collective(system, Collective(operation), f"gpu[0-{ranks - 1}]", sizes, settings)
                    found = [SizeRow(point, measured[operation, int(point.size)]) for point in curve.points]
                    transport = "NVLink" if p2p else "shared memory"
                    print(
                        f"{machine}, {ranks} ranks, {transport}, {operation}:", *(row.text() for row in found), sep="  "
                    )
                    for row in found:
                        name = next(name for name, least in CLASSES if row.predicted.size >= least * MIB)
                        rows[use, f"{transport}, {operation} of {ranks}", name].append(row)
                        rows[use, f"{transport}, all", name].append(row)
    print(
        "\n| use | what | sizes | median error | median deviation | within 10 % | in range |\n"
        "|---|---|---|---:|---:|---:|---:|"
    )
    for (use, what, name), found in sorted(rows.items()):
        errors = [row.error for row in found]
        within, inside = sum(abs(error) <= 0.1 for error in errors), sum(row.in_range for row in found)
        middle, deviation = statistics.median(errors), statistics.median(map(abs, errors))
        print(f"| {use} | {what} | {name} | {middle:+.1%} | {deviation:.1%} | {within} of {len(found)} | {inside} |")


if __name__ == "__main__":
    main()
