"""Which causes slow questions have, by the kind of their path: the counts in `checking/causes/commonest.py`.

PYTHONPATH=tests .venv/bin/python benchmarks/commonest_causes.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from checking.thread_list import FOLDER, QuestionThread, threads

from lanewise.checking.causes.commonest import kind_of_path
from lanewise.checking.checkup import Checkup
from lanewise.checking.verdict import Verdict
from lanewise.errors import LanewiseError
from lanewise.results.observation import Observation


def kind_of_question(checkup: Checkup) -> str:
    """The kind of path of most rows of the first finding if a row is slow, else of all rows; empty for other kinds."""
    rows: list[Observation] = [*(result.row for result in checkup.results), *checkup.left_aside]
    if checkup.count(Verdict.SLOW) and checkup.findings[0].results:
        rows = [result.row for result in checkup.findings[0].results]
    kinds = Counter(kind_of_path(row, "") for row in rows)
    return kinds.most_common(1)[0][0] if kinds else ""


def counts(kept: list[QuestionThread]) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """How many slow questions with a known cause are of each kind, and how many of them have each cause."""
    questions: Counter[str] = Counter()
    causes: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as folder:
        for thread in kept:
            try:
                kind = kind_of_question(thread.check(Path(folder)))
            except LanewiseError:
                continue
            questions[kind] += 1
            causes[kind].update(set(thread.causes))
            causes[kind]["peers or staged"] += bool({"peers", "staged"} & set(thread.causes))
    return questions, causes


def main(arguments: list[str]) -> None:
    """Print both thirds and the rest, kind by kind."""
    folder = Path(arguments[0]) if arguments else FOLDER
    slow = [thread for thread in threads(folder) if thread.verdicts[:1] == ("slow",) and thread.causes]
    for name, held_out in (("learnt", False), ("held out", True)):
        questions, causes = counts([thread for thread in slow if thread.held_out is held_out])
        print(name)
        for kind, count in questions.most_common():
            shown = ", ".join(f"{cause} {number}" for cause, number in causes[kind].most_common(6))
            print(f"    {kind or 'other'}: {count} questions: {shown}")


if __name__ == "__main__":
    main(sys.argv[1:])
