"""Signals at random moments of five verbs: how each process ends, and whether anything finished is lost or left over.

    python benchmarks/interrupts.py [--signals 200] [--seed 1]

Each process gets one SIGINT, SIGTERM or SIGHUP after a random part of the time that the verb takes by itself. It should
end with `interrupted` and 128 + the signal's number, or finish as ever. Until Python has read a line of Lanewise the
signal is Python's own: it kills the process, or Ctrl-C shows a traceback of Python's start (its `site` module, and what
that loads), which is counted apart if the traceback names that module or the script that imports Lanewise and no file
of Lanewise; the record keeps it whole. So is a signal that kills the process while Python ends, when all is shown and
written. Finished and lost would be a sample in the file of --samples that is not in the run of -o, a study that was
followed by another and is not in the run, a load test with LoadGen's verdict and without a run or its JSON.
"""

from __future__ import annotations

import collections
import json
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
    "predict rack-16gpu --matrix goodput --json {folder}/matrix.json",
    "study run storage-fabric hop-budget --json {folder}/run.json -o {folder}/run.html",
    "measure host --what copy,read --threads 1 --bytes 16MiB --samples {folder}/samples.jsonl -o {folder}/run.json",
    "loadtest run --engine synthetic --qps 200 --seconds 0.5 --queries 10 --bound 1s --results {folder}/logs"
    " -o {folder}/run.json --json {folder}/result.json",
    "check -o {folder}/run.json --json {folder}/check.json",
)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LATER = 1.05  # of the time that a verb took: some signals come when all is written
EXPECTED = ("matrix.json", "run.json", "run.html", "samples.jsonl", "check.json", "result.json", "logs")
TRACEBACK = ("Traceback", "Exception ignored")
OURS = "/src/lanewise/"  # in the path of each file of Lanewise
START = ('File "<frozen site>"', f'File "{BINARY}"')  # Python's own start, and the script that imports Lanewise
STARTING = "traceback of Python's start"


def run(
    words: list[str], number: signal.Signals, delay: float | None
) -> tuple[subprocess.CompletedProcess[str], float]:
    """The process after its end, which a signal after `delay` seconds may hasten, and the seconds that it took."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [str(BINARY), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: [signal.signal(each, signal.SIG_DFL) for each in SIGNALS],
    )  # fmt: skip
    if delay is not None:
        time.sleep(delay)
        process.send_signal(number)
    stdout, stderr = process.communicate(timeout=300)
    done = subprocess.CompletedProcess(words, process.returncode, stdout, stderr)
    return done, time.perf_counter() - began


def outcome(done: subprocess.CompletedProcess[str], number: signal.Signals) -> str:
    """How a process ended, in a word."""
    if any(word in done.stderr for word in TRACEBACK):
        return "traceback" if OURS in done.stderr or not any(file in done.stderr for file in START) else STARTING
    if done.returncode == 128 + number and done.stderr.endswith("interrupted\n"):
        return "interrupted"
    if done.returncode == -number:
        return "killed before Lanewise began" if not done.stdout + done.stderr else "killed as Python ended"
    return "finished" if done.returncode in (0, 1, 3) else f"exit code {done.returncode}"


def lost(folder: Path, stderr: str) -> str:
    """What was finished and is not in the run; nothing if all is."""
    run, samples = folder / "run.json", folder / "samples.jsonl"
    data = json.loads(run.read_text()) if run.exists() else {}
    if samples.exists():
        lines = [json.loads(line) for line in samples.read_text().splitlines()]
        saved = sum(len(row["samples"]) for row in data.get("rows", ()))
        values = sum(line["value"] is not None for line in lines)
        return f"{values - saved} samples" if saved != values else ""
    named = [line for line in stderr.splitlines() if line in VERBS[1].split()]
    saved = len(data.get("studies", ()))
    if named and saved < len(named) - 1:
        return f"{len(named) - 1 - saved} studies"
    judged = any("result_validity" in log.read_text() for log in folder.glob("logs/logs/*/mlperf_log_detail.txt"))
    return "a load test" if judged and not (run.exists() and (folder / "result.json").exists()) else ""


def left_over(folder: Path) -> list[str]:
    """Files that nobody asked for, and files of ours that are not whole."""
    names = [path.name for path in folder.iterdir() if path.name not in EXPECTED]
    names += [path.name for path in folder.rglob("*.par*")]
    for path in folder.glob("*.json"):
        try:
            json.loads(path.read_text())
        except ValueError:
            names.append(f"half of {path.name}")
    return names


def fire(count: int, seed: int) -> list[kept.Record]:
    """Signals in turn over all verbs."""
    chance, rows = random.Random(seed), []
    with tempfile.TemporaryDirectory() as top:
        took: dict[str, float] = {}
        for place in range(count):
            verb, number = VERBS[place % len(VERBS)], chance.choice(SIGNALS)
            for name in ("cold", "warm") if verb not in took else ():
                folder = Path(top, f"{place}-{name}")
                folder.mkdir()
                took[verb] = run(verb.format(folder=folder).split(), number, None)[1]
            folder = Path(top, str(place))
            folder.mkdir()
            delay = chance.uniform(0.0, LATER * took[verb])
            done, _ = run(verb.format(folder=folder).split(), number, delay)
            rows.append({
                "verb": verb.format(folder="FOLDER"), "signal": number.name, "delay_s": delay, "of_s": took[verb],
                "outcome": outcome(done, number), "lost": lost(folder, done.stderr), "left_over": left_over(folder),
                "stderr": done.stderr if any(word in done.stderr for word in TRACEBACK) else done.stderr[-400:],
            })  # fmt: skip
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
    count = sum(bool(row["lost"]) for row in record["rows"]), sum(bool(row["left_over"]) for row in record["rows"])
    said = f"{len(record['rows'])} signals; {count[0]} with something finished lost, {count[1]} with a file left over."
    return "\n".join([*kept.heading("Interrupts", record), said, "", *lines, ""])


def main() -> None:
    """Fires the signals and keeps the outcomes."""
    parser = kept.options(__doc__, "interrupts")
    parser.add_argument("--signals", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    record = kept.begin(asked)
    record["rows"] = fire(asked.signals, asked.seed)
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
