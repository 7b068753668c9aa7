"""Percentiles and tails of M/M/c and M/D/c queues that simulations are compared with.

Rates in queries/s, times in s. `service` is the mean service time of M/M/c and the constant one of M/D/c; the sojourn
is waiting and service together.
"""

from __future__ import annotations

import math

from lanewise.serving.queues import Waiting, mdc


def mm1_sojourn(rate: float, service: float, percentile: float) -> float:
    """The percentile of the time in an M/M/1 queue, which is exponential with rate 1/service - rate.

    Kleinrock, Queueing Systems 1, 1975, chapter 5.
    """
    return -math.log1p(-percentile) / (1.0 / service - rate)


def mmc_tail(rate: float, service: float, servers: int, wait: float) -> float:
    """P(W > wait) in an M/M/c queue: Erlang's C times an exponential.

    Kleinrock, Queueing Systems 1, 1975, chapter 3; Erlang's B by its recursion, which only adds positive terms.
    """
    load, blocked = rate * service, 1.0
    for busy in range(1, servers + 1):
        blocked = load * blocked / (busy + load * blocked)
    waits = blocked / (1.0 - load / servers * (1.0 - blocked))
    return waits * math.exp(-(servers / service - rate) * max(wait, 0.0))


def wait_percentile(waiting: Waiting, percentile: float) -> float:
    """The wait that this share (0..1) of the queries does not exceed: 0 if so many need not wait at all."""
    from scipy.optimize import brentq  # every worker collects the tests that use this, one runs them

    late_share = 1.0 - percentile
    if waiting.tail(0.0) <= late_share:
        return 0.0
    high = waiting.service
    while waiting.tail(high) > late_share:
        high *= 2.0
    return float(brentq(lambda wait: waiting.tail(wait) - late_share, 0.0, high, xtol=1e-300, rtol=1e-14))


def md1_sojourn(rate: float, service: float, percentile: float) -> float:
    """The percentile of the time in an M/D/1 queue."""
    return service + wait_percentile(mdc(rate, service), percentile)
