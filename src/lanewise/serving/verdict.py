"""MLPerf's verdict on a run: does the percentile keep its bound, and do enough queries show it?

After LoadGen (mlcommons/inference, loadgen/early_stopping.cc and results.cc at b66003e): a query is late if its
latency is greater than the bound, so an answer exactly on the bound is in time, for the percentile and for early
stopping alike. LoadGen compares whole nanoseconds; who counts late queries here, such as the simulation, compares
seconds as doubles, and the verdict takes that count as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from lanewise.errors import InputError

CONFIDENCE = 0.99
# The percentile that each scenario is judged by; Offline is judged by its throughput alone.
# https://github.com/mlcommons/inference_policies/blob/master/inference_rules.adoc, "Scenarios".
PERCENTILES = {"server": 0.99, "singlestream": 0.90, "multistream": 0.99}


@dataclass(frozen=True, slots=True)
class LatencyVerdict:
    """Valid or not, with a sentence that says why not; `allowed` is the most late queries that pass of `queries`.

    `allowed` is -1 where not even a run without a late query would pass.
    """

    valid: bool
    reason: str
    late: int
    queries: int
    allowed: int


def judge(
    queries: int, late: int, *, percentile: float = 0.99, confidence: float = CONFIDENCE, duration: float = math.inf,
    least_duration: float = 0.0, least_queries: int = 0,
) -> LatencyVerdict:  # fmt: skip
    """The verdict on a Server run of `queries`, `late` of them, whose last query was due after `duration` seconds.

    For a score MLPerf asks for a `least_duration` of 600 s. InputError for counts or shares out of range.
    """
    _check(late, percentile, confidence)
    if late > queries:
        raise InputError(f"{late} late queries of {queries}", hint="there cannot be more late queries than queries")
    if not (duration >= 0.0 and least_duration >= 0.0):
        raise InputError(f"durations of {duration} s and {least_duration} s", hint="give seconds, 0 or more")
    allowed = most_late(queries, percentile, confidence)
    name = f"p{100 * percentile:g}"
    reason = ""
    if late > _late_at_percentile(queries, percentile):
        reason = f"{name} is above its bound: {late} of {queries} queries are late, {max(allowed, 0)} may be"
    elif not early_stopping(queries, late, percentile, confidence):
        need = minimum_queries(late, percentile, confidence)
        reason = f"too few queries to claim {name}: {queries} with {late} late, which takes {need}"
    elif queries < least_queries:
        reason = f"too few queries: {queries} of at least {least_queries}"
    elif duration < least_duration:
        reason = f"too short: {duration:g} s of at least {least_duration:g} s"
    return LatencyVerdict(not reason, reason, late, queries, allowed)


def percentile_index(queries: int, percentile: float = 0.99) -> int:
    """Where in the ascending latencies LoadGen finds the percentile: floor(n p), multiplied as doubles as it does."""
    if queries < 1:
        raise InputError(f"{queries} queries have no percentile", hint="give at least one query")
    _check(0, percentile, CONFIDENCE)
    return int(queries * percentile)


def early_stopping(queries: int, late: int, percentile: float = 0.99, confidence: float = CONFIDENCE) -> bool:
    """Whether `queries` with `late` late ones show, at this confidence, that the percentile keeps its bound.

    InputError for counts or shares out of range.
    """
    return queries >= minimum_queries(late, percentile, confidence)


@lru_cache(maxsize=4096)
def minimum_queries(late: int, percentile: float = 0.99, confidence: float = CONFIDENCE) -> int:
    """The fewest queries that pass with `late` late ones: h + t, h least with I(p; h, t + 1) < 1 - confidence.

    I is the regularised incomplete beta function: the chance of t or fewer late ones of h + t when a share 1 - p is
    late. LoadGen's tolerance is 0. InputError for counts or shares out of range.
    """
    from scipy.special import betainc

    _check(late, percentile, confidence)
    chance = 1.0 - confidence  # rounded as LoadGen rounds it
    low, high = 0, 1
    while betainc(high, late + 1, percentile) >= chance:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if betainc(middle, late + 1, percentile) >= chance else (low, middle)
    return high + late


def most_late(queries: int, percentile: float = 0.99, confidence: float = CONFIDENCE) -> int:
    """The most late queries with which `queries` pass early stopping; -1 if they are too few even with none late."""
    low, high = -1, max(queries, 0)
    while high > low:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if early_stopping(queries, middle, percentile, confidence) else (low, middle - 1)
    return low


def _late_at_percentile(queries: int, percentile: float) -> int:
    """The most late queries with which the latency at the percentile is still within the bound."""
    return queries - percentile_index(queries, percentile) - 1 if queries else 0


def _check(late: int, percentile: float, confidence: float) -> None:
    if late < 0:
        raise InputError(f"{late} late queries", hint="give a count of 0 or more")
    for name, share in (("percentile", percentile), ("confidence", confidence)):
        if not 0.0 < share < 1.0:
            raise InputError(f"a {name} of {share}", hint="give it as a share between 0 and 1, such as 0.99")
