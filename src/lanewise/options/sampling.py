"""When a measurement has enough samples."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SamplingRule:
    """At least `least` samples, then until the median's interval is within `width` (relative), or `most` samples.

    The interval is distribution-free (order statistics), so a row needs six samples before 95 % can be said at all;
    fewer are accepted only where all lie within `width` of each other.
    """

    least: int = 5
    most: int = 25
    width: float = 0.005
    confidence: float = 0.95


DEFAULT_RULE = SamplingRule(most=15)
