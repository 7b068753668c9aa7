"""Questions typed in again by others: how many verdicts are right, by file of tests/checking/typed_again.

    PYTHONPATH=tests .venv/bin/python benchmarks/check_typed_again.py

Run by the Python of another checkout it judges by that one's program.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path

from checking.test_typed_again import questions, verdict


def main() -> None:
    """Print each file with the number of its questions and of right verdicts, and the wrong ones."""
    found: dict[str, list[tuple[str, str, list[str]]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for typist, question in questions():
            answers = found[typist]
            answers.append((question["question"], verdict(question["rows"], Path(folder)), question["verdicts"]))
    for typist, answers in found.items():
        wrong = [answer for answer in answers if answer[1] not in answer[2]]
        refused = sum(got == "refused" for _, got, _ in wrong)
        print(f"{typist}: {len(answers) - len(wrong)} of {len(answers)}, refused {refused}")
        for name, got, right in wrong:
            print(f"    {name}: {got}, not {' or '.join(right)}")


if __name__ == "__main__":
    main()
