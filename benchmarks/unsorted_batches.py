"""How much longer a query takes in a batch of queries as they came than in Offline's sorted batches.

    python benchmarks/unsorted_batches.py

Reads benchmarks/runs/2026-11-24-unsorted-batches.yaml: BERT in the Server scenario on machines of submitters other than
NVIDIA, whose own machines lanewise accuracy --services scores. Writes the .md beside it: for each published rate the
ratio with which the simulated p99 is the published one, and the medians by GPU and workload, which are the figures
`service_unsorted.*` in src/lanewise/data/parts.
"""

from __future__ import annotations

import platform
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from lanewise.catalog import Catalog, Figure, builtin
from lanewise.evidence.services import PublishedService, ServedRate, read_services, served_p99

FACTS = Path(__file__).with_name("runs") / "2026-11-24-unsorted-batches.yaml"
LEAST, MOST, STEPS = 0.8, 1.5, 9  # ratios that are tried, and how often the interval is halved


def ratio_of(service: PublishedService, at: ServedRate, catalog: Catalog) -> float:
    """The ratio with which a service's simulated p99 is the published one at that rate."""
    low, high = LEAST, MOST
    there, part = replace(service, server=at), catalog.get(service.gpu)
    for _ in range(STEPS):
        middle = (low + high) / 2
        figure = Figure(middle, "1", "tried")
        tried = catalog.with_part(part.with_figure(f"service_unsorted.{service.workload}", figure))
        if served_p99(there, tried) > at.p99:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [" | ".join(head), " | ".join(["---"] * len(head)), *(" | ".join(map(str, row)) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def main() -> None:
    catalog = builtin()
    rows, groups = [], defaultdict(list)
    for service in read_services(FACTS.read_text(), FACTS.name):
        points = (service.server, *service.lower)
        ratios = [ratio_of(service, at, catalog) for at in points]
        groups[service.gpu, service.workload].append(ratios)
        rows.append([
            service.system, service.gpu, service.workload, service.batch,
            ", ".join(f"{at.qps / service.offline:.3f}" for at in points),
            ", ".join(f"{1e3 * at.p99:.1f}" for at in points), ", ".join(f"{ratio:.3f}" for ratio in ratios),
        ])  # fmt: skip
    medians = [
        [gpu, name, len(group), f"{statistics.median(ratio for each in group for ratio in each):.2f}",
         f"{min(map(min, group)):.2f} to {max(map(max, group)):.2f}"]
        for (gpu, name), group in groups.items()
    ]  # fmt: skip
    text = "\n\n".join([
        "# Time of a query in batches as queries came, over that in Offline's sorted batches, 2026-11-24",
        f"Command: `python benchmarks/unsorted_batches.py`. Machine: {platform.platform()}, Python "
        f"{platform.python_version()}. Facts: {FACTS.name}, MLPerf Inference v3.0, submitters other than NVIDIA.",
        "The ratio with which the simulated p99 is the published one:",
        table(("system", "GPU", "workload", "batch", "rates over Offline", "p99 in ms", "ratio"), rows),
        "Medians of all rates of all systems:",
        table(("GPU", "workload", "systems", "median", "least to most"), medians),
    ])
    FACTS.with_suffix(".md").write_text(text + "\n")


if __name__ == "__main__":
    main()
