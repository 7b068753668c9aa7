"""Reads of several GPUs below one uplink, beside their writes."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import builtin
from lanewise.perf.concurrent_flows import concurrent_demands
from lanewise.perf.duplex import Copier
from lanewise.perf.flow import Flow
from lanewise.perf.flow_demand import flow_demand
from lanewise.topology.model import System
from lanewise.topology.read import read_system

PAIR = """
lanewise: 1
system: pair
devices:
  cpu0: {cpu: null}
  sw0: {switch: pex88096}
  "gpu[0-1]": {gpu: a100-sxm-80gb}
links:
  - {from: cpu0, to: sw0, pcie: gen4 x16}
  - {from: sw0, to: "gpu[0-1]", pcie: gen4 x16}
"""
UPLINK = ("cpu0", "sw0")


@pytest.fixture(scope="module")
def pair() -> System:
    return read_system(PAIR, "pair.yaml")


def kept_off() -> float:
    """Bytes of an A100's reads that a byte of its writes keeps off."""
    part = builtin().get("a100-sxm-80gb")
    alone, reads, out = (part.number(f"engine.{key}.gen4") or 0.0 for key in ("h2d", "duplex_h2d", "d2h"))
    return (alone - reads) / out


def test_writes_of_two_gpus_keep_reads_off_the_uplink_as_those_of_one_do(pair: System) -> None:
    # Measured: 32.1 GB/s, 31.0 of one GPU (a100-four-pex88); 51.6 if only each GPU's engine lost reads.
    rates = lanewise.predict(pair, "host0<->gpu[0-1]").rates
    reads, writes = (sum(r.rate for r in rates if (r.flow.src == "host0") is into) for into in (True, False))
    alone = lanewise.predict(pair, "host0->gpu[0-1]").total
    assert reads == pytest.approx(alone - kept_off() * writes, rel=0.15)
    assert 30e9 < reads + writes < 45e9


def test_reads_starve_too_where_the_rate_alone_is_typical() -> None:
    # Left out, these machines take the A100 40 GB's rates alone with them; what others showed both ways still counts.
    catalog = builtin()
    for name in ("a100-superbench", "derecho-a100", "meluxina-a100", "vega-a100", "a100-ford"):
        catalog = catalog.without_machine(name)
    assert catalog.get("a100-sxm-40gb").number("engine.h2d.gen4") is None
    host = PAIR.replace("a100-sxm-80gb", "a100-sxm-40gb")
    reads, writes = lanewise.predict(read_system(host, "pair.yaml", catalog=catalog), "host0<->gpu0").rates
    assert reads.rate < 0.7 * writes.rate


def test_on_a_host_that_lets_reads_pass_the_uplink_has_room(pair: System) -> None:
    # One of four hosts lost none: the high end is what Acks and requests leave.
    assert lanewise.predict(pair, "host0<->gpu[0-1]").total_high > 50e9


@pytest.mark.parametrize("copied_by", ["engines", "kernels"])
def test_what_kernels_write_keeps_off_nothing(pair: System, copied_by: Copier) -> None:
    demands = [flow_demand(pair, Flow(*ends)) for ends in (("cpu0", "gpu0"), ("gpu1", "cpu0"))]
    reads, _ = concurrent_demands(pair, demands, copied_by)
    left, whole = (
        min(each.capacity for each in demand.per_byte if each.link is not None and each.place[:2] == UPLINK)
        for demand in (reads, demands[0])
    )
    assert (left > 0.9 * whole) is (copied_by == "kernels")


def test_of_two_copies_that_begin_together_the_slower_one_ends_alone() -> None:
    # Counted is all of it over the time until both have ended: an A100 gets 38.4 GB/s (a100-gen4-duplex, held out).
    text = "lanewise: 1\nsystem: a\ndevices: {cpu0: {cpu: null}, gpu0: {gpu: a100-sxm-40gb}}\n"
    system = read_system(text + "links: [{from: cpu0, to: gpu0, pcie: gen4 x16}]", "a.yaml")
    alone = lanewise.predict(system, "host0->gpu0").total
    reads, writes = (each.rate for each in lanewise.predict(system, "host0<->gpu0").rates)
    until_both = lanewise.predict(system, "host0<->gpu0", schedule="p2pBandwidthLatencyTest")
    assert until_both.total == pytest.approx(2 / (1 / writes + (1 - reads / writes) / alone))
    assert 1.2 * 2 * reads < until_both.total < reads + writes
