"""Measured machines described in other words, or with less said of them: how many predicted rows that moves.

    PYTHONPATH=tests .venv/bin/python benchmarks/predict_other_words.py [REWRITING ...] [--rows]

Run by the Python of another checkout it predicts by that one's program. `--rows` prints the rows that moved.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from evidence.description_rewritings import COMPARISONS, Comparison, as_yaml, machine_text, predicted

from lanewise import package_data
from lanewise.errors import LanewiseError
from lanewise.evidence.prediction import PredictedRow


@dataclass(slots=True)
class Count:
    """What a rewriting does to machines: names of those it changes, moves and has refused, and the rows that moved."""

    changed: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)


def add(count: Count, comparison: Comparison, name: str) -> None:
    """Count one machine."""
    text = machine_text(name)
    try:
        before, after = comparison.before(text), comparison.after(text)
        if as_yaml(before) == as_yaml(after):
            return
        pairs = list(zip(predicted(before), predicted(after), strict=True))
    except LanewiseError as error:
        count.changed.append(name)
        count.refused.append(f"{name}: {error.cause}")
        return
    rows = [f"{name}: {old.row.path} ({old.row.text}): {shown(old)} -> {shown(new)}"
            for old, new in pairs if comparison.moved(old, new)]  # fmt: skip
    count.changed.append(name)
    count.moved += [name] if rows else []
    count.rows += rows


def shown(row: PredictedRow) -> str:
    """Value and interval of a row in GB/s or us."""
    seen, scale = row.observation, 1e6 if row.row.latency else 1e-9
    ends = (seen.low, seen.value, seen.high)
    return " to ".join("unknown" if each is None else f"{each * scale:.4g}" for each in ends)


def counts_of(words: Sequence[str], name: str) -> dict[str, Count]:
    """The counts of one machine by rewriting."""
    counts = {what: Count() for what in COMPARISONS if not words or what in words}
    for what, count in counts.items():
        add(count, COMPARISONS[what], name)
    return counts


def main() -> None:
    """Print each rewriting with its counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rows", action="store_true")
    options = parser.parse_args()
    total: dict[str, Count] = {}
    with ProcessPoolExecutor(2) as pool:
        for counts in pool.map(partial(counts_of, options.words), package_data.names("evidence"), chunksize=8):
            for what, count in counts.items():
                whole = total.setdefault(what, Count())
                for key in ("changed", "moved", "refused", "rows"):
                    getattr(whole, key).extend(getattr(count, key))
    print("rewriting: machines that it changes, of these with rows that moved, rows that moved, machines refused")
    for what, count in total.items():
        print(f"{what}: {len(count.changed)}, {len(count.moved)}, {len(count.rows)}, {len(count.refused)}")
        for line in [*count.rows, *count.refused] if options.rows else ():
            print(f"    {line}")


if __name__ == "__main__":
    main()
