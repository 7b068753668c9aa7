"""What stalls of a host add to the latencies of a service that is simulated without them.

A host that issues many queries a second pauses now and then; a query that meets a pause waits for the rest of it. Of
pauses without memory that rest is exponential, and by PASTA as large a share of queries meets one as of the time is
paused. Which hosts pause, and why, is not published: figures of one are those of published hosts.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lanewise.serving.load import ServiceLoad

# From so many queries/s on hosts stall; the share of queries that meet a stall, and the mean of their waits in s. With
# these p97, p99 and p99.9 of ResNet-50 services of MLPerf v2.0 of other submitters than NVIDIA come nearest: 7 % and
# 3 ms to 12 % and 2 ms come as near (benchmarks/host_stalls.py, runs/2026-11-26-host-stalls.md).
STALLING, STALLED_SHARE, STALL = 100e3, 0.08, 2.5e-3
_POINTS, _HALVINGS = 400, 40


def stalls(load: ServiceLoad, rate: float) -> bool:
    """Whether stalls count for a service at that rate (queries/s): one whose batches form as a harness says."""
    return load.policy is not None and load.scenario == "server" and rate >= STALLING


def with_stalls(
    percentile: Callable[[float], float], share: float, stalled: float = STALLED_SHARE, stall: float = STALL
) -> float:
    """The latency in s below which a `share` of queries is, from the `percentile`s in s of a service without stalls.

    A share `stalled` of the queries, whichever they are, waits `stall` s longer on average.
    """
    latencies = [percentile((point + 0.5) / _POINTS) for point in range(_POINTS)]

    def later(limit: float) -> float:
        parts = (1.0 if each > limit else stalled * math.exp((each - limit) / stall) for each in latencies)
        return sum(parts) / _POINTS

    low, high = latencies[0], latencies[-1] + stall * max(0.0, math.log(stalled / (1.0 - share)))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if later(middle) > 1.0 - share else (low, middle)
    return high
