"""The whole search for a peak, through LoadGen, on a server of known law: M/D/1 with a service of 1 ms.

    python benchmarks/peak_on_loadgen.py [--seeds 10] [--seconds 140] [--out FILE.json]

Its true peak is 850 queries/s for p99 <= 15 ms (closed form: lanewise.serving.queues.md1_peak). Every seed is a search
of real runs in real time, so ten seeds take up to 25 minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from lanewise._native import LawSystem
from lanewise.loadtest.loadgen import LoadGenRunner, Setup
from lanewise.loadtest.peak import PeakAsk, find
from lanewise.serving.queues import md1_peak

SERVICE, BOUND, PERCENTILE = 0.001, 0.015, 0.99


def main() -> int:
    """Search with every seed, write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=140.0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    true = md1_peak(SERVICE, BOUND, PERCENTILE)
    rows = [_search(seed, args.seconds, true) for seed in range(1, args.seeds + 1)]
    within = sum(abs(row["error"]) <= 0.02 for row in rows)
    told = {
        "true": true, "load": os.getloadavg(), "cpus": os.cpu_count(), "rows": rows, "within 2 %": within,
        "valid": sum(row["valid"] for row in rows), "most runs": max(row["runs"] for row in rows),
    }  # fmt: skip
    print(f"{within} of {len(rows)} within 2 % of {true:.0f}, {told['valid']} VALID, at most {told['most runs']} runs")
    if args.out:
        args.out.write_text(json.dumps(told, indent=1) + "\n")
    return 0


def _search(seed: int, seconds: float, true: float) -> dict[str, float]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        runner = LoadGenRunner(LawSystem(SERVICE, seed=seed), Path(folder), Setup())
        found = find(runner, PeakAsk(bound=BOUND, percentile=PERCENTILE, seconds=seconds, seed=1000 * seed))
    row = {
        "seed": seed, "qps": found.qps, "error": found.qps / true - 1.0, "valid": found.outcome is not None,
        "confirmed": found.confirmed, "runs": len(found.trials), "seconds": time.monotonic() - began,
        "interval": list(found.interval),
    }  # fmt: skip
    print(row, file=sys.stderr, flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main())
