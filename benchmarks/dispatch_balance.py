"""A Frontend that weighs nodes by measured time, and an earlier one, over links of unequal rates: p99, VALID runs.

    python benchmarks/dispatch_balance.py --before FOLDER --commit C [--rates 20mbit 5mbit] [--rounds 4] [--seconds 10]

FOLDER holds the earlier Lanewise: pip install --target FOLDER --no-deps . at that commit. Root, `ip` and `tc` are
needed: the links are veth pairs shaped by tbf at both ends. Both Frontends use the same two nodes, by turns, so that
they differ in nothing but the choice of a node. The nodes answer from the synthetic engine; the links limit. Rates are
fixed and repeated, as a search for the peak on a busy machine finds the pauses of that machine.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import kept
from dispatch_namespaces import SAMPLE_BYTES, bits, row, started

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from dispatch.namespaces import fabric
from dispatch.nodes import load_test

GRID = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of what the links carry
TEST = ("--connections", "2", "--depth", "16", "--bound", "80 ms", "--percentile", "0.99", "--library", "256")
BEFORE, AFTER = "fewest outstanding", "least expected time"


def measure(before: Path, rates: list[str], rounds: int, seconds: float, out: Path, record: kept.Record) -> None:
    """Fills record["rows"]: the load tests of each round, Frontends by turns."""
    most = sum(map(bits, rates)) / (8 * SAMPLE_BYTES)
    tests = {share: ("run", "--qps", f"{share * most:.0f}", "--seconds", f"{seconds:g}") for share in GRID}
    record["rows"] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        links = stack.enter_context(fabric(*rates))
        nodes = started(stack, links, folder, rates)
        earlier = (*links.inside(), "env", f"PYTHONPATH={before.resolve()}")
        for number in range(rounds):
            for share, words in tests.items():
                for frontend, prefix in ((BEFORE, earlier), (AFTER, links.inside())):
                    place = f"{len(record['rows'])}"
                    done, result = load_test(folder, nodes, (*words, *TEST), prefix, name=place)
                    kept_of = row(f"{share:.0%}", done.returncode, result, done.stderr.replace(str(folder), "FOLDER"))
                    record["rows"].append({"round": number + 1, "frontend": frontend, **kept_of})
                    print(number + 1, share, frontend, result.get("qps"), flush=True)
                    kept.keep(record, None, out)


def page(record: kept.Record) -> str:
    """A row for each rate, both Frontends next to each other; medians over the rounds."""
    whole = sum(map(bits, record["rates"]))
    most = whole / (8 * SAMPLE_BYTES)
    lines = ["| of what the links carry | queries/s | Frontend | VALID runs | p99, ms, median | to b, median | "
             "p99 of each |",
             "|---" * 7 + "|"]  # fmt: skip
    peaks = {}
    for share in dict.fromkeys(each["test"] for each in record["rows"]):
        for frontend in (BEFORE, AFTER):
            runs = [each for each in record["rows"] if (each["test"], each["frontend"]) == (share, frontend)]
            valid = sum(each["valid"] for each in runs)
            if 2 * valid > len(runs):
                peaks[frontend] = share
            p99 = [1e3 * each["latency"]["p99"] for each in runs]
            to_b = [each["nodes"][1]["answered"] / sum(node["answered"] for node in each["nodes"]) for each in runs]
            rate = float(share.rstrip("%")) / 100 * most
            p99_of_each = ", ".join(f"{one:.1f}" for one in p99)
            lines.append(f"| {share} | {rate:,.0f} | {frontend} | {valid} of {len(runs)} | "
                         f"{statistics.median(p99):.1f} | {statistics.median(to_b):.0%} | {p99_of_each} |")  # fmt: skip
    of_b = bits(record["rates"][1]) / whole
    about = (f"Links of {' and '.join(record['rates'])}, to nodes a and b; together they carry {most:,.0f} samples/s "
             f"of {SAMPLE_BYTES:,} B without headers, b's {of_b:.0%} of it. p99 within 80 ms is VALID. `{BEFORE}` is "
             f"the Frontend of commit {record['before']}. Both took turns, run by run.")  # fmt: skip
    summary = "; ".join(f"{frontend} {peaks.get(frontend, 'none')}" for frontend in (BEFORE, AFTER))
    result = f"The highest of these rates at which most runs are VALID, of what the links carry: {summary}."
    return "\n".join([*kept.heading("Balance over links of unequal rates", record), about, "", result, "", *lines, ""])


def main() -> None:
    """Measures, and keeps the outcomes."""
    parser = kept.options(__doc__, "dispatch-balance")
    parser.add_argument("--before", type=Path, required=True, help="folder of the earlier Lanewise")
    parser.add_argument("--commit", required=True, help="its commit")
    parser.add_argument("--rates", nargs=2, default=["20mbit", "5mbit"])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10.0)
    asked = parser.parse_args()
    record = kept.begin(asked)
    record["rates"], record["before"] = asked.rates, asked.commit
    measure(asked.before, asked.rates, asked.rounds, asked.seconds, asked.out, record)
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
