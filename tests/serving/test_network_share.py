"""What is predicted of the Network division compared with Closed, with software costs known and not."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

import lanewise
from lanewise.catalog import Figure, builtin
from lanewise.options.predict import ServiceOptions
from lanewise.results.network_share import share_interval
from lanewise.topology.model import System

UNKNOWN = "software cost of a query: not known, taken as 0"
OWN_RATE = 37503.69  # queries/s of one A100 in the ready system, which has eight


def system(software: float | None = None) -> System:
    """The ready system; of its GPUs the software cost of a query is known if it is given."""
    if software is None:
        return lanewise.load_system("dgx-a100-network")
    part = builtin().get("a100-sxm-80gb").with_figure("software.resnet50", Figure(software, "s", "this test"))
    return lanewise.load_system("dgx-a100-network", catalog=builtin().with_part(part))


def test_the_share_in_steady_state_is_that_of_the_longer_pipeline() -> None:
    rate = lanewise.serve(system(10e-6), "resnet50", division="network", host="accelerator")
    assert rate.network
    assert rate.network.closed == pytest.approx(8 * OWN_RATE, rel=1e-6)
    assert rate.network.share == pytest.approx(1 / (1 + 10e-6 * OWN_RATE), rel=1e-6)
    assert rate.network.ingress == pytest.approx(rate.qps * 150_528)
    assert (rate.network.software, rate.network.note, rate.network.hint) == (10e-6, "", "")


def test_an_unknown_software_cost_makes_the_share_an_upper_bound() -> None:
    network = lanewise.serve(system(), "resnet50", division="network").network
    assert network
    assert network.software is None
    assert network.note.startswith(f"{UNKNOWN}; the share is an upper bound")
    assert network.share
    assert network.interval == (0.9 * network.share, network.share)
    assert "software.resnet50" in network.hint
    known = lanewise.serve(system(0.0), "resnet50", division="network").network
    assert known
    assert (known.software, known.note) == (0.0, "")


def test_a_workload_file_may_state_the_software_cost() -> None:
    work = replace(lanewise.load_workload("resnet50"), software=5e-6)
    network = lanewise.serve(system(), work, division="network").network
    assert network
    assert (network.software, network.note) == (5e-6, "")
    assert network.share == pytest.approx(1 / (1 + 5e-6 * OWN_RATE), rel=1e-6)


def test_closed_has_no_share() -> None:
    assert lanewise.serve(system(), "resnet50").network is None
    assert lanewise.predict_service(system(), "resnet50", ServiceOptions(qps=1000)).results[0].network is None


def test_the_share_of_a_peak_has_the_interval_of_both_searches() -> None:
    options = ServiceOptions(peak=True, division="network", precision=0.02)
    result = lanewise.predict_service(system(10e-6), "resnet50", options).results[0]
    network = result.network
    assert network
    assert network.share
    assert network.interval
    # Both peaks are near what the GPUs can do, so the share is that of steady state.
    assert network.interval[0] <= 1 / (1 + 10e-6 * OWN_RATE) <= network.interval[1]
    assert network.interval[0] <= network.share <= network.interval[1]
    assert network.share == result.qps / (network.closed or math.nan)
    assert network.ingress == result.qps * 150_528
    unknown = lanewise.predict_service(system(), "resnet50", options).results[0].network
    assert unknown
    assert unknown.interval
    assert unknown.interval[0] < 0.9 * (unknown.share or 0.0) < unknown.interval[1]


def test_offline_has_a_share_and_one_rate_only_its_ingress() -> None:
    offline = ServiceOptions(mode="offline", division="network", seconds=0.5)
    network = lanewise.predict_service(system(10e-6), "resnet50", offline).results[0].network
    assert network
    assert network.share == pytest.approx(1 / (1 + 10e-6 * 40_576), rel=5e-3)  # of the part's Offline score
    one = lanewise.predict_service(system(), "resnet50", ServiceOptions(qps=2000, division="network")).results[0]
    assert one.network
    assert (one.network.closed, one.network.share, one.network.ingress) == (None, None, 2000 * 150_528)
    assert one.network.note == UNKNOWN


def test_a_share_outlives_a_run_file(tmp_path: Path) -> None:
    options = ServiceOptions(mode="offline", division="network", seconds=0.1)
    results = lanewise.predict_service(system(), "resnet50", options).results
    lanewise.save_run(lanewise.as_run(results), tmp_path / "run.json")
    assert lanewise.load_run(tmp_path / "run.json").services[0].network == results[0].network


def test_the_interval_of_a_ratio_takes_the_worst_of_both() -> None:
    assert share_interval((90.0, 110.0), (100.0, 200.0)) == (0.45, 1.1)
    assert share_interval((90.0, math.inf), (100.0, 200.0)) is None
    assert share_interval((90.0, 100.0), (0.0, 200.0)) is None
