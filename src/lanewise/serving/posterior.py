"""Where a peak may lie, given runs around it: how fast latency grows and scatters there is inferred as well.

Around the peak p the latency at the bound's percentile is taken as bound * (rate / p)^steepness, and the logarithm of
what a run of n queries sees of it to scatter by noise / sqrt(n). Chances are kept for every peak, steepness and noise,
so that a server whose latency hardly scatters (batches) is found sooner than one whose late queries come in clusters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanewise.serving.verdict import most_late

Array = NDArray[np.float64]

# What is likely before any run: latency of M/D/1 grows by the power 5.6 at a load of 0.85 and scatters by 18 / sqrt(n).
STEEPNESS = np.geomspace(1.0, 40.0, 13)
USUAL_STEEPNESS, FACTOR = 5.0, 2.0
NOISES = np.array([4.0, 10.0, 18.0, 30.0])
USUAL_NOISES = np.log([0.1, 0.25, 0.5, 0.15])
CURVED = 0.3  # latency follows no power of the rate: what a run says of a peak this far off is off by this share of it
OVER = 0.1  # how far (relative) the peak may well lie above the most that is expected of it
MOSTLY = 0.75  # a run cut off later tells where the peak is: as if its rest had been late as often as may be
LAPSE = 0.02  # how often a run has nothing to do with the rate: a hiccup of the host
DISTURBED = 0.5  # and how often one that was refused while something else took the host's time


@dataclass(frozen=True, slots=True)
class Seen:
    """One run: its rate in queries/s, its latency as a multiple of the bound, its queries and its verdict.

    A latency that is no positive number tells nothing beyond the verdict; `done` is the share of its queries
    that were sent before it was cut off as hopeless. `disturbed`: it may have been refused for another reason.
    """

    qps: float
    latency: float
    queries: int
    valid: bool
    done: float = 1.0
    disturbed: bool = False


class Posterior:
    """Chances of peaks (logarithms of the rate, `step` apart), steepnesses and noises, given runs.

    The peak is expected to be at most `most`, which may be wrong.
    """

    def __init__(self, seen: Sequence[Seen], percentile: float, step: float, most: float = math.inf) -> None:
        rates = [each.qps for each in seen]
        low, high = math.log(min(rates) / 2.0), math.log(max(rates) * 2.0)
        self._peaks: Array = np.linspace(low, high, 2 + math.ceil((high - low) / step))
        self._percentile = percentile
        shape = (self._peaks.size, STEEPNESS.size, NOISES.size)
        usual = -0.5 * (np.log(STEEPNESS / USUAL_STEEPNESS) / math.log(FACTOR)) ** 2
        found = np.broadcast_to(usual[:, None] + USUAL_NOISES[None, :], shape).copy()
        if most < math.inf:
            found -= 0.5 * (np.maximum(self._peaks - math.log(most), 0.0) / OVER)[:, None, None] ** 2
        for each in seen:
            found += self._log_chance(each)
        found -= found.max()
        self._weights: Array = np.exp(found)
        self._weights /= self._weights.sum()

    def _log_chance(self, each: Seen) -> Array:
        away = math.log(each.qps) - self._peaks[:, None, None]
        steep, noise = STEEPNESS[None, :, None], NOISES[None, None, :] / math.sqrt(max(each.queries, 1))
        if each.disturbed:  # its latency may be the other's work
            refused: Array = np.log(DISTURBED + (1.0 - DISTURBED) * _normal(steep * away / noise))
            return refused
        if 0.0 < each.latency < math.inf:
            spread = np.sqrt(noise**2 + (CURVED * steep * away) ** 2)
            if each.done < MOSTLY:
                above: Array = np.log(LAPSE + (1.0 - LAPSE) * _normal(steep * away / spread))
                return above
            late = math.log(2.0 - each.done) * _scale(self._percentile) if each.done < 1.0 else math.log(each.latency)
            off = (late - steep * away) / spread
            likely: Array = np.log(LAPSE + np.exp(-0.5 * off**2)) - np.log(spread)
            return likely
        chance = _normal(-away * steep / noise)
        told: Array = np.log(LAPSE + (1.0 - 2.0 * LAPSE) * (chance if each.valid else 1.0 - chance))
        return told

    def quantiles(self, *chances: float) -> list[float]:
        """The logarithms of the rates below which the peak lies with these chances."""
        below = np.cumsum(self._weights.sum(axis=(1, 2)))
        return [float(np.interp(chance * below[-1], below, self._peaks)) for chance in chances]

    def valid(self, rate: float, queries: int) -> float:
        """The chance that a run of so many queries at e^rate is VALID, early stopping included."""
        away = (rate - self._peaks)[:, None, None] * STEEPNESS[None, :, None] + margin(queries, self._percentile)
        return float((self._weights * _normal(-away * math.sqrt(queries) / NOISES[None, None, :])).sum())

    def rate(self, chance: float, queries: int) -> float:
        """The rate at which a run of so many queries is VALID with that chance."""
        low, high = float(self._peaks[0]), float(self._peaks[-1])
        while high - low > 1e-5:
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.valid(middle, queries) >= chance else (low, middle)
        return math.exp(low)


def margin(queries: int, percentile: float) -> float:
    """How far (logarithm) below the bound the percentile must lie for early stopping to pass, with so many queries.

    Near the bound the share of late queries falls as exp(-latency / scale), so that it takes
    ln(late at the percentile / late allowed) / ln(1 / (1 - percentile)).
    """
    share = 1.0 - percentile
    allowed = max(most_late(queries, percentile), 0.5)
    return max(0.0, math.log(share * queries / allowed)) * _scale(percentile)


def _scale(percentile: float) -> float:
    """What the logarithm of the share of late queries near the bound is worth in that of the latency."""
    return 1.0 / math.log(1.0 / (1.0 - percentile))


def _normal(z: Array) -> Array:
    from scipy.special import ndtr

    made: Array = ndtr(z)
    return made
