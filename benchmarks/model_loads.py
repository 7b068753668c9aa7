"""Published times of model loads (benchmarks/model_loads.yaml) against `predict --load`; learned rows told apart."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import kept
import yaml

import lanewise
from lanewise import units
from lanewise.topology.read import read_system

MAPPED = "safetensors"  # the loader of one thread over mapped pages; all others read in parallel


def system(name: str, machine: kept.Record) -> Any:
    """GPUs with links of their own to one socket: what the sources say, and no limit but the GPUs' own."""
    text = f"""
lanewise: 1
system: "{name.split()[0].lower().replace(".", "-")}"
devices:
  cpu0: {{cpu: null}}
  "gpu[0-{machine["gpus"] - 1}]": {{gpu: {machine["gpu"]}}}
links:
  - {{from: cpu0, to: "gpu[0-{machine["gpus"] - 1}]", pcie: auto}}
"""
    return read_system(text, name)


def predicted(name: str, machine: kept.Record, row: kept.Record) -> kept.Record:
    """The row with its prediction, or with the reason why there is none."""
    row = {"machine": name, **row}
    if "skip" in row:
        return row
    latency = units.parse(machine["latency"], "s") if "latency" in machine else None
    gpus = f"gpu[0-{row.get('tp', 1) - 1}]"
    load = lanewise.predict_load(
        system(name, machine), row["size"], str(row.get("storage", machine["storage"])), gpus, [row["loader"]],
        warm=row.get("warm", False), readers=row.get("readers"), read_latency=latency,
    ).loads[0]  # fmt: skip
    error = 100 * (load.time / row["seconds"] - 1)
    return row | {
        "predicted": load.time, "low": load.low, "high": load.high, "limit": load.limit, "error_pct": error,
        "inside": load.low <= row["seconds"] <= load.high,
    }  # fmt: skip


def summary(rows: list[kept.Record]) -> list[str]:
    """Median and worst error of held-out and of learned rows, by kind of loader."""
    lines = [
        "| rows | number | median error | within the target | largest | in the interval |",
        "|---|---|---|---|---|---|",
    ]
    for title, mapped, target in (("parallel loaders, 20 %", False, 20), ("mmap, 35 %", True, 35)):
        for kind, learned in (("held out", False), ("learned from", True)):
            chosen = [
                row for row in rows
                if "predicted" in row and (row["loader"] == MAPPED) == mapped and bool(row.get("learned")) == learned
            ]  # fmt: skip
            if not chosen:
                continue
            errors = [abs(row["error_pct"]) for row in chosen]
            within = sum(error <= target for error in errors)
            inside = sum(row["inside"] for row in chosen)
            line = f"| {title}, {kind} | {len(chosen)} | {statistics.median(errors):.1f} % | {within} "
            lines.append(line + f"| {max(errors):.0f} % | {inside} |")
    return lines


def page(record: kept.Record) -> str:
    """The table of all rows, and what they say together."""
    lines = kept.heading("Published model loads against predictions", record)
    lines += [
        "A row is learned where a figure of a loader, or the rate or latency of its machine's storage, comes from it "
        "(benchmarks/model_loads.yaml); the others are held out. The equations were written with all rows in view, and "
        "so was the latency of a drive chosen (80 us of a typical 75 to 100). Rows of one machine whose limit is the "
        "storage test one figure several times.", "", *summary(record["rows"]), "",
        "| machine | size | loader | GPUs | measured | predicted | error | interval | limit | row |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in record["rows"]:
        head = f"| {row['machine']} | {row['size']} | {row['loader']}"
        head += f" x{row['readers']}" if "readers" in row else ""
        head += f"{', warm' if row.get('warm') else ''} | {row.get('tp', 1)} | {row['seconds']:g} s"
        if "skip" in row:
            lines.append(f"{head} | | | | | not predicted: {row['skip']} |")
            continue
        kind = "learned" if row.get("learned") else "held out"
        kind += f"; {row['note']}" if "note" in row else ""
        lines.append(
            f"{head} | {row['predicted']:.2f} s | {row['error_pct']:+.0f} % | {row['low']:.2f} to {row['high']:.2f} s "
            f"| {row['limit']} | {kind} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    asked = kept.options(__doc__, "load-rows").parse_args()
    record = kept.begin(asked)
    machines = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))["machines"]
    record["rows"] = [predicted(name, machine, row) for name, machine in machines.items() for row in machine["rows"]]
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
