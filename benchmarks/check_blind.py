"""What `lanewise check` says of the blind questions in both forms: typed in as rows, and as they were posted.

PYTHONPATH=tests .venv/bin/python benchmarks/check_blind.py [--half 0|1] [--json FILE] [EXPECTED ...]

EXPECTED are files of benchmarks/runs (default: the third to sixth blind batch). Questions are split into two halves by
the hash of the name; with --half only those of that half that are wrong are listed, and both halves are counted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from check_threads import score
from checking.thread_list import QuestionThread

RUNS = Path(__file__).parent / "runs"
DEFAULT = [path for batch in "3456" for path in sorted(RUNS.glob(f"2026-11-27-check-blind-{batch}-*-expected.json"))]
FORMS = ("rows", "posted")


def half(name: str) -> int:
    """Which half a question belongs to, by the hash of its name."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2


def scores(paths: list[Path]) -> list[dict[str, Any]]:
    """What `check` says of each question of the files, in each form that it has."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            for name, question in json.loads(path.read_text()).items():
                texts = {form: (question.get(form) or "").rstrip("\n") + "\n" for form in FORMS}
                for form in (form for form in FORMS if texts[form].strip()):
                    thread = QuestionThread(
                        name, texts[form], question.get("system") or "", tuple(question["verdict"]),
                        tuple(question["causes"]), "",
                    )  # fmt: skip
                    found.append(score(thread, Path(folder)) | {"form": form, "half": half(name)})
    return found


def summary(results: list[dict[str, Any]]) -> str:
    """Verdicts right, healthy ones called slow, slow ones called slow, and causes, in words."""
    healthy = [result for result in results if "ok" in result["expected"]]
    slow = [result for result in results if result["expected"] == ["slow"]]
    caused = [result for result in results if result["has a cause"]]
    right, named = sum(bool(one["right"]) for one in results), sum(bool(one["cause named"]) for one in caused)
    alarms = sum(one["verdict"] == "slow" and "slow" not in one["expected"] for one in healthy)
    called = sum(one["verdict"] == "slow" for one in slow)
    return (
        f"verdict right {right} of {len(results)}, healthy called slow {alarms} of {len(healthy)}, "
        f"slow called slow {called} of {len(slow)}, cause named {named} of {len(caused)}"
    )


def main() -> None:
    """List the wrong ones, and count both halves in both forms."""
    parser = argparse.ArgumentParser(description="check on the blind questions, typed in and as posted")
    parser.add_argument("expected", nargs="*", type=Path)
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = scores(options.expected or DEFAULT)
    for one in results:
        if not one["right"] and options.half in (None, one["half"]):
            print(f"{one['form']:6} {one['thread']:34} {one['verdict']:10} of {one['expected']} {one['causes']}")
    for form in FORMS:
        for number in (0, 1):
            part = [one for one in results if one["form"] == form and one["half"] == number]
            print(f"{form}, half {number}: {summary(part)}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
