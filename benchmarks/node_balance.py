"""Rules by which a Frontend's queries go to nodes, in simulated time: the largest rate with p99 within a bound.

    python benchmarks/node_balance.py [-o benchmarks/runs/DATE-node-balance.json]

The program is benchmarks/peers/node_balance.cpp, over the simulation that unit tests use too
(native/tests/simulated_nodes.hpp). Queries come at random (Poisson), nodes serve in the order of arrival. Nothing
depends on the machine.
"""

from __future__ import annotations

import json
import subprocess

import kept

BUILD = kept.ROOT / "build" / "peers"


def measure() -> list[kept.Record]:
    """A row for each case and rule."""
    configure = ["cmake", "-S", str(kept.ROOT / "benchmarks/peers"), "-B", str(BUILD)]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(BUILD), "--target", "node_balance"], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([str(BUILD / "node_balance")], stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def page(record: kept.Record) -> str:
    """A row for each case, a column for each rule."""
    rows = record["rows"]
    rules, cases = ([*dict.fromkeys(each[key] for each in rows)] for key in ("rule", "case"))
    lines = ["| nodes by speed, service times | bound on p99 | " + " | ".join(rules) + " |",
             "|---|---:|" + "---:|" * len(rules)]  # fmt: skip
    for case in cases:
        of_case = [each for each in rows if each["case"] == case]
        peaks = " | ".join(f"{each['peak']:.3f} ({each['p99_at_half']:.3g})" for each in of_case)
        lines.append(f"| {case} | {of_case[0]['bound']:g} | {peaks} |")
    about = ("The largest rate with p99 within the bound, over what the nodes can answer together; in brackets p99 at "
             "half of that capacity. Times are in units of the fastest node's interval between answers at full load; "
             "n is what is outstanding at a node.")  # fmt: skip
    return "\n".join([*kept.heading("Rules for choosing a node", record), about, "", *lines, ""])


def main() -> None:
    """Simulates, and keeps the outcomes."""
    asked = kept.options(__doc__, "node-balance").parse_args()
    record = kept.begin(asked)
    record["rows"] = measure()
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
