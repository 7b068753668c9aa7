"""Latencies where no model predicts them: compared with the same copy in other rows, and of other GPUs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from lanewise.checking.expectation import expectation
from lanewise.checking.symptom import row_devices
from lanewise.checking.tolerances import TOLERANCES
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.results.observation import Observation

# A time of one call, of a copy and of a collective.
TIMES = ("latency", "time")
# Programs time the same copy differently, up to this many times. A socket link on the way adds less than a
# microsecond to the one or two of a copy to host memory.
_LATE = 3.0
# The time of one collective of one size that somebody typed in twice: as its rate is (`collectives`, 0.75).
_LATE_COLLECTIVE = 1 / 0.75
# A time of so many seconds is of a piece of work, not of one access.
_NO_LATENCY = 0.1
# Of so many other GPUs the median says what such a copy takes.
_LEAST_OTHERS = 2


def late(result: PathResult, between: Sequence[Observation], rows: Sequence[Observation]) -> PathResult:
    """The result of a latency, slow if it is far above that of the same copy in another row or of other GPUs.

    `between`: those of all `rows` that have the same ends.
    """
    row = result.row
    best, limit = _same_copy(row, between), "the same copy in another row"
    whole = row.metric == "time" or (row.value or 0.0) >= _NO_LATENCY
    late_by = _LATE_COLLECTIVE if whole and row.how.get("tool") == "typed in" else _LATE
    if not best or row.value is None or row.value <= late_by * best:
        best, limit, late_by = _of_other_gpus(row, rows), "the same copy of the other GPUs", _LATE
    if not best or row.value is None or row.value <= late_by * best:
        return result
    expected = expectation(row, basis="same path", value=best, limit=limit).expected
    return PathResult(row, expected, TOLERANCES["same path"], Verdict.SLOW, None, late_by * best)


def _same_copy(row: Observation, rows: Sequence[Observation]) -> float:
    """The least latency of `rows` between the same ends, for P2P also that through host memory; 0 if none."""
    alike = [each for each in rows if each.metric == row.metric]
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
        if each.path != row.path or each.metric != row.metric or each.settings != row.settings or not each.value:
            continue
        if (pair := row_devices(each)) != row_devices(row) and each.how.get("tool") == row.how.get("tool"):
            others[pair] = min(each.value, others.get(pair, each.value))
    return statistics.median(others.values()) if len(others) >= _LEAST_OTHERS else 0.0


def _method(row: Observation) -> tuple[str | None, ...]:
    """How a copy went: the flows with their marks (read, sm), and P2P on or off."""
    return row.how.get("flows"), row.how.get("p2p")
