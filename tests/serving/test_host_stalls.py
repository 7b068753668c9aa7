"""Latencies on a host that stalls: what its stalls add to those of a service without any."""

from __future__ import annotations

import math

import pytest

from lanewise.serving.host_stalls import STALLING, stalls, with_stalls
from lanewise.serving.load import BatchPolicy, ServiceLoad
from lanewise.serving.workload import workload


def constant(share: float) -> float:
    return 5e-3


def test_of_equal_latencies_the_stalled_ones_have_an_exponential_tail() -> None:
    # 1 % is later than x where 7 % * exp(-(x - 5 ms) / 3 ms) is 1 %.
    assert with_stalls(constant, 0.99, 0.07, 3e-3) == pytest.approx(5e-3 + 3e-3 * math.log(7), rel=1e-6)


def test_fewer_stalls_than_late_answers_change_nothing() -> None:
    assert with_stalls(constant, 0.99, 0.005, 3e-3) == pytest.approx(5e-3, rel=1e-6)


def test_stalls_of_no_length_leave_the_percentiles_as_they_are() -> None:
    assert with_stalls(lambda share: 1e-3 * share, 0.99, 0.07, 1e-9) == pytest.approx(0.99e-3, rel=3e-3)


def test_hosts_stall_at_high_rates_under_a_policy_alone() -> None:
    load = ServiceLoad(workload("resnet50"), policy=BatchPolicy())
    assert stalls(load, STALLING)
    assert not stalls(load, 0.9 * STALLING)
    assert not stalls(ServiceLoad(workload("resnet50")), STALLING)
