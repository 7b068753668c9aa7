"""Ctrl-C at random moments of `predict --sweep`, `study run` and `plan` on an engine; each is then run to its end.

    python benchmarks/scenario_interrupts.py [--rounds 12] [--seed 1] [--engines ray:2,cluster]

SIGINT goes to all processes of the command, as a terminal sends it, at a moment between its start and its end,
which an undisturbed run on that engine has told. `cluster` is a Ray on loopback, reached at its address. A fault is
another exit code than 130 (or 0 or -2, where it was just ending and had shown everything), a traceback or an abort on
stderr, a process that is left behind, a finished scenario that is lost, or other rows than those of an undisturbed run
once it was resumed.
"""

from __future__ import annotations

import dataclasses
import random
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import kept

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from sweep_interrupts import COMMANDS, interrupt_round, interruptible, ray_cluster
from sweep_kills import rows_of


def page(record: kept.Record) -> str:
    """The sums, and every round."""
    lines = []
    for engine in dict.fromkeys(row["engine"] for row in record["rows"]):
        rows = [row for row in record["rows"] if row["engine"] == engine and row["interrupted"]]
        faults, seconds = sum(bool(row["faults"]) for row in rows), [row["seconds"] for row in rows]
        middle, most = statistics.median(seconds), max(seconds)
        lines.append(f"{engine}: {len(rows)} Ctrl-C, {faults} with a fault; the command ended {middle:.1f} s later "
                     f"in the median, {most:.1f} s at most.\n")  # fmt: skip
    names = ("engine", "verb", "s after the start", "s until the end", "exit code", "rows then", "kept", "in the end",
             "faults")  # fmt: skip
    lines += [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    lines += [
        f"| {row['engine']} | {row['verb']} | {row['delay']:.2f} | "
        f"{format(row['seconds'], '.2f') if row['interrupted'] else 'it had ended'} | {row['code']} | "
        f"{row['before']} | {row['kept']} | {row['rows']} | {'; '.join(row['faults']) or 'none'} |"
        for row in record["rows"]
    ]
    return "\n".join([*kept.heading("Ctrl-C on sweeps", record), *lines, ""])


def main() -> None:
    """Run and keep."""
    parser = kept.options(__doc__, "scenario-interrupts")
    parser.add_argument("--rounds", type=int, default=12, help="on each engine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engines", default="ray:2,cluster")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    record = kept.begin(options) | {"rows": []}
    with tempfile.TemporaryDirectory() as folder:
        for engine in options.engines.split(","):
            with ray_cluster() if engine == "cluster" else nullcontext((engine, 0)) as (on, _):
                spans, expected = {}, {}
                for number in range(options.rounds):
                    verb = list(COMMANDS)[number % len(COMMANDS)]
                    if verb not in spans:
                        results, began = Path(folder, f"{engine} {verb}"), time.monotonic()
                        words, keeps = COMMANDS[verb]
                        assert interruptible(words, on, results if keeps else None).wait() == 0
                        spans[verb], expected[verb] = time.monotonic() - began, rows_of(results)
                    delay = chance.uniform(0, spans[verb])
                    row = interrupt_round(verb, on, delay, Path(folder, f"{engine} {number}"), expected[verb])
                    record["rows"].append(dataclasses.asdict(row))
                    print(row, file=sys.stderr, flush=True)
                    kept.keep(record, None, options.out)
    kept.keep(record, page, options.out)


if __name__ == "__main__":
    main()
