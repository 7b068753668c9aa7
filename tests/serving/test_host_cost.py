"""The CPU time of a query as a capacity of the host that sends it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lanewise
from lanewise.options.predict import ServiceOptions
from lanewise.serving.host_cost import host_cpu
from lanewise.serving.workload import workload

CORES = 2 * 64  # of dgx-a100
COSTLY = replace(workload("resnet50"), host_cost=1e-3, sources=(("host_cost", "timed"),))  # 128,000 queries/s


def test_a_hosts_cores_limit_the_rate_and_are_named() -> None:
    free, limited = (lanewise.serve("dgx-a100", work) for work in (replace(COSTLY, host_cost=None), COSTLY))
    assert limited.qps == pytest.approx(CORES / 1e-3)
    assert limited.limit == "CPU time of host0 (128 cores)"
    assert limited.goodput == pytest.approx(limited.qps * COSTLY.bytes_in)
    assert "timed" in limited.rests_on[0]
    assert free.qps > 2 * limited.qps
    assert free.note == ""
    assert lanewise.serve("dgx-a100", replace(COSTLY, host_cost=1e-6)).qps == pytest.approx(free.qps)


def test_a_simulation_shares_the_cores() -> None:
    options = ServiceOptions(mode="offline", seconds=0.3)
    result = lanewise.predict_service("dgx-a100", COSTLY, options).results[0]
    assert result.answered == pytest.approx(CORES / 1e-3, rel=0.02)
    assert result.limit == "CPU time of host0 (128 cores)"
    assert result.steady == pytest.approx(CORES / 1e-3)


def test_unknown_cores_limit_nothing_and_that_is_said() -> None:
    system = lanewise.load_system("tx2550-m7-l40s")
    assert host_cpu(system, "host0", COSTLY) is None
    assert "cpu.cores" in lanewise.serve(system, COSTLY).note
    one = lanewise.predict_service(system, COSTLY, ServiceOptions(qps=1000.0, seconds=0.2)).results[0]
    assert "cpu.cores" in one.note
