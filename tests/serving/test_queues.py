"""Closed forms of queues, against each other, against Erlang's series in long decimals, and against simulation."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.queue_percentiles import md1_sojourn, mm1_sojourn, mmc_tail

from lanewise.errors import InputError
from lanewise.serving.queues import md1_peak, md1_service, mdc


def erlang_series(load: float, wait: float) -> float:
    """P(W > wait) of M/D/1 with service 1 by Erlang's alternating series, in 100 digits."""
    with localcontext() as context:
        context.prec = 100
        rate, total = Decimal(load), Decimal(0)
        for k in range(int(wait) + 1):
            ahead = rate * (Decimal(wait) - k)
            total += (Decimal(1) if k == 0 else (-ahead) ** k) / math.factorial(k) * ahead.exp()
        return float(1 - (1 - rate) * total)


@pytest.mark.parametrize("load", [0.01, 0.3, 0.85, 0.99, 0.9999])
@pytest.mark.parametrize("wait", [0.0, 0.4, 1.0, 2.5, 9.99, 20.5, 60.0])
def test_md1_is_erlangs_series(load: float, wait: float) -> None:
    assert mdc(load, 1.0).tail(wait) == pytest.approx(erlang_series(load, wait), rel=1e-9, abs=1e-30)


@pytest.mark.parametrize("load", [0.3, 0.9, 0.999, 1 - 1e-6])
def test_the_tail_of_md1_is_that_of_cramer_and_lundberg(load: float) -> None:
    found = mdc(load, 1.0)
    assert load * math.expm1(found.decay) == pytest.approx(found.decay, rel=1e-9)
    assert found.amplitude == pytest.approx((1 - load) / (load * math.exp(found.decay) - 1), rel=1e-8)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.8), (2, 0.8), (5, 0.9), (16, 0.9)])
def test_mdc_is_what_a_simulation_sees(servers: int, load: float) -> None:
    # Kiefer and Wolfowitz, 4,000 queues side by side, started empty and run until they have settled.
    random = np.random.default_rng(servers)
    free = np.zeros((4000, servers))
    waits = []
    for query in range(600 + 400 * servers):
        if query >= 400 * servers and query % 40 == 0:
            waits.append(free[:, 0].copy())
        free[:, 0] += 1.0
        free = np.sort(np.maximum(free - random.exponential(1.0 / (load * servers), (4000, 1)), 0.0), axis=1)
    seen = np.concatenate(waits)
    for wait in (0.0, 0.3, 0.8, 1.4, 3.2):
        assert mdc(load * servers, 1.0, servers).tail(wait) == pytest.approx(float((seen > wait).mean()), abs=0.012)


def test_one_server_of_mmc_is_mm1_and_constant_service_waits_less() -> None:
    p99 = mm1_sojourn(800.0, 0.001, 0.99)
    # P(sojourn > t) = P(W > t) / load in M/M/1
    assert mmc_tail(800.0, 0.001, 1, p99) / 0.8 == pytest.approx(0.01)
    assert mmc_tail(1.0, 1.0, 2, 0.0) == pytest.approx(1.0 / 3.0)
    assert md1_sojourn(800.0, 0.001, 0.99) < p99


@pytest.mark.parametrize("servers", [1, 3, 40])
def test_the_mean_wait_is_the_integral_of_the_tail(servers: int) -> None:
    found = mdc(0.9 * servers, 1.0, servers)
    step = 0.002
    mean = sum(found.tail((i + 0.5) * step) for i in range(int(20 / step))) * step + found.tail(20.0) / found.decay
    in_queue = found.survivors[1:].sum()  # of the linear system alone, by Little: the number that wait / rate
    beyond = found.survivors[-1] / (found.decay / found.rate)
    assert mean == pytest.approx((in_queue + beyond) / found.rate, rel=1e-4)
    if servers == 1:
        assert mean == pytest.approx(0.9 / (2 * 0.1), rel=1e-4)  # Pollaczek and Khinchine


def test_the_peak_of_a_server_of_one_millisecond() -> None:
    peak = md1_peak(0.001, 0.015)
    assert peak == pytest.approx(847.939538, abs=1e-6)
    assert erlang_series(peak * 0.001, 14.0) == pytest.approx(0.01, rel=1e-9)


@given(
    service=st.floats(1e-6, 1.0), tightness=st.floats(1.0, 1e5), percentile=st.sampled_from([0.5, 0.9, 0.99, 0.999]),
)  # fmt: skip
def test_service_is_the_inverse_of_peak(service: float, tightness: float, percentile: float) -> None:
    bound = service * tightness
    peak = md1_peak(service, bound, percentile)
    assert 0.0 < peak < 1.0 / service
    assert md1_service(peak, bound, percentile) == pytest.approx(service, rel=1e-7)
    assert md1_peak(service, 1.1 * bound, percentile) >= peak


def test_the_edges() -> None:
    assert md1_peak(0.02, 0.015) == 0.0
    assert md1_service(0.5, 0.015) == 0.015  # so seldom that 99 % find an idle server
    assert md1_sojourn(5.0, 0.001, 0.99) == 0.001
    assert mdc(500.0, 0.001).tail(-1.0) == 1.0


@pytest.mark.parametrize(("rate", "service"), [(1000.0, 0.001), (-1.0, 0.001), (1.0, 0.0), (math.nan, 1.0)])
def test_a_queue_that_never_settles_is_refused(rate: float, service: float) -> None:
    with pytest.raises(InputError) as caught:
        mdc(rate, service)
    assert caught.value.hint


def test_a_published_rate_must_be_a_rate() -> None:
    with pytest.raises(InputError):
        md1_service(0.0, 0.015)
    with pytest.raises(InputError):
        md1_peak(0.001, 0.015, 99.0)
