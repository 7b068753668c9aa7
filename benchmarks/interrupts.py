"""Ctrl-C at random moments of several verbs: how each process ends, and whether anybody sees a traceback.

    python benchmarks/interrupts.py [--signals 120] [--seed 1]

Each process gets one SIGINT after a random part of the time that the verb takes by itself, from the first millisecond
on. It should end with `interrupted` and exit code 130; before Python takes signals at all it is killed by the signal.
A traceback counts as Python's own where it comes before a line of Lanewise has run (its `site` module).
"""

from __future__ import annotations

import collections
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import kept

BINARY = Path(sys.executable).with_name("lanewise")
VERBS = (
    "--version",
    "system list",
    "predict rack-16gpu --matrix goodput",
    "predict composable-server-gen4 --service resnet50 --peak",
    "plan composable-server-two-hosts --pattern scatter",
    "study run storage-fabric",
    "measure host --what copy --threads 1 --bytes 64MiB --samples {folder}/host.jsonl",
    "measure network --seconds 0.05 --samples {folder}/network.jsonl",
    "loadtest run --engine synthetic --qps 200 --seconds 2 --results {folder}/run",
    "loadtest peak --engine synthetic --seconds 5 --results {folder}/peak",
)
EARLY = 0.05  # s; a third of the signals come within that time
LONGEST = 8.0  # s


def run(words: list[str], delay: float | None) -> tuple[subprocess.CompletedProcess[str], float]:
    """The process after its end, which a SIGINT after `delay` seconds may hasten, and the seconds that it took."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [str(BINARY), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    if delay is not None:
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    done = subprocess.CompletedProcess(words, process.returncode, stdout, stderr)
    return done, time.perf_counter() - began


def outcome(done: subprocess.CompletedProcess[str]) -> str:
    """How a process ended, in a word."""
    if "Traceback" in done.stderr or "Exception ignored" in done.stderr:
        return "traceback" if "/lanewise/cli/" in done.stderr else "traceback of Python's own start"
    if done.returncode == 130 and done.stderr.endswith("interrupted\n"):
        return "interrupted, 130"
    return "killed by the signal" if done.returncode == -signal.SIGINT else f"finished, {done.returncode}"


def fire(count: int, seed: int) -> list[kept.Record]:
    """Signals in turn over all verbs."""
    chance, rows = random.Random(seed), []
    with tempfile.TemporaryDirectory() as folder:
        took = {}
        for number in range(count):
            verb = VERBS[number % len(VERBS)]
            words = verb.format(folder=f"{folder}/{number}").split()
            Path(folder, str(number)).mkdir()
            if verb not in took:
                took[verb] = min(run(words, None)[1], LONGEST)
            delay = chance.uniform(0.0, EARLY if number % 3 == 0 else took[verb])
            done, _ = run(words, delay)
            rows.append({"verb": verb.format(folder="FOLDER"), "delay_s": delay, "outcome": outcome(done),
                         "last_line": done.stderr.strip().rpartition("\n")[2]})  # fmt: skip
    return rows


def page(record: kept.Record) -> str:
    """The outcomes, and by verb."""
    total = collections.Counter(row["outcome"] for row in record["rows"])
    names = [name for name, _ in total.most_common()]
    lines = [f"| verb | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for verb in dict.fromkeys(row["verb"] for row in record["rows"]):
        counts = collections.Counter(row["outcome"] for row in record["rows"] if row["verb"] == verb)
        lines.append(f"| `{verb}` | {' | '.join(str(counts[name]) for name in names)} |")
    lines.append(f"| all | {' | '.join(str(total[name]) for name in names)} |")
    return "\n".join([*kept.heading("Interrupts", record), f"{len(record['rows'])} signals.", "", *lines, ""])


def main() -> None:
    """Fires the signals and keeps the outcomes."""
    parser = kept.options(__doc__, "interrupts")
    parser.add_argument("--signals", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    record = kept.begin(asked)
    record["rows"] = fire(asked.signals, asked.seed)
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
