"""How long the five studies take, how fast the command starts, and how close the predictions lie.

    python benchmarks/studies.py [-o benchmarks/runs/DATE-studies.json]

Whole processes, as a user starts them; medians of five runs. Writes raw data and a page beside it.
"""

from __future__ import annotations

import json
import math
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import kept

FIVE = ["composable-server", "gpu-server-routes", "expansion-chassis", "network-division", "storage-fabric"]
LANEWISE = str(Path(sys.executable).with_name("lanewise"))


def timed(command: list[str], runs: int) -> dict[str, object]:
    """Wall seconds of `runs` runs of a command after one warm-up, all kept."""
    walls = []
    for run in range(runs + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if run:
            walls.append(time.perf_counter() - start)
    return {"command": " ".join(["lanewise", *command[1:]]), "wall_s": walls, "median_s": statistics.median(walls)}


def accuracy(run_file: Path) -> list[dict[str, object]]:
    """Residuals of each table of each study in the saved run: rows compared, rms and worst in percent."""
    made = []
    for study in json.loads(run_file.read_text())["studies"]:
        tables: dict[str, list[float]] = {}
        for row in study["rows"]:
            if row["residual_pct"] is not None:
                tables.setdefault(row["table"], []).append(row["residual_pct"])
        for name, values in tables.items():
            rms = math.sqrt(sum(v * v for v in values) / len(values))
            worst = max(values, key=abs)
            made.append(
                {"study": study["name"], "table": name, "rows": len(values), "rms_pct": rms, "worst_pct": worst}
            )
        told = ("rows", "rms_pct", "worst_pct")
        made += [
            {"study": study["name"], "table": f"left out: {group['group']}", **{k: group[k] for k in told}}
            for group in study["left_out"]
        ]
    return made


def page(found: kept.Record) -> str:
    """The same in words, for people."""
    lines = [
        *kept.heading("Studies", found),
        "| command | median s |",
        "|---|---|",
    ]
    lines += [f"| `{t['command']}` | {t['median_s']:.2f} |" for t in found["times"]]
    lines += [
        "",
        f"Peak memory of the largest process: {found['peak_mb']:.0f} MB.",
        "",
        "| study | table | rows | rms % | worst % |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {a['study']} | {a['table']} | {a['rows']} | {a['rms_pct']:.2f} | {a['worst_pct']:+.2f} |"
        for a in found["accuracy"]
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Times everything and keeps it."""
    parser = kept.options(__doc__, "studies")
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    saved = asked.out.with_suffix(".tmp-run.json")
    commands = [
        ["--version"],
        ["--help"],
        ["predict", "composable-server-gen4", "--set", "path=4", "--flows", "host0->gpu[0-3]"],
        *[["study", "run", name] for name in FIVE],
        ["study", "run", "all", "--json", str(saved), "-o", str(saved) + ".html"],
    ]
    found = kept.begin(asked)
    times = [timed([LANEWISE, *command], asked.runs) for command in commands]
    for each in times:
        each["command"] = str(each["command"]).replace(str(saved.parent) + "/", "")
    found |= {
        "times": times, "accuracy": accuracy(saved), "report_bytes": Path(str(saved) + ".html").stat().st_size,
        "peak_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
    }  # fmt: skip
    saved.unlink()
    Path(str(saved) + ".html").unlink()
    kept.keep(found, page, asked.out)


if __name__ == "__main__":
    main()
