"""Kept questions in other words, and at a share of their rates: how many verdicts of `lanewise check` change.

    PYTHONPATH=tests .venv/bin/python benchmarks/check_other_words.py

Run by the Python of another checkout it judges by that one's program.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from checking.test_other_words import REWRITINGS, typed_questions
from checking.thread_list import QuestionThread, verdict_of

from lanewise.errors import LanewiseError

# What a row with such a name says is wanted, not measured.
_WANTED = re.compile(r"theor|rated|expected|data sheet|attain|nominal|spec|line rate|wanted|target", re.IGNORECASE)
_VALUE = re.compile(r"\s*~?([\d.,]+)\s*(.*)")
_SHARES = (0.5, 0.25)


def judged(thread: QuestionThread, text: dict[str, Any] | None, folder: Path) -> str:
    """The verdict on a question, by its own rows or by those of `text`; 'refused' if they cannot be read."""
    rows = thread.rows if text is None else yaml.safe_dump(text, sort_keys=False, allow_unicode=True)
    try:
        return verdict_of(replace(thread, rows=rows).check(folder))
    except LanewiseError:
        return "refused"


def at_share(text: dict[str, Any], share: float) -> dict[str, Any] | None:
    """The rows with that share of each measured rate, times longer by it; None if a value is no plain number."""
    rows = []
    for row in text["rows"]:
        match = _VALUE.fullmatch(str(row["value"]))
        if match is None or not re.fullmatch(r"\d+(?:\.\d+)?", match[1]):
            return None
        factor = 1 / share if re.fullmatch(r"[mnuµ]?s(?:ec)?", match[2].strip()) else share
        wanted = _WANTED.search(str(row.get("path", "")))
        rows.append(row if wanted else {**row, "value": f"{float(match[1]) * factor:.6g} {match[2]}"})
    return {**text, "rows": rows}


def main() -> None:
    """Print each rewriting with the questions that it changes and the verdicts that differ, then the shares."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        questions = [(thread, text, judged(thread, None, folder)) for thread, text in typed_questions()]
        questions = [(thread, text, verdict) for thread, text, verdict in questions if verdict != "refused"]
        print(f"{len(questions)} questions; rewriting: changed by it, other verdict, of these refused")
        for what, rewriting in REWRITINGS.items():
            new = [(thread, rewriting(text), verdict) for thread, text, verdict in questions if rewriting(text) != text]
            after = [(judged(thread, text, folder), verdict) for thread, text, verdict in new]
            differing = [got for got, verdict in after if got != verdict]
            print(f"{what}: {len(new)}, {len(differing)}, {differing.count('refused')}")
        healthy = [(thread, text) for thread, text, verdict in questions if verdict == thread.verdicts[0] == "ok"]
        for share in _SHARES:
            less = [(thread, scaled) for thread, text in healthy if (scaled := at_share(text, share)) is not None]
            counts = Counter(judged(thread, text, folder) for thread, text in less)
            print(f"{len(less)} healthy questions at {share} of their rates: {dict(counts)}")


if __name__ == "__main__":
    main()
