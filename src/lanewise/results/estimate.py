"""What samples allow to say: an interval for the median, their deviation, latency and bandwidth from a size sweep."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# The median of |x - median| of normal values, times this, is their standard deviation.
_NORMAL = 1.4826


def robust_deviation(values: Sequence[float]) -> float:
    """The standard deviation as the median distance from the median tells it: a few outliers do not move it."""
    middle = statistics.median(values)
    return _NORMAL * statistics.median(abs(value - middle) for value in values)


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """The interval that holds the true median with at least that confidence; all of the range where n is too small.

    The k-th smallest and k-th largest of n values, k the largest with 2 P(Binomial(n, 1/2) < k) <= 1 - confidence.
    """
    ordered = sorted(values)
    n = len(ordered)
    tail, k = 0.0, 0
    while k < n // 2:
        tail += math.comb(n, k) / 2.0**n
        if 2 * tail > 1 - confidence:
            break
        k += 1
    k = max(k, 1)
    return ordered[k - 1], ordered[n - k]


@dataclass(frozen=True, slots=True)
class LineFit:
    """time = latency + bytes / bandwidth: s and B/s, and the largest relative error of the points it was fitted to."""

    latency: float
    bandwidth: float
    worst: float


def fit_line(sizes: Sequence[float], seconds: Sequence[float]) -> LineFit | None:
    """Latency and bandwidth that fit times by size best in relative terms; None without two sizes or a rising line.

    Weighted least squares with weights 1/t^2, as a 4 KiB copy of 3 us and a 1 GiB copy of 20 ms count alike.
    """
    import numpy as np

    if len({*sizes}) < 2 or min(seconds) <= 0:
        return None
    times = np.asarray(seconds)
    slope, latency = np.polyfit(sizes, times, 1, w=1 / times)
    if slope <= 0:
        return None
    worst = np.max(np.abs(latency + slope * np.asarray(sizes) - times) / times)
    return LineFit(float(latency), float(1 / slope), float(worst))
