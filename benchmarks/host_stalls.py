"""What stalls of hosts add to the latencies of published services, learned from one round and tried on the others.

    python benchmarks/host_stalls.py

Reads benchmarks/runs/2026-11-26-service-percentiles.json. Tried are shares of stalled queries and mean stalls; best are
those with the least mean error |ln(with stalls / published)| of p97, p99 and p99.9 of the ResNet-50 services of
submitters other than NVIDIA in MLPerf v2.0. Two laws: stalls from STALLING queries/s on, or as many as there are
queries (the share is then that at 200,000 queries/s). Writes the tables to runs/2026-11-26-host-stalls.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lanewise.catalog import builtin
from lanewise.evidence.services import PublishedService, published_services, served_percentile
from lanewise.serving.host_stalls import STALL, STALLED_SHARE, STALLING, with_stalls

RUNS = Path(__file__).with_name("runs")
SHARES = (0.0, 0.03, 0.05, 0.06, 0.07, 0.08, 0.10, 0.12)
STALLS = (1.5e-3, 2e-3, 2.5e-3, 3e-3, 4e-3, 5e-3)
LEARNED = {"p97": 0.97, "p99": 0.99, "p99.9": 0.999}
LAWS: dict[str, Callable[[float], float]] = {
    f"from {STALLING:,.0f} QPS on": lambda qps: float(qps >= STALLING),
    "in proportion to the rate": lambda qps: qps / 200e3,
}


def scaled(law: Callable[[float], float], share: float) -> Callable[[float], float]:
    """The share of queries that stall at a rate in queries/s: at most nine in ten."""
    return lambda qps: min(0.9, share * law(qps))


@dataclass(frozen=True)
class Row:
    """A service with its latencies in s: simulated without stalls, and published."""

    service: PublishedService
    simulated: Callable[[float], float]
    published: dict[str, float]

    def error(self, name: str, stalled: float, stall: float) -> float:
        share = LEARNED[name]
        found = with_stalls(self.simulated, share, stalled, stall) if stalled else self.simulated(share)
        return math.log(found / self.published[name])


def rows_of() -> list[Row]:
    document = json.loads((RUNS / "2026-11-26-service-percentiles.json").read_text())
    known = {(row["round"], row["system"], row["workload"]): row["ms"] for row in document["services"]}
    catalog = builtin()
    return [
        Row(each, served_percentile(each, catalog),
            {name: 1e-3 * known[each.round, each.system, each.workload][name] for name in LEARNED})
        for each in published_services() if each.timeout
    ]  # fmt: skip


def near(rows: Sequence[Row], stalled: Callable[[float], float], stall: float) -> str:
    errors = [math.expm1(row.error("p99", stalled(row.service.server.qps), stall)) for row in rows]
    return f"{sum(abs(error) <= 0.25 for error in errors)} of {len(errors)}"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [" | ".join(head), " | ".join(["---"] * len(head)), *(" | ".join(map(str, row)) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def main() -> None:
    rows = rows_of()
    learned = [row for row in rows if row.service.held_out and row.service.round == "v2.0"
               and row.service.workload == "resnet50"]  # fmt: skip
    groups = {f"{whose} {series}": [row for row in rows if row.service.round == series
                                    and row.service.held_out == (whose == "others")]
              for whose in ("NVIDIA", "others") for series in ("v2.0", "v2.1", "v3.0")}  # fmt: skip
    best, scores = [], []
    for law, count in LAWS.items():
        tried = []
        for share in SHARES:
            for stall in STALLS if share else STALLS[:1]:
                errors = [abs(row.error(name, min(0.9, share * count(row.service.server.qps)), stall))
                          for row in learned for name in LEARNED]  # fmt: skip
                tried.append((sum(errors) / len(errors), share, stall))
        tried.sort()
        best += [[law, f"{share:.0%}", f"{1e3 * stall:g} ms", f"{error:.3f}"] for error, share, stall in tried[:3]]
        for _, share, stall in (tried[0], (0.0, 0.0, STALLS[0])):
            scale = scaled(count, share)
            scores.append([law if share else "none", f"{share:.0%}", f"{1e3 * stall:g} ms",
                           *(near(group, scale, stall) for group in groups.values()), near(rows, scale, stall)])
    law, count = next(iter(LAWS.items()))
    scale = scaled(count, STALLED_SHARE)
    scores[2:] = [*scores[2:3], [f"{law}, taken", f"{STALLED_SHARE:.0%}", f"{1e3 * STALL:g} ms",
                                 *(near(group, scale, STALL) for group in groups.values()), near(rows, scale, STALL)]]
    text = "\n\n".join([
        "# Stalls of hosts, 2026-11-26",
        "Command: `python benchmarks/host_stalls.py`. Learned from ResNet-50 of submitters other than NVIDIA in v2.0 "
        f"({len(learned)} services; p97, p99, p99.9), tried on all with a time-out. Errors: mean |ln|.",
        table(("law", "stalled queries", "mean stall", "error where learned"), best),
        "p99 within 25 % (others v2.0 holds the services learned from):",
        table(("law", "stalled queries", "mean stall", *groups, "all"), scores),
    ]) + "\n"  # fmt: skip
    (RUNS / "2026-11-26-host-stalls.md").write_text(text)


if __name__ == "__main__":
    main()
