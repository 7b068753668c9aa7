"""MLPerf's verdict on a run: does the percentile keep its bound, and do enough queries show it?

After LoadGen (mlcommons/inference, loadgen/early_stopping.cc and results.cc at b66003e): a query is late if its
latency is greater than the bound, so an answer exactly on the bound is in time, for the percentile and for early
stopping alike. LoadGen compares whole nanoseconds; who counts late queries here, such as the simulation, compares
seconds as doubles, and the verdict takes that count as it is.
"""

from __future__ import annotations

from functools import lru_cache

from lanewise.errors import InputError

CONFIDENCE = 0.99
# The percentile that each scenario is judged by; Offline is judged by its throughput alone.
# https://github.com/mlcommons/inference_policies/blob/master/inference_rules.adoc, "Scenarios".
PERCENTILES = {"server": 0.99, "singlestream": 0.90, "multistream": 0.99}


def invalid_reason(queries: int, late: int, percentile: float = 0.99) -> str:
    """Why a Server run of `queries`, `late` of them, is not VALID, '' if it is; InputError for impossible counts."""
    _check(late, percentile)
    if late > queries:
        raise InputError(f"{late} late queries of {queries}", hint="there cannot be more late queries than queries")
    name = f"p{100 * percentile:g}"
    if late > (queries - percentile_index(queries, percentile) - 1 if queries else 0):
        allowed = max(most_late(queries, percentile), 0)
        return f"{name} is above its bound: {late} of {queries} queries are late, {allowed} may be"
    need = minimum_queries(late, percentile)
    if queries < need:
        return f"too few queries to claim {name}: {queries} with {late} late, which takes {need}"
    return ""


def percentile_index(queries: int, percentile: float = 0.99) -> int:
    """Where in the ascending latencies LoadGen finds the percentile: floor(n p), multiplied as doubles as it does."""
    if queries < 1:
        raise InputError(f"{queries} queries have no percentile", hint="give at least one query")
    _check(0, percentile)
    return int(queries * percentile)


@lru_cache(maxsize=4096)
def minimum_queries(late: int, percentile: float = 0.99) -> int:
    """The fewest queries that pass with `late` late ones: h + t, h least with I(p; h, t + 1) < 1 - CONFIDENCE.

    I is the regularised incomplete beta function: the chance of t or fewer late ones of h + t when a share 1 - p is
    late. LoadGen's tolerance is 0. InputError for counts or shares out of range.
    """
    from scipy.special import betainc

    _check(late, percentile)
    chance = 1.0 - CONFIDENCE  # rounded as LoadGen rounds it
    low, high = 0, 1
    while betainc(high, late + 1, percentile) >= chance:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if betainc(middle, late + 1, percentile) >= chance else (low, middle)
    return high + late


def most_late(queries: int, percentile: float = 0.99) -> int:
    """The most late queries with which `queries` pass early stopping; -1 if they are too few even with none late."""
    low, high = -1, max(queries, 0)
    while high > low:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if queries >= minimum_queries(middle, percentile) else (low, middle - 1)
    return low


def _check(late: int, percentile: float) -> None:
    if late < 0:
        raise InputError(f"{late} late queries", hint="give a count of 0 or more")
    if not 0.0 < percentile < 1.0:
        raise InputError(f"a percentile of {percentile}", hint="give it as a share between 0 and 1, such as 0.99")
