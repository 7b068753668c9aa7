"""Causes of slow rows of a host's own memory, and of what a service or drive counts a second."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise.checking.cause import Cause
from lanewise.checking.side_by_side import COUNTS, HOST_MEMORY
from lanewise.checking.symptom import RowSymptom, value_text

_MEMORY_STEP = "sudo dmidecode -t memory | grep -E 'Locator|Size|Speed': which slots are empty; numactl -H"
_NODE = re.compile(r"host\d*:\d")
# Names of rows that are of one program at two times: all words but these are alike.
_WHEN = re.compile(r"\b(?:before|after|now|then|old|new|earlier|later|first|second|today|was|is|ago)\b", re.IGNORECASE)


def slow_memory(symptom: RowSymptom) -> Iterator[Cause]:
    """Fewer channels or a lower clock, memory of another node, or the program that reads it."""
    row = symptom.row
    if row.path != HOST_MEMORY or row.metric != "goodput":
        return
    better = [other for other in symptom.better_rates() if _NODE.search(other.flow) or other.flow == row.flow]
    evidence = f"{_name(better[0].scenario, better[0].flow)} reached {value_text(better[0])}" if better else ""
    what = "memory channels: a module is missing or not trained, modules are unevenly placed, or run at a lower clock"
    channels = Cause(("memory",), what, _MEMORY_STEP, evidence=evidence)
    what = "the program: its version, threads, size of a block (a small one stays in a cache) or kind of stores"
    step = "compare STREAM with arrays of four times the caches, one thread a core: OMP_PROC_BIND=spread ./stream"
    program = Cause(("software",), what, step, evidence=evidence)
    same = better and _without_time(row.scenario) == _without_time(better[0].scenario)
    yield from (channels, program) if same or _NODE.search(row.flow) else (program, channels)


def slow_service(symptom: RowSymptom) -> Iterator[Cause]:
    """What is counted a second, compared with another way of doing the same."""
    row = symptom.row
    better = [other for other in symptom.better_rates() if other.flow == row.flow]
    if row.metric != COUNTS or row.settings.get("bytes") or not better:
        return
    evidence = f"'{better[0].scenario}' reached {value_text(better[0])}"
    what = f"the software: '{row.scenario}' spends its time on what '{better[0].scenario}' does not do"
    step = "top -H, perf top and nvidia-smi dmon while it runs: which core, lock or copy is busy"
    yield Cause(("software",), what, step, evidence=evidence)
    if "gpu" in row.flow:
        what = "the link: more data crosses it than the other way of working needs"
        yield Cause(("link",), what, "nvidia-smi dmon -s t while it runs: GB/s of each GPU's link")


def _name(scenario: str, flow: str) -> str:
    return f"'{scenario}'" if scenario != flow else flow


def _without_time(name: str) -> list[str]:
    return _WHEN.sub("", name).split()


MEMORY_CAUSES = (slow_memory, slow_service)
