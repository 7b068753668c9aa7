"""Measured machines described by others from documents and guide alone: their predictions, and those of ours.

    .venv/bin/python benchmarks/predict_described_again.py [FOLDER]

A row of theirs is compared with the row of the same machine of ours that has the same measured value; of several with
one of as many flows. Run by the Python of another checkout it predicts by that one's program.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from lanewise.api.scores import load_machines
from lanewise.catalog import builtin
from lanewise.evidence.model import EvidenceMachine
from lanewise.evidence.prediction import PredictedRow, predict_machine
from lanewise.evidence.reading import ready_machines

FILES = Path(__file__).parent / "runs" / "2026-11-28-described-again"
APART = 0.05  # predictions that differ by more are listed
SETTINGS = ("-gen2", "-acs")  # of one machine, in files of their own


def main() -> None:
    """Print the rows that theirs and ours predict otherwise, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FILES)
    ours: dict[str, list[PredictedRow]] = {}
    for machine in ready_machines():
        ours.setdefault(base(machine.name), []).extend(rates(machine) if described(machine.name) else [])
    pairs, unmatched = [], 0
    for machine in load_machines(parser.parse_args().folder):
        for row in rates(machine):
            match = nearest(row, ours.get(base(machine.name), []))
            pairs += [(row, match)] if match is not None else []
            unmatched += match is None
    for theirs, own in pairs:
        if abs(value(theirs) / value(own) - 1) > APART or theirs.covered != own.covered:
            print(f"{theirs.machine:22}{theirs.row.text[:40]:42}{theirs.row.value / 1e9:7.4g} GB/s, "
                  f"theirs {shown(theirs)}, ours {shown(own)}")  # fmt: skip
    for whose, rows in (("theirs", [pair[0] for pair in pairs]), ("ours", [pair[1] for pair in pairs])):
        within = sum(abs(row.error or 0.0) <= 0.1 for row in rows)
        held = sum(bool(row.covered) for row in rows)
        print(f"{whose}: {len(rows)} rows, {within} within 10 %, {held} in the interval")
    print(f"without a row of ours: {unmatched}")


def base(name: str) -> str:
    """A machine's name without that of its setting."""
    return next((name.removesuffix(end) for end in SETTINGS if name.endswith(end)), name)


def described(name: str) -> bool:
    """Whether others described a machine."""
    return (FILES / f"{base(name)}.yaml").exists()


def rates(machine: EvidenceMachine) -> list[PredictedRow]:
    """The rates of a machine that are predicted; nothing that it taught counts."""
    rows = predict_machine(machine, machine.left_out_of(builtin()))
    return [row for row in rows if row.row.traffic is None and not row.row.latency and row.error is not None]


def nearest(row: PredictedRow, others: Sequence[PredictedRow]) -> PredictedRow | None:
    """The row of the same measured value, of those the one that counts as many flows and is predicted most alike."""
    same = [other for other in others if abs(other.row.value / row.row.value - 1) < 1e-6]
    return min(
        same, key=lambda other: (other.flow_set != row.flow_set, abs(value(other) - value(row))), default=None
    )  # fmt: skip


def value(row: PredictedRow) -> float:
    """The predicted rate in B/s."""
    return row.observation.value or 0.0


def shown(row: PredictedRow) -> str:
    """A predicted rate in GB/s, and whether its interval holds the measured one."""
    return f"{value(row) / 1e9:.4g}{'' if row.covered else ' (outside)'}"


if __name__ == "__main__":
    main()
