"""What every benchmark keeps beside its figures: the machine, how busy it was, the command; the raw data and a page.

Import it first: a run lasts from there to `keep`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
Record = dict[str, Any]


def _ticks() -> list[int]:
    """CPU time of this machine by what it was spent on, the last of it stolen; nothing where it does not say."""
    try:
        return [int(each) for each in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except OSError:
        return []


_TICKS, _BEGAN = _ticks(), time.monotonic()


def steal() -> float | None:
    """The share of all CPU time of the run that the hypervisor gave to others; None where that is not told."""
    spent = [now - before for now, before in zip(_ticks(), _TICKS, strict=True)]
    return spent[-1] / sum(spent) if sum(spent) else None


def machine() -> Record:
    """What it runs on, without names or addresses, and how busy that was before."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", info.read_text() if info.exists() else "")
    return {
        "cpu": model[1] if model else platform.machine(), "cores": os.cpu_count(), "system": platform.platform(),
        "python": platform.python_version(), "load_before": os.getloadavg(),
    }  # fmt: skip


def first_line(*command: str) -> str:
    """What a program says first, such as its version."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).partition("\n")[0].strip()


def options(doc: str | None, name: str) -> argparse.ArgumentParser:
    """The options of every benchmark: where to keep the run, and what the page should say of it."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    path = ROOT / "benchmarks" / "runs" / f"{datetime.date.today().isoformat()}-{name}.json"
    parser.add_argument("-o", "--out", type=Path, default=path, help="raw data (.json); the page (.md) lies beside it")
    parser.add_argument("--note", default="", help="what else ran on the machine")
    return parser


def begin(asked: argparse.Namespace) -> Record:
    """The record of a run that starts now."""
    script = Path(sys.argv[0]).resolve().relative_to(ROOT)
    command = shlex.join(["python", str(script), *sys.argv[1:]])
    today = datetime.date.today().isoformat()
    return {"date": today, "command": command, "machine": machine(), "note": asked.note}


def heading(title: str, record: Record) -> list[str]:
    """How every page begins."""
    about = record["machine"]
    load = ", ".join(f"{each:.1f}" for each in about["load_before"])
    stolen = "" if about.get("steal") is None else f", {100 * about['steal']:.1f} % of its CPU time stolen meanwhile"
    where = f"{about['cpu']}, {about['cores']} cores, {about['system']}, Python {about['python']}"
    lines = [f"# {title}, {record['date']}", "", f"Command: `{record['command']}`, {record['seconds']:.0f} s."]
    return [*lines, f"Machine: {where}; load before {load}{stolen}. {record['note']}".rstrip(), ""]


def keep(record: Record, page: Callable[[Record], str] | None, path: Path) -> None:
    """Write the record and its page; without a page while the run still goes on, so that a crash loses nothing."""
    record["machine"]["steal"], record["seconds"] = steal(), time.monotonic() - _BEGAN
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if page is not None:
        path.with_suffix(".md").write_text(page(record), encoding="utf-8")
        print(page(record))
