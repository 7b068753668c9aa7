"""One size of a sweep that is slow while those around it are not: a disturbance, no state of the path."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace

from lanewise.checking.references.latencies import TIMES
from lanewise.checking.verdict import PathResult, Verdict

_PATHS = ("host to device", "device to host", "peer", "peer, staged")
# How many sizes on either side must be fine.
_AROUND = 2
NOTE = "this size alone is slow, those around it are fine: a copy was disturbed; measure that size again"
_LONGER = "longer messages of the same sweep took half the time or less: a call was disturbed; measure that size again"


def without_lone_dips(results: Sequence[PathResult]) -> list[PathResult]:
    """The results in their order, a slow copy among sizes that are fine as unknown.

    A link, a setting or a kind of memory slows all large copies; of 99 copies of an idle H100 by bandwidthTest one was
    at 62 % (benchmarks/runs/2026-11-27-four-gpus-and-faults). Of messages whose time is known longer ones take longer.
    """
    judged = list(results)
    for sweep in _sweeps(results):
        for place, at in enumerate(sweep):
            shorter = [results[each] for each in sweep[max(0, place - _AROUND) : place]]
            longer = [results[each] for each in sweep[place + 1 : place + 1 + _AROUND]]
            note = _why_disturbed(results[at], shorter, longer)
            if note and results[at].verdict is Verdict.SLOW:
                judged[at] = replace(results[at], verdict=Verdict.UNKNOWN, note=note)
    return judged


def _why_disturbed(dip: PathResult, shorter: Sequence[PathResult], longer: Sequence[PathResult]) -> str:
    """What shows that one size was disturbed, by the sizes next to it; empty if nothing does."""
    if dip.row.metric in TIMES:
        half = (dip.row.value or 0.0) / 2
        return _LONGER if len(longer) == _AROUND and all((each.row.value or 0.0) <= half for each in longer) else ""
    around = [*shorter, *longer]
    return NOTE if len(around) == 2 * _AROUND and all(each.verdict is Verdict.OK for each in around) else ""


def _sweeps(results: Sequence[PathResult]) -> list[list[int]]:
    """The places of rows that differ in their size alone, by size: rates of copies, and times."""
    sweeps: dict[Hashable, list[int]] = defaultdict(list)
    for at, result in enumerate(results):
        row = result.row
        is_copy = row.path in _PATHS and row.metric == "goodput"
        if (is_copy or row.metric in TIMES) and "bytes" in row.settings:
            others = {key: value for key, value in row.settings.items() if key != "bytes"}
            sweeps[row.metric, row.scenario, row.flow, *row.how.items(), *sorted(others.items())].append(at)
    return [sorted(sweep, key=lambda at: results[at].row.settings["bytes"]) for sweep in sweeps.values()]
