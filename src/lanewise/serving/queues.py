"""Queues of constant service time with Poisson arrivals (M/D/c): the peak under a bound, and the service behind a peak.

Rates in queries/s, times in s; the sojourn is waiting and service together. A rate that the servers cannot carry is an
InputError.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lanewise.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def md1_peak(service: float, bound: float, percentile: float = 0.99) -> float:
    """The largest rate at which the percentile of an M/D/1 queue's sojourn is within `bound`; 0 if service exceeds it.

    Accurate to 1e-9 of the rate, down to services of a millionth of the bound.
    """
    _check_times(service, bound)
    _check_share(percentile)
    if service > bound:
        return 0.0
    most = 1.0 - 1e-9
    if service == bound:
        return (1.0 - percentile) / service

    def excess(load: float) -> float:
        return mdc(load / service, service).tail(bound - service) - (1.0 - percentile)

    return _root(excess, (1.0 - percentile) / 2.0, most) / service if excess(most) > 0.0 else most / service


def md1_service(rate: float, bound: float, percentile: float = 0.99) -> float:
    """The constant service time at which `rate` is the peak of an M/D/1 queue: the inverse of `md1_peak`.

    Where even a service as long as `bound` meets it at this rate, as queries seldom meet, that is `bound`.
    """
    _check_times(1.0 / rate if rate > 0.0 else math.nan, bound)
    _check_share(percentile)
    if rate * bound <= 1.0 - percentile:
        return bound

    def excess(service: float) -> float:
        return mdc(rate, service).tail(bound - service) - (1.0 - percentile)

    most = min(bound, (1.0 - 1e-9) / rate)
    return _root(excess, min(bound, 1.0 / rate) * (1.0 - percentile) / 2.0, most) if excess(most) > 0.0 else most


@dataclass(frozen=True, slots=True)
class Waiting:
    """The waiting time of an M/D/c queue; made by `mdc`.

    `survivors[m]` is the chance that m or more queries wait, for the first few m; from there on, and so for long
    waits, it is the exponential tail P(W > t) = `amplitude` e^(-`decay` t).
    """

    rate: float
    service: float
    servers: int
    survivors: NDArray[np.float64]
    amplitude: float
    decay: float

    def tail(self, wait: float) -> float:
        """P(W > wait): that those waiting and those who come within kD - wait are together kc or more.

        G. J. Franx, "A simple solution for the M/D/c waiting time distribution", Operations Research Letters 29,
        2001: every term is positive, so nothing cancels. Here k is the least whole number with kD > wait.
        """
        from scipy.special import gammainc

        if wait < 0.0:
            return 1.0
        intervals = math.floor(wait / self.service) + 1
        full = intervals * self.servers
        if full >= len(self.survivors):
            return self.amplitude * math.exp(-self.decay * wait)
        mean = self.rate * (intervals * self.service - wait)
        return float(_poisson(mean, full) @ self.survivors[full:0:-1] + gammainc(full, mean))


@lru_cache(maxsize=256)
def mdc(rate: float, service: float, servers: int = 1) -> Waiting:
    """The waiting time of an M/D/c queue, first come first served; accurate to 1e-9 or better up to loads of 1 - 1e-6.

    The number M that wait obeys M' = max(M + A - c, 0), A the arrivals of one service time D (Crommelin 1932). Its
    geometric tail has the ratio z > 1 with ln z = (rate D / c)(z - 1); with r_m = P(M = m) z^m, constant for large m,
    the chain is one well-conditioned linear system (Tijms, A First Course in Stochastic Models, 2003).
    """
    import numpy as np

    _check_load(rate, service, servers)
    load = rate * service / servers
    ratio = _decay_ratio(load)
    # The next root of the characteristic equation is so far off that r has settled here.
    size = servers + 20 + math.ceil(20.0 * math.sqrt(servers))
    tilted = _poisson(rate * service * (1.0 + ratio), size + servers + 1)
    rows, columns = np.mgrid[0 : size + 1, 0 : size + 1]
    arrivals = rows + servers - columns
    system = np.where(arrivals >= 0, tilted[np.maximum(arrivals, 0)], 0.0)
    for row in range(size + 1):  # all r_m beyond the last are equal to it
        system[row, size] = tilted[: max(row + servers - size + 1, 0)].sum()
    system -= np.eye(size + 1)
    shrink = np.exp(-math.log1p(ratio) * np.arange(size + 1))
    system[0] = shrink
    system[0, size] *= (1.0 + ratio) / ratio
    total = np.zeros(size + 1)
    total[0] = 1.0
    settled = np.linalg.solve(system, total)
    waiting = settled * shrink
    waiting[size] *= (1.0 + ratio) / ratio
    survivors = np.cumsum(waiting[::-1])[::-1]
    return Waiting(rate, service, servers, survivors, settled[size] * (1.0 + ratio) / ratio, rate * ratio)


def _decay_ratio(load: float) -> float:
    """The u > 0 with ln(1 + u) = load u; u, and not 1 + u, is found to full relative accuracy."""
    high = 2.0 * (1.0 - load)
    while load * high <= math.log1p(high):
        high *= 2.0
    return _root(lambda u: load * u - math.log1p(u), high / 2.0 if high > 2.0 * (1.0 - load) else high / 4.0, high)


def _poisson(mean: float, count: int) -> NDArray[np.float64]:
    """The chances of 0, 1 ... count - 1 arrivals."""
    import numpy as np
    from scipy.special import gammaln, xlogy

    k = np.arange(count)
    chances: NDArray[np.float64] = np.exp(xlogy(k, mean) - mean - gammaln(k + 1.0))
    return chances


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function changes its sign between two rates, to 1e-14 of it, by the Illinois rule: a secant between ends
    of opposite sign that halves the value of an end which stays. scipy.optimize would take longer to import than a
    whole prediction takes.
    """
    at_low, at_high = function(low), function(high)
    if at_low * at_high > 0.0:
        raise ValueError(f"no change of sign between {low:g} and {high:g}")
    last = 0.0
    while at_low and at_high and high - low > 1e-14 * abs(high):
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        if not low < middle < high:
            break
        value = function(middle)
        if value * at_high > 0.0:
            high, at_high, at_low = middle, value, at_low / (2.0 if last * value > 0.0 else 1.0)
        else:
            low, at_low, at_high = middle, value, at_high / (2.0 if last * value > 0.0 else 1.0)
        last = value
    return float(low if abs(at_low) < abs(at_high) else high)


def _check_load(rate: float, service: float, servers: int) -> None:
    _check_times(service, 1.0)
    if servers < 1:
        raise InputError(f"a queue of {servers} servers", hint="give 1 or more")
    if not 0.0 < rate * service < servers:
        raise InputError(
            f"{rate:g} queries/s of {service:g} s each on {servers} server{'s' * (servers > 1)}",
            hint=f"a queue settles at rates above 0 and below {servers / service:g} queries/s only",
        )


def _check_times(service: float, bound: float) -> None:
    if not (0.0 < service < math.inf and 0.0 < bound < math.inf):
        raise InputError(f"a service time of {service} s and a bound of {bound} s", hint="give seconds above 0")


def _check_share(percentile: float) -> None:
    if not 0.0 < percentile < 1.0:
        raise InputError(f"a percentile of {percentile}", hint="give it as a share between 0 and 1, such as 0.99")
