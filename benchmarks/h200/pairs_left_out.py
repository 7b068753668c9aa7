"""Flows of the measured pairs and fours of H200 by the other machines' figures, without and with one set measured.

python benchmarks/h200/pairs_left_out.py
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from lanewise.catalog import builtin
from lanewise.evidence.reading import ready_machine
from lanewise.perf.flow import parse_flows
from lanewise.perf.host_calibration import HostRate, calibrate_host
from lanewise.perf.predict import predict

RUNS = Path(__file__).parents[1] / "runs"
MACHINES = {
    "2gpus-third": "2026-11-26-two-gpus/h200", "2gpus-fourth": "2026-11-26-two-gpus/h200-second",
    "2gpus-fifth": "2026-11-26-two-gpus/third-h200", "2gpus-sixth": "2026-11-27-two-gpus/h200",
    "2gpus-seventh": "2026-11-27-seventh-pair/h200", "4gpus-second": "2026-11-27-four-gpus/h200",
    "4gpus-third": "2026-11-27-four-gpus/h200-second", "4gpus-fourth": "2026-11-27-four-gpus-later/h200",
}  # fmt: skip
PAIR_SET = "host0->gpu0, gpu0->host0, host0->gpu1"  # measured first on pairs, by two_gpus.sh
FOUR_SET = "gpu0->host0, host0->gpu1, gpu2->host0, host0->gpu3"
WITHIN = 0.10


def counts(name: str, measured_first: bool) -> list[int]:
    """Flows, those within 10 % and those in their interval; sets, and sums within 10 %."""
    sets: dict[str, dict[str, float]] = defaultdict(dict)
    for row in json.loads((RUNS / MACHINES[name] / "measured.json").read_text())["rows"]:
        if row["p2p"]:
            sets[row["flows"]][row["flow"]] = row["measured"]
    machine = f"h200-vm-{name}"
    system = ready_machine(machine).system(builtin().without_machine(machine))
    if measured_first:
        text = FOUR_SET if FOUR_SET in sets else PAIR_SET
        rate = HostRate(text, tuple(parse_flows(text)), sum(sets[text].values()))
        system = calibrate_host(system, [rate]).system
    found = [0, 0, 0, len(sets), 0]
    for text, measured in sets.items():
        prediction = predict(system, parse_flows(text))
        found[4] += abs(prediction.total / sum(measured.values()) - 1) <= WITHIN
        for each in prediction.rates:
            value = measured[each.flow.name]
            found[0] += 1
            found[1] += abs(each.rate / value - 1) <= WITHIN
            found[2] += each.low <= value <= each.high
    return found


def main() -> None:
    """A line for each machine and one for all."""
    for measured_first in (False, True):
        print("after one measured set" if measured_first else "by the other machines' figures")
        rows = {name: counts(name, measured_first) for name in MACHINES}
        rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
        for name, (flows, near, held, sets, sums) in rows.items():
            print(f"  {name:13} flows {near} of {flows} within 10 %, {held} in the interval; sums {sums} of {sets}")


if __name__ == "__main__":
    main()
