"""One size of a sweep that is slow while those around it are not: a disturbance, no state of the path."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace

from lanewise.checking.verdict import PathResult, Verdict

_PATHS = ("host to device", "device to host", "peer", "peer, staged")
# How many sizes on either side must be fine.
_AROUND = 2
NOTE = "this size alone is slow, those around it are fine: a copy was disturbed; measure that size again"


def without_lone_dips(results: Sequence[PathResult]) -> list[PathResult]:
    """The results in their order, a slow copy among sizes that are fine as unknown.

    A link, a setting or a kind of memory slows all large copies; of 99 copies of an idle H100 by bandwidthTest one was
    at 62 % (benchmarks/runs/2026-11-27-four-gpus-and-faults).
    """
    sweeps: dict[Hashable, list[int]] = defaultdict(list)
    for at, result in enumerate(results):
        row = result.row
        if row.path in _PATHS and row.metric == "goodput" and "bytes" in row.settings:
            others = {key: value for key, value in row.settings.items() if key != "bytes"}
            sweeps[row.scenario, row.flow, *row.how.items(), *sorted(others.items())].append(at)
    judged = list(results)
    for sweep in sweeps.values():
        sweep.sort(key=lambda at: results[at].row.settings["bytes"])
        for place in range(_AROUND, len(sweep) - _AROUND):
            around = [*sweep[place - _AROUND : place], *sweep[place + 1 : place + 1 + _AROUND]]
            dip = results[sweep[place]]
            if dip.verdict is Verdict.SLOW and all(results[at].verdict is Verdict.OK for at in around):
                judged[sweep[place]] = replace(dip, verdict=Verdict.UNKNOWN, note=NOTE)
    return judged
