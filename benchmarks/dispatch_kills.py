"""SIGKILL at random moments of load tests over two Accelerator nodes, either side, over shared memory and TCP.

    python benchmarks/dispatch_kills.py [--kills 50] [--seed 1] [--moments 0 1.05]

Each load test sends every sample once and audits the payload; a node or the Frontend gets a SIGKILL after a random part
of the time that such a test takes by itself. A fault is: a corrupt answer, a count of lost queries that is not the
number of queries without an answer, a lost node that is not named, another exit code than 0, 1 (INVALID) or 2 (error
and hint), a traceback, a session that a node does not say to have ended, shared memory that is left over in a node or
in /dev/shm, or a next Frontend that is not served with right answers alone. A hang ends the run after 300 s.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import sys
import tempfile
from pathlib import Path

import kept

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from dispatch.kills import SAMPLES, SIDES, Killing

TRANSPORTS = ("shm", "tcp")


def kills(count: int, seed: int, moments: tuple[float, float]) -> list[kept.Record]:
    """Kills in turn of both sides over both transports."""
    turns = itertools.islice(itertools.cycle(itertools.product(SIDES, TRANSPORTS)), count)
    with tempfile.TemporaryDirectory() as folder, Killing(Path(folder), seed, moments=moments) as killing:
        return [dataclasses.asdict(killing.round(side, transport)) for side, transport in turns]


def page(record: kept.Record) -> str:
    """The outcomes by side and transport."""
    rows = record["rows"]
    names = list(dict.fromkeys(row["outcome"] for row in rows))
    lines = [f"| killed | transport | {' | '.join(names)} | queries lost |", "|---" * (len(names) + 3) + "|"]
    for side, transport in itertools.product(SIDES, TRANSPORTS):
        of = [row for row in rows if (row["side"], row["transport"]) == (side, transport)]
        counts = collections.Counter(row["outcome"] for row in of)
        lost = sum(row["unanswered"] for row in of)
        lines.append(f"| {side} | {transport} | {' | '.join(str(counts[name]) for name in names)} | {lost} |")
    faults = sum(bool(row["faults"]) for row in rows)
    said = f"{len(rows)} kills, {SAMPLES} queries each: {faults} with a fault."
    moments = "`the load test ended`: the node was gone before the run began, exit code 2 with its address."
    return "\n".join([*kept.heading("Kills of Frontends and nodes", record), said, moments, "", *lines, ""])


def main() -> None:
    """Kills, and keeps the outcomes."""
    parser = kept.options(__doc__, "dispatch-kills")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--moments", type=float, nargs=2, default=(0.0, 1.05), help="shares of a load test's time")
    asked = parser.parse_args()
    record = kept.begin(asked)
    record["rows"] = kills(asked.kills, asked.seed, tuple(asked.moments))
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
