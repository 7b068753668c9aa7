"""How long the five studies take, how fast the command starts, and how close the predictions lie.

    python benchmarks/studies.py [-o benchmarks/runs/DATE-studies.json]

Whole processes, as a user starts them; medians of five runs. Writes raw data and a page beside it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

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
        kept = ("rows", "rms_pct", "worst_pct")
        made += [
            {"study": study["name"], "table": f"left out: {group['group']}", **{k: group[k] for k in kept}}
            for group in study["left_out"]
        ]
    return made


def machine() -> dict[str, object]:
    """The machine without names or addresses."""
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        "?",
    )
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "load_before": os.getloadavg(),
    }


def page(found: dict[str, object]) -> str:
    """The same in words, for people."""
    lines = [
        f"# Studies, {found['date']}",
        "",
        f"Command: `{found['command']}`. Machine: {found['machine']}.",
        "",
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
    date = datetime.date.today().isoformat()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent / "runs" / f"{date}-studies.json")
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    saved = asked.output.with_suffix(".tmp-run.json")
    commands = [
        ["--version"],
        ["--help"],
        ["predict", "composable-server-gen4", "--set", "path=4", "--flows", "host0->gpu[0-3]"],
        *[["study", "run", name] for name in FIVE],
        ["study", "run", "all", "--json", str(saved), "-o", str(saved) + ".html"],
    ]
    known = machine()
    times = [timed([LANEWISE, *command], asked.runs) for command in commands]
    for each in times:
        each["command"] = str(each["command"]).replace(str(saved.parent) + "/", "")
    found = {
        "date": date, "command": "python benchmarks/studies.py", "machine": known, "times": times,
        "accuracy": accuracy(saved), "report_bytes": Path(str(saved) + ".html").stat().st_size,
        "peak_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
    }  # fmt: skip
    saved.unlink()
    Path(str(saved) + ".html").unlink()
    asked.output.write_text(json.dumps(found, indent=1) + "\n")
    asked.output.with_suffix(".md").write_text(page(found))
    print(page(found))


if __name__ == "__main__":
    main()
