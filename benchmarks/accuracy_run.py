"""Keeps the score of the performance model on the measured machines as it is now, and compares it with the last ones.

    python benchmarks/accuracy_run.py NAME --change 'what changed since the run before' [--time HH:MM] [--machines FILE]

Writes benchmarks/runs/2026-11-23-accuracy/NAME.json: command, machine, scores, and every row as predicted. The table of
docs/accuracy.md about what each mechanism changed is made of these files, in the order of their times. With --machines
only the machines whose names FILE has, one a line, are scored, and NAME.json goes beside FILE.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lanewise
from lanewise.report.accuracy_json import accuracy

RUNS = Path(__file__).with_name("runs") / "2026-11-23-accuracy"
ROW = ("machine", "path", "flows", "kind", "metric", "measured", "predicted", "low", "high", "basis")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--change", required=True)
    parser.add_argument("--time", help="when the state was that of main, if not now (UTC)")
    parser.add_argument("--machines", type=Path, metavar="FILE", help="score only these, and keep the run beside FILE")
    options = parser.parse_args()
    names = options.machines.read_text(encoding="utf-8").split() if options.machines else ()
    runs = options.machines.parent if options.machines else RUNS
    score = accuracy(lanewise.accuracy(names))
    now = datetime.now(UTC)
    run: dict[str, Any] = {
        "name": options.name,
        "time": f"{now:%Y-%m-%d} {options.time or f'{now:%H:%M}'}",
        "change": options.change,
        "command": shlex.join(["python", "benchmarks/accuracy_run.py", *sys.argv[1:]]),
        "machine": f"{platform.platform()}, Python {platform.python_version()}",
        **{key: score[key] for key in ("machines", "total", "by_flow_set", "by_path", "by_basis", "by_machine")},
        "columns": ROW,
    }
    rows = [json.dumps([row[column] for column in ROW], ensure_ascii=False) for row in score["rows"]]
    head = json.dumps(run, indent=1, ensure_ascii=False).removesuffix("\n}")
    runs.mkdir(exist_ok=True)
    text = ",\n  ".join(rows)
    (runs / f"{options.name}.json").write_text(f'{head},\n "rows": [\n  {text}\n ]\n}}\n', encoding="utf-8")
    for path in sorted(runs.glob("*.json"), key=lambda path: json.loads(path.read_text(encoding="utf-8"))["time"]):
        print(summary(json.loads(path.read_text(encoding="utf-8"))))


def summary(run: dict[str, Any]) -> str:
    """One line of a kept run."""
    shares = ("median", "p90", "within_10", "covered")
    groups = {"one flow": run["by_flow_set"]["one flow"], "sets": run["by_flow_set"]["all sets of flows"]}
    figures = "; ".join(
        f"{name}: " + ", ".join(f"{key} {100 * group[key]:.0f} %" for key in shares) for name, group in groups.items()
    )
    return f"{run['time']} {run['name']}: {run['total']['rows']} rates; {figures}"


if __name__ == "__main__":
    main()
