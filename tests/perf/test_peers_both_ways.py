"""Peers of two root ports write both ways at once: in full on servers, hardly more than one way on some desktops."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import builtin
from lanewise.perf.predict import Prediction
from lanewise.topology.read import read_system

PAIR = """
lanewise: 1
system: pair
devices: {cpu0: {cpu: %s}, "gpu[0-1]": {gpu: rtx-4090-p2p}}
links: [{from: cpu0, to: "gpu[0-1]", pcie: gen4 x8}]
policies: {peers: system}
"""
BOTH, ALONE, READS = "gpu0->gpu1, gpu1->gpu0", "gpu0->gpu1", "gpu0->gpu1 read, gpu1->gpu0 read"


def predicted(cpu: str, flows: str) -> Prediction:
    return lanewise.predict(read_system(PAIR % cpu, "pair.yaml"), flows)


def test_a_root_complex_that_was_measured_passes_its_share_of_one_way_both_ways() -> None:
    share = builtin().get("ryzen-am4").number("peer.both_ways")
    assert share is not None
    assert share == pytest.approx(1.215)
    (alone,), both = predicted("ryzen-am4", ALONE).rates, predicted("ryzen-am4", BOTH)
    assert alone.rate < both.total < 2 * alone.rate
    assert both.total == pytest.approx(share * alone.rate)
    assert all("both ways" in rate.limit for rate in both.rates)
    assert [rate.rate for rate in both.rates] == pytest.approx([both.total / 2] * 2)


def test_reads_and_servers_are_left_alone() -> None:
    assert predicted("ryzen-am4", READS).total == pytest.approx(predicted("genoa", READS).total, rel=0.05)
    server = predicted("genoa", BOTH)
    assert server.total == pytest.approx(2 * predicted("genoa", ALONE).rates[0].rate, rel=0.05)


@pytest.mark.parametrize("cpu", ["null", "core-11", "threadripper-7000"])
def test_a_cpu_that_nobody_measured_or_named_may_pass_as_little_as_the_least(cpu: str) -> None:
    unknown, least = predicted(cpu, BOTH), predicted("ryzen-am4", BOTH)
    assert unknown.total > least.total
    assert unknown.total_low <= least.total
