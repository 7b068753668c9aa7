"""Latencies where no model predicts them: compared with the same copy in other rows, and of other GPUs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from lanewise.checking.expectation import expectation
from lanewise.checking.tolerances import TOLERANCES
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.results.observation import Observation

# A time of one call, of a copy and of a collective.
TIMES = ("latency", "time")
# Programs time the same copy differently, up to this many times. A socket link on the way adds less than a
# microsecond to the one or two of a copy to host memory.
_LATE = 3.0
# Of so many other GPUs the median says what such a copy takes.
_LEAST_OTHERS = 2


def late(result: PathResult, rows: Sequence[Observation]) -> PathResult:
    """The result of a latency, slow if it is far above that of the same copy in another row or of other GPUs."""
    row = result.row
    best, limit = _same_copy(row, rows), "the same copy in another row"
    if not best or row.value is None or row.value <= _LATE * best:
        best, limit = _of_other_gpus(row, rows), "the same copy of the other GPUs"
    if not best or row.value is None or row.value <= _LATE * best:
        return result
    expected = expectation(row, basis="same path", value=best, limit=limit).expected
    return PathResult(row, expected, TOLERANCES["same path"], Verdict.SLOW, None, _LATE * best)


def _same_copy(row: Observation, rows: Sequence[Observation]) -> float:
    """The least latency between the same ends, for P2P also that through host memory; 0 if none."""
    alike = [each for each in rows if each.metric == row.metric and ends(each) == ends(row)]
    # Reads cross the way twice, so that they are compared with reads.
    return min(
        (each.value for each in alike
         if each.value and each.settings == row.settings and (_method(each) == _method(row)
         or (row.how.get("p2p"), each.how.get("p2p")) == ("on", "off"))),
        default=0.0,
    )  # fmt: skip


def _of_other_gpus(row: Observation, rows: Sequence[Observation]) -> float:
    """The median latency of the same copy between host memory and other GPUs, by the same program; 0 for too few."""
    if row.path not in ("host to device", "device to host"):
        return 0.0
    others: dict[frozenset[str], float] = {}
    for each in rows:
        same = each.metric == row.metric and each.path == row.path and each.settings == row.settings
        if same and each.value and ends(each) != ends(row) and each.how.get("tool") == row.how.get("tool"):
            others[ends(each)] = min(each.value, others.get(ends(each), each.value))
    return statistics.median(others.values()) if len(others) >= _LEAST_OTHERS else 0.0


def _method(row: Observation) -> tuple[str | None, ...]:
    """How a copy went: the flows with their marks (read, sm), and P2P on or off."""
    return row.how.get("flows"), row.how.get("p2p")


def ends(row: Observation) -> frozenset[str]:
    """The ends of a row's own flow or flows."""
    return frozenset(end.strip() for end in row.flow.replace("->", ",").split(","))
