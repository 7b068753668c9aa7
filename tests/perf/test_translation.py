"""An IOMMU that translates: copies of host memory may get less, by pages that a description does not know."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.perf import translation
from lanewise.topology.read import read_system

MACHINE = """
lanewise: 1
system: translated
devices:
  cpu0: {cpu: %s}
  "gpu[0-1]": {gpu: rtx-pro-6000-blackwell-server}
  ssd0: {ssd: samsung-pm1743}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: auto}
  - {from: cpu0, to: ssd0, pcie: auto}
policies: {iommu: %s}
"""


def predicted(iommu: str, flows: str, cpu: str = "turin") -> lanewise.Prediction:
    return lanewise.predict(read_system(MACHINE % (cpu, iommu), "t.yaml"), flows)


@pytest.mark.parametrize("flow", ["host0->gpu0", "gpu0->host0"])
def test_the_interval_of_a_copy_of_host_memory_begins_at_the_least_that_was_seen(flow: str) -> None:
    translated, plain = (predicted(mode, flow).rates[0] for mode in ("translate", "passthrough"))
    assert translated.low == pytest.approx(20e9)  # 0.8 of 200 Gb/s
    assert translation.DOUBT in translated.doubt
    # Of a CPU that nobody measured: the medians of EPYC 7002 and a Core i5, 21.5 and 20.5 GB/s, 25.2 and 21.8.
    assert translated.rate == pytest.approx(21e9 if flow == "gpu0->host0" else 23.5e9)
    assert translated.high == plain.high
    assert plain.low > 45e9
    assert not plain.doubt


def test_walks_serve_both_directions_one_after_the_other() -> None:
    both = predicted("translate", "host0->gpu0, gpu0->host0")
    assert both.total == pytest.approx(2 / (1 / 21 + 1 / 23.5) * 1e9)
    apart = predicted("translate", "host0->gpu0, gpu1->host0")  # below two ports
    assert apart.total == pytest.approx((21 + 23.5) * 1e9)


def test_both_directions_of_a_root_port_share_its_translations_and_two_ports_do_not() -> None:
    both = predicted("translate", "host0->gpu0, gpu0->host0")
    two = predicted("translate", "host0->gpu[0-1]")
    assert both.total_low == pytest.approx(20e9, rel=0.015)
    assert two.total_low == pytest.approx(40e9)
    assert both.total_high >= predicted("off", "host0->gpu0, gpu0->host0").total_high


def test_an_iommu_that_is_not_stated_is_taken_not_to_translate_and_the_other_case_is_told() -> None:
    flows = "host0->gpu0, gpu1->host0, gpu0->gpu1"
    silent, plain, translated = (predicted(mode, flows) for mode in ("null", "off", "translate"))
    assert silent.rates == plain.rates
    assert silent.if_translated == translated.rates[:2]  # peers at root ports are as fast
    assert not plain.if_translated
    assert not translated.if_translated


@pytest.mark.parametrize("flow", ["gpu0->gpu1", "ssd0->gpu0", "ssd0->host0"])
def test_peers_and_what_is_slower_than_that_keep_their_interval(flow: str) -> None:
    translated, plain = (predicted(mode, flow).rates[0] for mode in ("translate", "passthrough"))
    assert (translated.low, translated.high, translated.doubt) == (plain.low, plain.high, plain.doubt)


@pytest.mark.parametrize("cpu", ["rome", "milan"])  # one I/O die
def test_copies_to_the_host_are_slower_where_that_was_measured_unless_pages_are_large(cpu: str) -> None:
    # Three nodes with EPYC 7302 and 7402: 21.1 to 21.95 GB/s of 25.45 to 25.95.
    translated, plain = (predicted(mode, "gpu0->host0", cpu).rates[0] for mode in ("translate", "passthrough"))
    assert translated.rate == pytest.approx(21.5e9)
    assert translation.DOUBT in translated.doubt
    assert translated.low == pytest.approx(20e9)
    assert translated.high == plain.high > 26e9


def test_copies_from_the_host_lose_less_and_those_of_drives_nothing() -> None:
    assert predicted("translate", "host0->gpu0", "rome").total == pytest.approx(25.2e9)
    drives = [predicted(mode, "ssd0->host0", "rome").total for mode in ("translate", "passthrough")]
    assert drives[0] == drives[1]


def test_copies_staged_in_buffers_of_the_driver_keep_their_rate_there() -> None:
    machine = MACHINE.replace("rtx-pro-6000-blackwell-server", "rtx-4090")  # whose driver refuses peers
    rates = [
        lanewise.predict(read_system(machine % ("rome", mode), "t.yaml"), "gpu0->gpu1").rates[0]
        for mode in ("translate", "passthrough")
    ]
    assert rates[0].rate == rates[1].rate > 20e9
