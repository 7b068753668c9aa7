"""How many pasted outputs of tools `lanewise check` answers right; those held out are counted and not shown.

PYTHONPATH=tests .venv/bin/python benchmarks/check_pasted.py [--json FILE]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from checking.pasted_cases import FOLDER, HELD, PastedCase, pasted_cases


def score(case: PastedCase) -> dict[str, object]:
    """What `check` says of a text, and whether that is right."""
    verdict, causes = case.answer()
    return {
        "text": case.path.stem, "verdict": verdict, "right": verdict in case.verdicts, "causes": causes,
        "has a cause": case.has_a_cause, "healthy": case.verdicts[0] == "ok",
        "cause as written": case.has_a_cause and case.names_a_cause(causes, translated=False),
        "cause named": case.has_a_cause and case.names_a_cause(causes),
    }  # fmt: skip


def count(name: str, results: list[dict[str, object]]) -> None:
    """Print how many verdicts and causes are right, and how many healthy texts are called slow or faulty."""

    def total(key: str) -> int:
        return sum(bool(result[key]) for result in results)

    slow = sum(bool(result["healthy"]) and result["verdict"] in ("slow", "fault") for result in results)
    print(f"{name}: verdict right {total('right')} of {len(results)}, healthy called slow {slow} of {total('healthy')}")
    named, written = total("cause named"), total("cause as written")
    print(f"    cause among the first two {named} of {total('has a cause')}, {written} by the words as written")


def main(arguments: list[str]) -> None:
    """Print each open text and both scores."""
    opened, held = ([score(case) for case in pasted_cases(folder)] for folder in (FOLDER, HELD))
    for result in opened:
        wrong = "" if result["right"] else "X"
        missed = " cause MISSED" if result["has a cause"] and not result["cause named"] else ""
        print(f"{wrong:2}{result['text']:20} {result['verdict']} {result['causes']}{missed}")
    count("open", opened)
    count("held out", held)
    if "--json" in arguments:
        text = json.dumps(opened, indent=1) + "\n"
        Path(arguments[arguments.index("--json") + 1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
