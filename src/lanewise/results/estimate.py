"""What samples allow to say: an interval for the median, and latency and bandwidth from a size sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


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
    if len({*sizes}) < 2 or any(t <= 0 for t in seconds):
        return None
    weights = [1 / t**2 for t in seconds]
    total = math.fsum(weights)
    x = math.fsum(w * s for w, s in zip(weights, sizes, strict=True)) / total
    y = math.fsum(w * t for w, t in zip(weights, seconds, strict=True)) / total
    rise = math.fsum(w * (s - x) * (t - y) for w, s, t in zip(weights, sizes, seconds, strict=True))
    variance = math.fsum(w * (s - x) ** 2 for w, s in zip(weights, sizes, strict=True))
    if rise <= 0 or variance <= 0:
        return None
    slope = rise / variance
    latency = y - slope * x
    worst = max(abs(latency + slope * s - t) / t for s, t in zip(sizes, seconds, strict=True))
    return LineFit(latency, 1 / slope, worst)
