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
  cpu0: {cpu: turin}
  "gpu[0-1]": {gpu: rtx-pro-6000-blackwell-server}
  ssd0: {ssd: samsung-pm1743}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: auto}
  - {from: cpu0, to: ssd0, pcie: auto}
policies: {iommu: %s}
"""


def predicted(iommu: str, flows: str) -> lanewise.Prediction:
    return lanewise.predict(read_system(MACHINE % iommu, "t.yaml"), flows)


@pytest.mark.parametrize("flow", ["host0->gpu0", "gpu0->host0"])
def test_the_interval_of_a_copy_of_host_memory_begins_at_the_least_that_was_seen(flow: str) -> None:
    translated, plain = (predicted(mode, flow).rates[0] for mode in ("translate", "passthrough"))
    assert translated.low == pytest.approx(20e9)  # 0.8 of 200 Gb/s
    assert translation.DOUBT in translated.doubt
    assert (translated.rate, translated.high) == (plain.rate, plain.high)
    assert plain.low > 45e9
    assert not plain.doubt


def test_both_directions_of_a_root_port_share_its_translations_and_two_ports_do_not() -> None:
    both = predicted("translate", "host0->gpu0, gpu0->host0")
    two = predicted("translate", "host0->gpu[0-1]")
    assert both.total_low == pytest.approx(20e9, rel=0.01)
    assert two.total_low == pytest.approx(40e9)
    assert both.total == pytest.approx(predicted("off", "host0->gpu0, gpu0->host0").total)


@pytest.mark.parametrize("flow", ["gpu0->gpu1", "ssd0->gpu0", "ssd0->host0"])
def test_peers_and_what_is_slower_than_that_keep_their_interval(flow: str) -> None:
    translated, plain = (predicted(mode, flow).rates[0] for mode in ("translate", "passthrough"))
    assert (translated.low, translated.high, translated.doubt) == (plain.low, plain.high, plain.doubt)
