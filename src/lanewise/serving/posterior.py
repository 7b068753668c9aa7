"""The posterior of a peak given runs around it; how fast latency grows and scatters there is inferred as well.

Around the peak p the latency at the bound's percentile is taken as bound * (rate / p)^steepness, and the logarithm of
what a run of n queries sees of it to scatter by noise / sqrt(n). Chances are kept for every peak, steepness and noise,
so that a server whose latency hardly scatters (batches) is found sooner than one whose late queries come in clusters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lanewise.results.service_result import SearchRun
from lanewise.serving.durations import Durations
from lanewise.serving.verdict import most_late

Array = NDArray[np.float64]

# What is likely before any run: latency of M/D/1 grows by the power 5.6 at a load of 0.85 and scatters by 18 / sqrt(n).
STEEPNESS = np.geomspace(1.0, 40.0, 13)
USUAL_STEEPNESS, FACTOR = 5.0, 2.0
NOISES = np.array([4.0, 10.0, 18.0, 30.0])
USUAL_NOISES = np.log([0.1, 0.25, 0.5, 0.15])
CURVED = 0.3  # latency follows no power of the rate: a run's estimate of a peak this far off is off by this share of it
OVER = 0.1  # how far (relative) the peak may well lie above the most that is expected of it
MOSTLY = 0.75  # a run cut off after this share of its queries locates the peak, as if its rest were as late as allowed
LAPSE = 0.02  # how often a run has nothing to do with the rate: a hiccup of the host
# FixedNoisePosterior: a run whose latency puts the peak within CLOSE deviations of its rate locates the peak, not only
# the side that it is on; LINE_STEEPNESS holds until runs tell: rho / (1 - rho) at a load of 0.85.
CLOSE, LINE_STEEPNESS = 3.0, 6.0
DISTURBED = 0.5  # and how often one that was refused while something else took the host's time


class Posterior:
    """Chances of peaks (logarithms of the rate, `step` apart), steepnesses and noises, given runs.

    `bound` is the latency bound in s. The peak is expected to be at most `most` queries/s, which may be wrong.
    `before` is the posterior of the first of these runs in the same search, whose work is not done again.
    """

    def __init__(
        self, runs: Sequence[SearchRun], bound: float, percentile: float, step: float, most: float = math.inf,
        before: Posterior | None = None,
    ) -> None:  # fmt: skip
        self.runs = tuple(runs)
        rates = [run.offered or run.rate for run in runs]
        self._ends = low, high = math.log(min(rates) / 2.0), math.log(max(rates) * 2.0)
        self._peaks: Array = np.linspace(low, high, 2 + math.ceil((high - low) / step))
        self._bound, self._percentile = bound, percentile
        known = 0
        if before is not None and before._ends == self._ends and self.runs[: len(before.runs)] == before.runs:
            known, chances = len(before.runs), before._chances.copy()
        else:
            chances = self._before_any_run(most)
        for run, rate in zip(self.runs[known:], rates[known:], strict=True):
            chances += self._log_chance(run, rate)
        self._chances: Array = chances
        self._weights: Array = np.exp(chances - chances.max())
        self._weights /= self._weights.sum()

    def _before_any_run(self, most: float) -> Array:
        shape = (self._peaks.size, STEEPNESS.size, NOISES.size)
        usual = -0.5 * (np.log(STEEPNESS / USUAL_STEEPNESS) / math.log(FACTOR)) ** 2
        chances: Array = np.broadcast_to(usual[:, None] + USUAL_NOISES[None, :], shape).copy()
        if most < math.inf:
            chances -= 0.5 * (np.maximum(self._peaks - math.log(most), 0.0) / OVER)[:, None, None] ** 2
        return chances

    def _log_chance(self, run: SearchRun, rate: float) -> Array:
        """The logarithm of the chance of this run's latency, or of its verdict where the latency says no more."""
        offset = math.log(rate) - self._peaks[:, None, None]
        steepness, noise = STEEPNESS[None, :, None], NOISES[None, None, :] / math.sqrt(max(run.queries, 1))
        if run.disturbed:  # its latency may be due to the other work
            refused: Array = np.log(DISTURBED + (1.0 - DISTURBED) * _normal(steepness * offset / noise))
            return refused
        latency = run.latency / self._bound
        if 0.0 < latency < math.inf:
            completed = run.completed if run.hopeless else 1.0
            deviation = np.sqrt(noise**2 + (CURVED * steepness * offset) ** 2)
            if completed < MOSTLY:
                above: Array = np.log(LAPSE + (1.0 - LAPSE) * _normal(steepness * offset / deviation))
                return above
            late = math.log(2.0 - completed) * _scale(self._percentile) if completed < 1.0 else math.log(latency)
            error = (late - steepness * offset) / deviation
            likelihood: Array = np.log(LAPSE + np.exp(-0.5 * error**2)) - np.log(deviation)
            return likelihood
        chance = _normal(-offset * steepness / noise)
        verdict: Array = np.log(LAPSE + (1.0 - 2.0 * LAPSE) * (chance if run.valid else 1.0 - chance))
        return verdict

    def quantiles(self, *chances: float) -> list[float]:
        """The logarithms of the rates below which the peak lies with these chances."""
        return _quantiles(self._peaks, self._weights.sum(axis=(1, 2)), chances)

    def valid(self, rate: float, queries: int) -> float:
        """The chance that a run of so many queries at e^rate is VALID, early stopping included."""
        late = (rate - self._peaks)[:, None, None] * STEEPNESS[None, :, None] + margin(queries, self._percentile)
        return float((self._weights * _normal(-late * math.sqrt(queries) / NOISES[None, None, :])).sum())

    def rate(self, chance: float, queries: int) -> float:
        """The rate at which a run of so many queries is VALID with that chance."""
        low, high = float(self._peaks[0]), float(self._peaks[-1])
        while high - low > 1e-5:
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.valid(middle, queries) >= chance else (low, middle)
        return math.exp(low)


class FixedNoisePosterior:
    """Chances of peaks where runs cost simulated time alone: the noise is Durations', the steepness a line's.

    It takes a fraction of the CPU time of `Posterior`, which is more precise on most servers: docs/decisions/0017.
    """

    def __init__(
        self, runs: Sequence[SearchRun], durations: Durations, step: float, floor: float, ceiling: float
    ) -> None:
        rates = [run.rate for run in runs]
        low = math.log(max(min(rates) / 2.0, min(floor, min(rates))))
        high = math.log(min(max(rates) * 2.0, max(ceiling, max(rates))))
        self._durations = durations
        self._peaks: Array = np.linspace(low, high, 2 + math.ceil((high - low) / step))
        chances, steepness = np.zeros_like(self._peaks), self._steepness(runs)
        for run in runs:
            chances += self._log_chance(run, steepness)
        chances -= chances.max()
        self._weights: Array = np.exp(chances)

    def _log_chance(self, run: SearchRun, steepness: float) -> Array:
        deviation = self._durations.deviation(run)
        shift = math.inf  # how far above the rate (logarithm) the latency puts the peak
        if not run.hopeless and 0.0 < run.latency < math.inf:
            shift = math.log(self._durations.bound / run.latency) / steepness
        if abs(shift) < CLOSE * deviation:
            distance = (self._peaks - math.log(run.rate) - shift) / deviation
            near: Array = np.log(LAPSE + np.exp(-0.5 * distance**2))
            return near
        # Too far off for its latency to say how far: a logistic curve of that standard deviation, about the rate.
        steps = np.clip((self._peaks - math.log(run.rate)) / deviation * (math.pi / math.sqrt(3.0)), -40.0, 40.0)
        valid = 0.5 * (1.0 + np.tanh(steps / 2.0))
        lapse = 1e-9 if run.hopeless else LAPSE
        far: Array = np.log(lapse + (1.0 - 2.0 * lapse) * (valid if run.valid else 1.0 - valid))
        return far

    def _steepness(self, runs: Sequence[SearchRun]) -> float:
        """The power of the rate by which the latency grows around the bound: a line through the runs near it."""
        bound = self._durations.bound
        near = [run for run in runs if bound / 4.0 < run.latency < bound * 4.0]
        rates = [math.log(run.rate) for run in near]
        mean = sum(rates) / max(len(rates), 1)
        pull = 0.03**2  # the weight of LINE_STEEPNESS: that of a run 3 % off
        product = sum((rate - mean) * math.log(run.latency / bound) for rate, run in zip(rates, near, strict=True))
        square = sum((rate - mean) ** 2 for rate in rates)
        return min(max((product + LINE_STEEPNESS * pull) / (square + pull), 2.0), 50.0)

    def quantiles(self, *chances: float) -> list[float]:
        """The logarithms of the rates below which the peak lies with these chances."""
        return _quantiles(self._peaks, self._weights, chances)


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


def _quantiles(peaks: Array, weights: Array, chances: Sequence[float]) -> list[float]:
    below = np.cumsum(weights)
    return [float(np.interp(chance * below[-1], below, peaks)) for chance in chances]


def _normal(z: Array) -> Array:
    from scipy.special import ndtr

    chances: Array = ndtr(z)
    return chances
