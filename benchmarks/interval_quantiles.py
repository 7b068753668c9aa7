"""Where measured values lie around predictions, by what the prediction is based on and by what limits it.

    python benchmarks/interval_quantiles.py [--fitted] [--json FILE]

Of the measured machines (data/evidence), each predicted without the figures that were measured on it: quantiles of
measured / predicted, and the share of rows whose interval holds the measured value. The ranges in perf/uncertainty.py
are to hold the 5 % and 95 % quantiles of single flows where the mechanism is right. A row counts 1 / (rows of its
machine in the group), so that no machine outweighs others.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lanewise
from lanewise.evidence.prediction import SINGLE, PredictedRow

SHARES = (0.05, 0.1, 0.5, 0.9, 0.95)
_NAMED = re.compile(r" of [\w.]+.*| through (root port|the root complex).*|\b[\w.]+->[\w.]+|\d+")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fitted", action="store_true", help="with the figures measured on the machine itself")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [row for row in lanewise.accuracy(fitted=options.fitted).rates if row.observation.value is not None]
    groups: dict[str, dict[str, list[PredictedRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        flows = "one flow" if row.flow_set == SINGLE else "sets of flows"
        groups["basis"][f"{row.observation.basis}, {flows}"].append(row)
        groups["limit"][f"{_limit(row)}, {flows}"].append(row)
        groups["kind of path"][row.observation.path].append(row)
        groups["all"][flows].append(row)
    record = {
        what: {name: _quantiles(group) for name, group in sorted(kinds.items())} for what, kinds in groups.items()
    }
    for what, kinds in record.items():
        print(
            f"\n{what:<58} rows machines "
            + " ".join(f"{share:>6.0%}" for share in SHARES)
            + "  interval holds it  mean width  beyond 10 %"
        )
        for name, figures in kinds.items():
            quantiles = " ".join(f"{value:6.2f}" for value in figures["quantiles"])
            print(
                f"{name:<58} {figures['rows']:4} {figures['machines']:8} {quantiles}  {figures['covered']:>17.0%}"
                f"  {figures['width']:>10.0%}  {figures['beyond_10']:11}"
            )
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _limit(row: PredictedRow) -> str:
    """What limits the slowest flow, without names of devices."""
    return _NAMED.sub("", row.observation.limit).strip()


def _quantiles(rows: Sequence[PredictedRow]) -> dict[str, Any]:
    counts = Counter(row.machine for row in rows)
    ratios = sorted((row.row.value / (row.observation.value or 1.0), 1 / counts[row.machine]) for row in rows)
    return {
        "rows": len(rows),
        "machines": len(counts),
        "quantiles": [_weighted(ratios, share) for share in SHARES],
        "covered": sum(bool(row.covered) for row in rows) / len(rows),
        "width": sum(_width(row) for row in rows) / len(rows),
        "beyond_10": sum(abs(row.error or 0.0) > 0.10 for row in rows),
    }


def _width(row: PredictedRow) -> float:
    """The width of the interval as a share of the predicted value."""
    low, value, high = row.observation.low, row.observation.value, row.observation.high
    return (high - low) / value if low is not None and high is not None and value else 0.0


def _weighted(ratios: Sequence[tuple[float, float]], share: float) -> float:
    """The smallest ratio below which at least that share of the weight lies."""
    total, below = sum(weight for _, weight in ratios), 0.0
    for ratio, weight in ratios:
        below += weight
        if below >= share * total - 1e-9:
            return ratio
    return ratios[-1][0]


if __name__ == "__main__":
    main()
