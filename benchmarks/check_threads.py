"""How many real questions `lanewise check` answers right: verdicts and causes, on the learnt and the held-out third.

PYTHONPATH=tests .venv/bin/python benchmarks/check_threads.py [--learn] [--folder FOLDER] [--json FILE]
    [--questions] [--halves]

With --questions the sentence in which each question typed in as rows is kept takes the place of the rows.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

from checking.thread_list import FOLDER, QuestionThread, first_causes, questions, threads, verdict_of

from lanewise.errors import LanewiseError


def score(thread: QuestionThread, folder: Path) -> dict[str, object]:
    """What `check` says of a thread, and whether that is right."""
    try:
        checkup = thread.check(folder)
        verdict, causes = verdict_of(checkup), first_causes(checkup)
    except LanewiseError as error:
        verdict, causes = f"not read: {error.cause}"[:60], []
    has_cause = "slow" in thread.verdicts[:1] and bool(thread.causes)
    return {
        "thread": thread.name, "held out": thread.held_out, "verdict": verdict, "right": verdict in thread.verdicts,
        "expected": list(thread.verdicts), "causes": causes, "has a cause": has_cause,
        "cause named": has_cause and bool(set(causes) & set(thread.causes)),
    }  # fmt: skip


def part(result: dict[str, object], halves: bool) -> int:
    """0 for a question that rules were written on, 1 for one held out: a third, or with `halves` one half."""
    digest = hashlib.sha256(str(result["thread"]).encode()).hexdigest()
    return int(digest, 16) % 2 if halves else int(bool(result["held out"]))


def count(name: str, results: list[dict[str, object]]) -> None:
    """Print how many verdicts and causes of one part are right, and how many healthy questions are called slow."""
    caused = [result for result in results if result["has a cause"]]
    called = [result for result in caused if result["verdict"] == "slow"]
    healthy = [result for result in results if result["expected"][:1] == ["ok"]]  # type: ignore[index]
    right, named = (sum(bool(result[key]) for result in results) for key in ("right", "cause named"))
    print(f"{name}: verdict right {right} of {len(results)}, cause among the first two {named} of {len(caused)}")
    text = f"cause named {sum(bool(result['cause named']) for result in called)} of {len(called)} called slow"
    print(f"    {text}; {sum(result['verdict'] == 'slow' for result in healthy)} of {len(healthy)} healthy called slow")


def main(arguments: list[str]) -> None:
    """Print the table and both scores; with --learn the held-out third is counted but not shown."""
    source = Path(arguments[arguments.index("--folder") + 1]) if "--folder" in arguments else FOLDER
    with tempfile.TemporaryDirectory() as folder:
        kept = questions(source) if "--questions" in arguments else threads(source)
        results = [score(thread, Path(folder)) for thread in kept]
    for result in results:
        if not (result["held out"] and "--learn" in arguments):
            mark = "  " if result["right"] else "X "
            cause = "" if not result["has a cause"] else " cause named" if result["cause named"] else " cause MISSED"
            text = f"{result['verdict']:10} of {result['expected']} {result['causes']}{cause}"
            print(f"{mark}{result['thread']:32} {text}")
    names = ("even half", "odd half") if "--halves" in arguments else ("learnt", "held out")
    for held_out, name in enumerate(names):
        count(name, [result for result in results if part(result, "--halves" in arguments) == held_out])
    if "--json" in arguments:
        Path(arguments[arguments.index("--json") + 1]).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
