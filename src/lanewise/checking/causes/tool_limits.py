"""Tools that carry less than the path because of how they work: known from their own documents."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lanewise.checking.cause import Cause
from lanewise.checking.references.texts import of_plain_text, words_of
from lanewise.checking.symptom import RowSymptom


@dataclass(frozen=True, slots=True)
class _ToolLimit:
    """A tool by its name on paths of one kind, what limits it, the key of that cause, and from what rate (B/s) on."""

    name: re.Pattern[str]
    path: str
    key: str
    what: str
    step: str
    least: float = 0.0


def _limit(name: str, path: str, key: str, what: str, step: str, least: float = 0.0) -> _ToolLimit:
    return _ToolLimit(re.compile(rf"(?<![\w/.-])(?:{name})(?![\w])", re.IGNORECASE), path, key, what, step, least)


_LIMITS = (
    # Release notes of iperf3 3.16 (streams in threads of their own); fasterdata.es.net, "iperf3 at 40GE and above".
    _limit(r"iperf3", "network", "software", "iperf3 before 3.16 runs all its streams in one thread, on one core",
           "iperf3 --version; several iperf3 at once on ports of their own, or iperf2 -P 8", 20e9 / 8),
    # dd(1): one block is read, then written, before the next.
    _limit(r"dd", "storage", "requests", "{tool} has one request in flight at a time",
           "fio --direct=1 --bs=1M --iodepth=32 on the same file or device"),
    # ssh has one cipher stream a connection, on one core (psc.edu, HPN-SSH).
    _limit(r"scp|sftp|sshfs|rsync", "network", "software", "{tool} encrypts and copies in one stream, on one core",
           "iperf3 between the same hosts; several copies at once; a faster cipher (aes128-gcm@openssh.com)"),
)  # fmt: skip


def tool_limits(symptom: RowSymptom) -> Iterator[Cause]:
    """The limit of the tool that a slow row names, on a path that should carry more than it does."""
    row, expected = symptom.row, symptom.result.expected.value or math.inf
    if "least" in symptom.result.expected.limit:
        return  # less than any device of its kind carries, by whatever tool
    text = words_of(row) if of_plain_text(row) else row.scenario
    faster = () if of_plain_text(row) else symptom.better(same_flow=True)  # by the same tool: it is not its limit
    for limit in _LIMITS:
        found = limit.name.search(text) if limit.path == row.path and expected >= limit.least else None
        if found is not None and not any(limit.name.search(other.scenario) for other in faster):
            what = limit.what.format(tool=found[0])
            # That a tool has a limit does not say that this rate is it.
            yield Cause((limit.key,), what, limit.step, evidence=f"'{found[0]}' is named", inconclusive=True)
