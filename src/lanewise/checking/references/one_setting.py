"""References of rows typed in that differ from another one of their path in one setting alone: it is the evidence."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from lanewise.checking.references.drives import is_disk
from lanewise.checking.references.parts import Reference, best_of, of_another_row
from lanewise.checking.symptom import line_of
from lanewise.results.observation import Observation

# With more threads a path or a program is not slower; half leaves room for threads that wait for each other, as for
# requests in flight (`paths._OF_FEWER`).
_OF_FEWER = 0.5
# As for other rows of one path (TOLERANCES).
_OF_OTHER = 0.75
# Of many rows of one path the fastest say as much.
_MOST_LIKE = 100
# Words of a key that say how much is asked for, in which size, of how many, or which time it is: other work.
_AMOUNT = re.compile(
    r"bytes|sizes?|blocks?|bs|len(?:gth)?|batch(?:es)?|depth|iodepth|qd|queues?|context|ctx|isl|osl|inputs?|outputs?|"
    r"prompts?|tokens|qps|rate|load|n|num\w*|count|(?:io)?jobs?|clients?|users?|connections?|streams?|flows?|requests?|"
    r"concurrency|nodes?|gpus?|cards?|drives?|disks?|hosts?|ranks?|tp|pp|dp|ep|proc\w*|workers?|replicas?|osds?|files?|"
    r"rails?|nics?|hcas?|ports?|adapters?|interfaces?|distance|runs?|repeat\w*|tests?|trial|iter\w*|seed|time|duration|"
    r"seconds|day|year|layers?|dim|hidden|params|bits|version|attempts?|try|pass|round|step|epoch|hour|minute|month|date|"
    r"index|id|pid|offset|position|percent\w*|pct|ratio|mix|level|quality|beams?|width|height|resolution|fps|sparsity|util\w*|"
    r"parallel\w*|shards?|world|instances?|devices?|sockets?|cores?|v?cpus?|dimms?"
)
_METHOD = ("p2p", "engine", "mode", "host memory", "NUMA node", "device", "note", "slot", "flows", "tool")
# A rate of each of them falls with their number on every machine.
PER_ONE = re.compile(r"\b(?:per|each|every|avg|average|mean)\b|/ ?(?:thread|core|job|stream)", re.IGNORECASE)


def one_setting(row: Observation, other: Observation) -> str:
    """The key of the only setting in which two rows typed in differ, if it may be why one is slow; empty if none."""
    if row.how.get("tool") != "typed in" or row.settings.keys() != other.settings.keys() or not _one_path(row, other):
        return ""
    keys = [key for key, value in row.settings.items() if other.settings[key] != value]
    key = keys[0] if len(keys) == 1 else ""
    if key == "threads":
        alone = PER_ONE.search(f"{row.scenario} {row.how.get('note', '')}") is None
        return key if alone and row.settings[key] > other.settings[key] and not is_disk(row) else ""
    return "" if is_amount(key) else key


def is_amount(key: str) -> bool:
    """Whether a key says how much is asked for, or which one or which time it is, and so is no setting."""
    return any(map(_AMOUNT.fullmatch, key.lower().split("_")))


def better_by_one_setting(row: Observation, rows: Sequence[Observation]) -> Observation | None:
    """The fastest row that differs from this one in one setting alone; None if none is faster."""
    if not _typed_with_settings(row):
        return None
    return best_of(each for each in rows if (each.value or 0.0) > (row.value or 0.0) and one_setting(row, each))


class OneSetting:
    """The rows of one check that have settings, by the path and name that they must share."""

    def __init__(self, rows: Sequence[Observation]) -> None:
        self._paths: dict[tuple[object, ...], list[Observation]] = defaultdict(list)
        for row in rows:
            if _typed_with_settings(row):
                self._paths[_path(row)].append(row)
        for path, like in self._paths.items():
            self._paths[path] = sorted(like, key=lambda each: -(each.value or 0.0))[:_MOST_LIKE]

    def of(self, row: Observation) -> Iterator[Reference]:
        """The fastest row of the same path under another setting; of more threads one with fewer."""
        best = better_by_one_setting(row, self._paths.get(_path(row), ()))
        if best is not None and best.value:
            key = one_setting(row, best)
            share = _OF_FEWER if key == "threads" else _OF_OTHER
            yield of_another_row(best.value, share, f"the same with {key}={best.settings[key]}")


def _typed_with_settings(row: Observation) -> bool:
    return bool(row.settings) and row.how.get("tool") == "typed in"


def _path(row: Observation) -> tuple[object, ...]:
    return row.metric, row.path, row.flow, row.scenario, line_of(row)


def _one_path(row: Observation, other: Observation) -> bool:
    return _path(row) == _path(other) and all(row.how.get(key) == other.how.get(key) for key in _METHOD)
