"""p99 of published services before and after the simulation of their harness, and what its constants rest on.

    python benchmarks/service_p99.py

Writes benchmarks/runs/2026-11-27-service-p99.json and .md: every service of src/lanewise/data/services, simulated as
the Server score tells (before) and as its harness works (after); what share of published p99s intervals of several
widths hold; how far p99s are from what is simulated below and above STALLING queries/s; Offline rates of one GPU in
several submissions; the fixed time of a batch on the GPUs of the catalogue.
"""

from __future__ import annotations

import json
import platform
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lanewise.catalog import Catalog, builtin
from lanewise.evidence.score import quantile
from lanewise.evidence.services import (
    FIXED_LEAST,
    FIXED_MOST,
    PublishedService,
    published_services,
    served_p99,
)
from lanewise.serving.host_stalls import STALLING
from lanewise.serving.times import FIXED_TIME
from lanewise.serving.workload import workload

RUN = Path(__file__).with_name("runs") / "2026-11-27-service-p99"
PAIRS = Path(__file__).with_name("runs") / "2026-11-23-server-over-offline.json"
WIDTHS = (0.03, 0.05, 0.07)
GPU = re.compile(r"(A100-(?:PCIe|SXM4?)-(?:80|40)GB|A30|A10|A2|T4|H100-PCIe|H100-SXM|L4|L40)[-_a-z0-9]*?x(\d+)", re.I)


def row_of(service: PublishedService, catalog: Catalog) -> dict[str, Any]:
    """A service with its p99s in s: published, before, after, and after on slower and faster GPUs."""
    least, most = (None, None) if service.timeout else (FIXED_LEAST, FIXED_MOST)
    widths = {
        f"{width:g}": [
            served_p99(service, catalog, 1 + width, least, stalling=False),
            served_p99(service, catalog, 1 - width, most),
        ]
        for width in WIDTHS
    }
    return {
        "round": service.round, "system": service.system, "workload": service.workload, "qps": service.server.qps,
        "server_over_offline": service.server.qps / service.offline, "published": service.server.p99,
        "before": served_p99(replace(service, harness=None), catalog), "after": served_p99(service, catalog),
        "held_out": service.held_out,
        "bound": workload(service.workload).bound, "timeout": service.timeout, "widths": widths,
    }  # fmt: skip


def holds(row: dict[str, Any], width: float) -> bool:
    """Whether the interval of that width holds the published p99 (see evidence/services.py)."""
    ends = (*row["widths"][f"{width:g}"], row["after"])
    high = row["bound"] if row["qps"] >= STALLING else max(ends)
    return bool(min(*ends, row["bound"]) <= row["published"] <= min(high, row["bound"]))


def errors(rows: Iterable[dict[str, Any]], key: str) -> list[float]:
    return [abs(row[key] / row["published"] - 1.0) for row in rows]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [" | ".join(head), " | ".join(["---"] * len(head)), *(" | ".join(map(str, row)) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def offline_spread() -> list[float]:
    """Offline rates over the median of their GPU, workload and round, of those of three submitters or more."""
    groups = defaultdict(list)
    for series, submitter, system, name, offline, _ in json.loads(PAIRS.read_text())["pairs"]:
        if (match := GPU.search(system)) and not re.search("MaxQ|MIG|Triton", system, re.I):
            gpu = match[1].upper().replace("SXM4", "SXM")
            groups[series, gpu, name].append((offline / int(match[2]), submitter))
    kept = [group for group in groups.values() if len({submitter for _, submitter in group}) >= 3]
    return sorted(rate / statistics.median(rate for rate, _ in group) for group in kept for rate, _ in group)


def fixed_times(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Seconds of a lone query beyond those of a query in Offline, by workload and GPU."""
    times: dict[str, dict[str, float]] = defaultdict(dict)
    for name in FIXED_TIME:
        for part in (each for each in catalog.parts.values() if each.kind == "gpu"):
            lone = part.figure(f"service_time.{name}.1").value
            rate = part.figure(f"service.{name}.offline").value or part.figure(f"service.{name}.server").value
            if isinstance(lone, float) and isinstance(rate, float):
                times[name][part.name] = lone - 1.0 / rate
    return times


def text_of(rows: list[dict[str, Any]], spread: list[float], fixed: dict[str, dict[str, float]]) -> str:
    whose = {False: "NVIDIA", True: "others"}
    keys = [(row["round"], whose[row["held_out"]], row["workload"]) for row in rows]
    groups = {" ".join(key): [row for row, own in zip(rows, keys, strict=True) if own == key]
              for key in dict.fromkeys(keys)}  # fmt: skip
    timed = [row for row in rows if row["timeout"]]
    for series in ("v2.0", "v2.1", "v3.0"):
        for held_out, name in whose.items():
            groups[f"{series} {name}, with a time-out"] = [
                row for row in timed if (row["round"], row["held_out"]) == (series, held_out)
            ]
    groups |= {"with a time-out": timed, "without": [row for row in rows if not row["timeout"]]}
    groups[f"with a time-out, below {STALLING:,.0f} QPS"] = [row for row in timed if row["qps"] < STALLING]
    groups[f"with a time-out, from {STALLING:,.0f} QPS"] = [row for row in timed if row["qps"] >= STALLING]
    groups["all"] = rows
    scores = []
    for name, group in groups.items():
        line: list[object] = [name, len(group)]
        for key in ("before", "after"):
            found = errors(group, key)
            line += [f"{quantile(found, 0.5):.0%}", sum(error <= 0.25 for error in found)]
        scores.append([*line, f"{statistics.median(row['published'] / row['after'] for row in group):.2f}"])
    held = [[f"{width:.0%}", *(f"{statistics.mean(holds(row, width) for row in group):.0%}" for group in
             (rows, [row for row in rows if row["round"] == "v3.0"], [row for row in rows if row["round"] != "v3.0"]))]
            for width in WIDTHS]  # fmt: skip
    within = statistics.mean(abs(rate - 1.0) <= 0.05 for rate in spread)
    ends = [spread[int(share * len(spread))] for share in (0.1, 0.25, 0.75, 0.9)]
    lists = [f"{name}: " + ", ".join(f"{gpu} {1e3 * time:.2f}" for gpu, time in each.items())
             for name, each in fixed.items()]  # fmt: skip
    return "\n\n".join([
        "# p99 of published services, 2026-11-27",
        f"Command: `python benchmarks/service_p99.py`. Machine: {platform.platform()}, Python "
        f"{platform.python_version()}. Stalls of hosts are learned from ResNet-50 of others in v2.0; nothing else is "
        "fitted to a p99 of these machines.",
        table(("services", "rows", "median error before", "within 25 %", "after", "within 25 %",
               "published over simulated"), scores),
        "Published p99s that the interval of GPUs slower and faster by so much holds:",
        table(("width", "all", "v3.0", "v2.0 and v2.1"), held),
        f"Of {len(spread)} Offline rates, each over the median of its GPU, workload and round, {within:.0%} are within "
        f"5 %; 10, 25, 75 and 90 % are below {', '.join(f'{end:.2f}' for end in ends)}.",
        "Fixed time of a batch in ms, T(1) - 1 / Offline:",
        *lists,
    ]) + "\n"  # fmt: skip


def main() -> None:
    catalog = builtin()
    rows = [row_of(service, catalog) for service in published_services()]
    spread, fixed = offline_spread(), fixed_times(catalog)
    machine = {"system": platform.platform(), "python": platform.python_version()}
    document = {"command": "python benchmarks/service_p99.py", "machine": machine, "services": rows,
                "offline_over_median": spread, "fixed_times": fixed}  # fmt: skip
    RUN.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    RUN.with_suffix(".md").write_text(text_of(rows, spread, fixed))


if __name__ == "__main__":
    main()
