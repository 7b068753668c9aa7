"""How often `lanewise check` calls a row of a healthy machine slow: every measured row of the evidence, judged.

The machines of data/evidence are healthy as far as anybody knows; figures measured on a machine are left out for it.

With --by-name the machines are not described: only the names of their GPUs are known, as from a tool's header. A row
that is slow then has the link it really has named as a cause, where that is less than the card can.

    .venv/bin/python benchmarks/check_evidence.py [--by-name] [--json FILE]
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from lanewise.catalog import builtin
from lanewise.checking.checkup import check
from lanewise.evidence.model import EACH, FIRST, EvidenceMachine, EvidenceRow
from lanewise.evidence.reading import ready_machines
from lanewise.readers.typed.flows import path_of
from lanewise.results.observation import Observation, Source
from lanewise.results.posted import PostedFacts
from lanewise.topology.model import Kind, System

UNTIMED = "together"


def measured(row: EvidenceRow) -> Observation:
    """A row of the evidence as a tool would have given it."""
    flows = ", ".join(flow.name for flow in row.flows)
    several = len(row.flows) > 1 and row.of not in (EACH, FIRST)
    metric = "latency" if row.latency else "total" if several else "goodput"
    flow = flows if several else row.flows[0].name
    engine = "SM" if row.flows[0].sm else "copy engine"
    p2p = "on" if row.flows[0].p2p else "off"
    words = ", ".join(f"{flow.name}{' read' * flow.read}" for flow in row.flows)
    return Observation(
        row.path, flow, metric, row.value, "us" if row.latency else "GB/s", Source.MEASURED,
        path=path_of(row.flows[0]), how={"flows": words, "p2p": p2p, "tool": "evidence", "engine": engine},
    )  # fmt: skip


def names(system: System) -> PostedFacts:
    """What a tool's header would say of a machine: the names of its GPUs."""
    parts = {gpu: system.part(gpu) for gpu in system.of_kind(Kind.GPU)}
    return PostedFacts({gpu: part.title for gpu, part in parts.items() if part})


def verdicts(machine: EvidenceMachine, by_name: bool = False) -> list[dict[str, Any]]:
    """Each row's verdict with its numbers, and the keys of the causes of what is slow."""
    rows = [measured(row) for row in machine.rows if row.flows and not row.skip and row.schedule == UNTIMED]
    catalog = builtin().without_machine(machine.name)
    system = machine.system(catalog)
    described = None if by_name else system
    posted = names(system) if by_name else None
    checkup = check(rows, target=described, posted=posted, catalog=catalog)
    causes = {id(row): finding.causes for finding in checkup.findings for row in finding.results}
    return [
        {
            "machine": machine.name, "row": result.row.scenario, "flow": result.row.flow, "metric": result.row.metric,
            "verdict": result.verdict.value, "measured": result.row.value, "expected": result.expected.value,
            "low": result.fine_low, "high": result.fine_high,
            "basis": result.tolerance.basis if result.tolerance else None,
            "causes": [cause.key[0] for cause in causes.get(id(result), ())],
        }
        for result in checkup.results
    ]  # fmt: skip


def main(arguments: list[str]) -> None:
    """Print every row that is not ok, and the counts."""
    results = [result for machine in ready_machines() for result in verdicts(machine, "--by-name" in arguments)]
    for result in results:
        if result["verdict"] != "ok":
            values = (result[key] for key in ("measured", "expected", "low", "high"))
            numbers = " ".join(f"{float(str(value or 'nan')):.3g}" for value in values)
            flow = str(result["flow"])[:40]
            why = f"{result['basis']} {', '.join(map(str, result['causes']))}"
            print(f"{result['verdict']:8}{result['machine']:24.24} {flow:40} {numbers} {why}")
    for metric in ("goodput", "total", "latency"):
        print(metric, dict(Counter(result["verdict"] for result in results if result["metric"] == metric)))
    if "--json" in arguments:
        Path(arguments[arguments.index("--json") + 1]).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
