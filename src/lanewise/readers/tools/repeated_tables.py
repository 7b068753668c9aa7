"""Several tables of one collective in a text: two versions, settings or pairs of hosts, told apart by what is above."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from lanewise import late_re as re
from lanewise.results.observation import Observation

IN_PLACE = " in place"
# How many lines above a table may name it, and how long a name may be.
_ABOVE, _LONGEST = 60, 60
# Lines of the tools themselves, and of NCCL's log.
_OWN = re.compile(r"^\s*#(?!#)|NCCL (?:INFO|WARN|version)|\bRank\s+\d+|\bbusbw\b")
# A name has a letter, or is a version.
_NAME = re.compile(r"[^\W\d_]|^v?\d+\.\d+\.\d+\b")
_FIGURE = re.compile(r"-?\d[\d.e+-]*")


def told_apart(tables: Sequence[tuple[Sequence[str], Sequence[Observation]]]) -> list[Observation]:
    """The rows of all tables; of one collective and ranks each table gets as its name what no other has above it."""
    kinds = Counter(kind for _, rows in tables for kind in {_kind(row) for row in rows})
    taken: set[tuple[object, str]] = set()
    named: list[Observation] = []
    for at, (labels, rows) in enumerate(tables, 1):
        several = [kind for kind in dict.fromkeys(map(_kind, rows)) if kinds[kind] > 1]
        label = next((each for each in labels if not any((kind, each) in taken for kind in several)), f"table {at}")
        taken |= {(kind, label) for kind in several}
        named += [
            replace(row, scenario=_named(row.scenario, label)) if kinds[_kind(row)] > 1 else row for row in rows
        ]  # fmt: skip
    return named


def labels_above(lines: Sequence[str], at: int) -> list[str]:
    """What a text may call the table whose heads are line `at` (from 0): lines above that no tool wrote, upwards."""
    above = [(line, line.strip(" `#*:>-|$=")) for line in reversed(lines[max(0, at - _ABOVE) : at])]
    return [
        words[-_LONGEST:] for line, words in above
        if len(words) > 1 and _NAME.search(words) and not _OWN.search(line) and not _is_row(words.split())
    ]  # fmt: skip


def _is_row(words: Sequence[str]) -> bool:
    """Whether the words of a line are a row of a table: a number first, and numbers most of them."""
    figures = [word for word in words if _FIGURE.fullmatch(word)]
    return len(figures) > 2 and len(figures) >= len(words) / 2 and words[0] == figures[0]


def _named(scenario: str, label: str) -> str:
    """'all_reduce in place' as 'all_reduce (after) in place'."""
    place = IN_PLACE if scenario.endswith(IN_PLACE) else ""
    return f"{scenario.removesuffix(IN_PLACE)} ({label}){place}"


def _kind(row: Observation) -> tuple[object, ...]:
    return row.scenario, row.flow, row.metric, tuple(sorted((k, v) for k, v in row.settings.items() if k != "bytes"))
