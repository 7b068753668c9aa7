"""Eight clients race for 200 blocks, on SQLite and on PostgreSQL, at the tables alone and through a director.

    python benchmarks/director_races.py [--rounds 20] [--clients 8] [--blocks 200]

At the tables, each client is a process with a connection of its own, which claims one to three blocks at a time and
knows of nobody else: the database decides. Through a director, each client is a thread that attaches single blocks to
a composition of its own, over a simulated fabric. A fault is a block that was granted twice, to nobody, or to a client
for which the database (and the fabric) does not have it afterwards. PostgreSQL runs in a temporary folder as an
unprivileged user and waits for the disk, as SQLite does.
"""

from __future__ import annotations

import sys
import tempfile
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path

import kept

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from director.postgres import PostgresServer, missing
from director.races import race_at_director, race_for_tables


def race(database: str, way: str, url: str, clients: int, blocks: int, seed: int, pool: Executor) -> kept.Record:
    """One race, and what is wrong with what came of it."""
    began = time.monotonic()
    if way == "tables":
        result = race_for_tables(url, clients, blocks, seed, pool)
    else:
        result = race_at_director(url, clients, blocks, seed)
    granted = [len(names) for names in result.granted]
    return {
        "database": database, "claims": way, "seed": seed, "seconds": time.monotonic() - began, "granted": granted,
        "refused": result.refused, "faults": result.faults(blocks),
    }  # fmt: skip


def races(rounds: int, clients: int, blocks: int) -> list[kept.Record]:
    """All rounds on all databases that are installed."""
    rows = []
    with ExitStack() as stack:
        pool = stack.enter_context(ProcessPoolExecutor(clients, get_context("fork")))
        list(pool.map(time.sleep, [0.2] * clients))  # every process is there before the server and threads are
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = None if missing() else PostgresServer(durable=True)
        if server is not None:
            stack.callback(server.close)
        for seed in range(rounds):
            for way in ("tables", "director"):
                urls = {"SQLite": str(folder / f"{way}{seed}.db")}
                if server is not None:
                    urls["PostgreSQL"] = server.new_database()
                rows += [race(name, way, url, clients, blocks, seed, pool) for name, url in urls.items()]
    return rows


def page(record: kept.Record) -> str:
    """A line for each database and way to claim."""
    lines = ["| database | claims | rounds | granted | faults | refused | s a round |", "|---" * 7 + "|"]
    for database in ("SQLite", "PostgreSQL"):
        for way in ("tables", "director"):
            rows = [row for row in record["rows"] if (row["database"], row["claims"]) == (database, way)]
            if not rows:
                continue
            faults = sum(len(row["faults"]) for row in rows)
            granted, refused = (sum(map(sum, (row["granted"] for row in rows))), sum(row["refused"] for row in rows))
            seconds = sum(row["seconds"] for row in rows) / len(rows)
            lines.append(f"| {database} | {way} | {len(rows)} | {granted} | {faults} | {refused} | {seconds:.1f} |")
    said = f"{record['clients']} clients and {record['blocks']} blocks in each round. {record['server']}"
    return "\n".join([*kept.heading("Races for blocks", record), said, "", *lines, ""])


def main() -> None:
    """Races, and keeps what came of them."""
    parser = kept.options(__doc__, "director-races")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--blocks", type=int, default=200)
    options = parser.parse_args()
    record = kept.begin(options)
    record["clients"], record["blocks"] = options.clients, options.blocks
    record["server"] = missing() or kept.first_line("psql", "--version")
    record["rows"] = races(options.rounds, options.clients, options.blocks)
    kept.keep(record, page, options.out)


if __name__ == "__main__":
    main()
