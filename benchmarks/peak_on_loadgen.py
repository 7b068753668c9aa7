"""The whole search for a peak beside LoadGen's own, FindPeakPerformance, on a server of known law: M/D/1 of 1 ms.

    python benchmarks/peak_on_loadgen.py [--seeds 10] [--seconds 140] [--out FILE.json]

The true peak is 848 queries/s for p99 <= 15 ms (closed form: lanewise.serving.queues.md1_peak). Both search by real
runs of LoadGen in real time, by turns, a seed after the other: five minutes each. LoadGen's mode needs a rate to start
from that is valid; it gets half of what the server can do. It doubles that until a run is late at the percentile, then
halves the gap down to 0.1 queries/s; all runs have the same arrivals, scaled, and last 10 s. After twice the seconds of
our search it is cut off, and what it knew last to be in time counts.
"""

from __future__ import annotations

import math
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import kept

from lanewise import _loadgen
from lanewise._native import LawSystem
from lanewise.loadtest import detail_log
from lanewise.loadtest.loadgen import LoadGenRunner, RunnerSetup
from lanewise.loadtest.peak import find
from lanewise.options.loadtest import PeakOptions
from lanewise.serving.queues import md1_peak

SERVICE, BOUND, PERCENTILE = 0.001, 0.015, 0.99
RUN = 10.0  # s of each run of LoadGen's search
START = 0.5 / SERVICE  # its first rate
TRUE = md1_peak(SERVICE, BOUND, PERCENTILE)
WHO = {"ours": "Lanewise", "theirs": "LoadGen, FindPeakPerformance"}


class TimeIsUp(Exception):
    """A search took too long."""


def ours(seed: int, seconds: float, folder: Path) -> kept.Record:
    """Our search."""
    runner = LoadGenRunner(LawSystem(SERVICE, seed=seed), folder, RunnerSetup())
    found = find(runner, PeakOptions(bound=BOUND, percentile=PERCENTILE, seconds=seconds, seed=1000 * seed))
    return {
        "qps": found.qps, "valid": found.best is not None, "ended": found.confirmed, "runs": len(found.search_runs),
        "queries": sum(run.queries for run in found.runs), "interval": list(found.interval),
        "longest_run_s": max(run.seconds for run in found.search_runs),
    }  # fmt: skip


def theirs(seed: int, seconds: float, folder: Path) -> kept.Record:
    """LoadGen's search; what it says stands in its detail log."""
    made, until = _loadgen.Settings(), time.monotonic() + 2.0 * seconds
    made.mode, made.folder, made.seed = _loadgen.Mode.FIND_PEAK, str(folder), 1000 * seed
    made.bound, made.percentile, made.qps, made.seconds, made.queries = BOUND, PERCENTILE, START, RUN, 1000
    made.sample_count = made.performance_sample_count = 1024

    def tick(*_: int) -> None:
        if time.monotonic() > until:
            raise TimeIsUp

    with suppress(TimeIsUp):
        _loadgen.run_load(LawSystem(SERVICE, seed=seed), made, tick)
    return said((folder / detail_log.NAME).read_text(encoding="utf-8"))


def said(log: str) -> kept.Record:
    """The answer, else the last lower bound, else 0; LoadGen's verdict on the answer's run, early stopping included."""
    answer = re.findall(r"Found peak performance field: ([\d.]+)", log)
    lower = re.findall(r"(?:bounds|boundaries:|fields) \[([\d.]+), ", log)
    queries = [int(each) for each in re.findall(r'"generated_query_count", "value": (\d+)', log)]
    found, qps = detail_log.parse(log), float((answer or lower or ["0"])[-1])
    return {
        "qps": qps, "valid": found.valid if answer else None, "ended": bool(answer), "runs": len(queries),
        "queries": sum(queries), "errors": list(found.errors),
    }  # fmt: skip


def timed(search: Callable[[int, float, Path], kept.Record], seed: int, seconds: float) -> kept.Record:
    """One search, how long it took and how far off it is."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = search(seed, seconds, Path(folder))
    made = {"seed": seed, **found, "error": found["qps"] / TRUE - 1.0, "seconds": time.monotonic() - began}
    print(search.__name__, made, file=sys.stderr, flush=True)
    return made


def page(record: kept.Record) -> str:
    """A line a search, and what all of them come to."""
    lines = kept.heading("Searches for the peak through LoadGen", record)
    lines += [f"M/D/1, 1 ms; true peak {TRUE:.1f} queries/s for p99 <= 15 ms. {ABOUT}", ""]
    lines += ["| search | within 2 % | gave a rate | VALID | mean error, % | worst, % | runs | queries | s |"]
    lines += ["|---|---|---|---|---|---|---|---|---|", *(summary(WHO[who], record[who]) for who in WHO), ""]
    lines += ["| seed | search | queries/s | error, % | VALID | came to an end | runs | queries | s |"]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    pairs = zip(*(record[who] for who in WHO), strict=True)
    lines += [row(name, each) for pair in pairs for name, each in zip(WHO.values(), pair, strict=True)]
    return "\n".join([*lines, ""])


def summary(name: str, rows: list[kept.Record]) -> str:
    """All seeds of one search: errors of those with an answer, medians of what it took."""
    errors = [100.0 * each["error"] for each in rows if each["qps"]] or [math.nan]
    counts = [sum(bool(each[key]) for each in rows) for key in ("qps", "valid")]
    shares = [f"{count} of {len(rows)}" for count in (sum(abs(error) <= 2.0 for error in errors), *counts)]
    took = [f"{statistics.median(each[key] for each in rows):,.0f}" for key in ("runs", "queries", "seconds")]
    cells = [name, *shares, f"{statistics.mean(errors):+.2f}", f"{max(errors, key=abs):+.2f}", *took]
    return f"| {' | '.join(cells)} |"


def row(name: str, each: kept.Record) -> str:
    """One search."""
    words = {True: "yes", False: "no", None: ""}
    rate = [f"{each['qps']:.1f}", f"{100.0 * each['error']:+.2f}"] if each["qps"] else ["none", ""]
    cells = [str(each["seed"]), name, *rate, words[each["valid"]]]
    cells += [words[each["ended"]], str(each["runs"]), f"{each['queries']:,}", f"{each['seconds']:.0f}"]
    return f"| {' | '.join(cells)} |"


ABOUT = """VALID is LoadGen's verdict on the run of the answer, early stopping included; its own search looks at the
percentile alone (`PerfConstraintsMet` in results.cc), so that its answer can be INVALID. It gives no rate where its
first run is late at the percentile, and has come to an end where it names a peak."""


def main() -> None:
    """Searches with every seed, ours and LoadGen's by turns, and keeps what was found."""
    parser = kept.options(__doc__, "peak-on-loadgen")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--seconds", type=float, default=140.0, help="of our search; LoadGen's is cut off after twice that"
    )
    asked = parser.parse_args()
    record = kept.begin(asked) | {"true": TRUE, "ours": [], "theirs": []}
    for seed in range(1, asked.seeds + 1):
        for search in (ours, theirs):
            record[search.__name__].append(timed(search, seed, asked.seconds))
        kept.keep(record, None, asked.out)
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
