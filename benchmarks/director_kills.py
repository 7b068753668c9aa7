"""A director is killed by SIGKILL while four clients use it; the next one must know all that was answered.

    python benchmarks/director_kills.py [--kills 60] [--seed 1] [--database sqlite|postgresql]

Each round starts a director in a process of its own over a simulated fabric that is kept in a file and that refuses,
loses replies and does not come to rest now and then. Half of the kills come at a driver step counted from the start
(between a claim and its device, or after the device and before the commit), half after a random time. The next director
over the same database and fabric is timed until it has reconciled. A fault is: an answered operation that is not there,
one that is there in part, a block that pool, database and fabric disagree about, a block that is Failed, a task that
runs for ever, a gap in the events.
"""

from __future__ import annotations

import dataclasses
import random
import sys
import tempfile
from pathlib import Path

import kept

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from director.director_kills import kill_round
from director.postgres import PostgresServer, missing


def kills(count: int, seed: int, database: str) -> list[kept.Record]:
    """Kills in turn at a driver step and after a random time."""
    chance, rows = random.Random(seed), []
    server = PostgresServer(durable=True) if database == "postgresql" else None
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(count):
                url = f"{folder}/{number}.db" if server is None else server.new_database()
                state = Path(folder) / f"{number}.json"
                point, delay = (chance.randint(1, 150), None) if number % 2 else (None, chance.uniform(0, 1.0))
                rows.append(dataclasses.asdict(kill_round(url, state, chance.randrange(10**6), point, delay)))
    finally:
        if server is not None:
            server.close()
    return rows


def page(record: kept.Record) -> str:
    """The sums, and every round."""
    rows = record["rows"]
    faults = sum(bool(row["faults"]) for row in rows)
    answered, running = sum(row["answered"] for row in rows), sum(row["open"] for row in rows)
    ended = f"{sum(row['finished'] for row in rows)} were finished and {sum(row['undone'] for row in rows)} undone"
    longest = max(row["seconds"] for row in rows)
    said = f"{len(rows)} kills on {record['database']}: {faults} with a fault. {answered} operations were answered, "
    said += f"{running} were asked for when the kill came. Of those that had begun, {ended} by the next director, "
    said += f"which had reconciled after {longest:.2f} s at most."
    lines = ["| killed at | answered | asked for | finished | undone | reconciled in s | faults |", "|---" * 7 + "|"]
    lines += [
        f"| {row['where']} | {row['answered']} | {row['open']} | {row['finished']} | {row['undone']} | "
        f"{row['seconds']:.3f} | {'; '.join(row['faults']) or 'none'} |"
        for row in rows
    ]
    return "\n".join([*kept.heading("Kills of directors", record), said, "", *lines, ""])


def main() -> None:
    """Kills, and keeps the outcomes."""
    parser = kept.options(__doc__, "director-kills")
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    options = parser.parse_args()
    if options.database == "postgresql" and missing():
        parser.error(missing())
    record = kept.begin(options)
    record["database"] = options.database
    record["rows"] = kills(options.kills, options.seed, options.database)
    kept.keep(record, page, options.out)


if __name__ == "__main__":
    main()
