"""Small copies of GPUs that nobody measured: what other GPUs of their maker take stands for them."""

from __future__ import annotations

import statistics

import pytest

from lanewise.catalog import builtin
from lanewise.catalog.model import Catalog
from lanewise.perf.latency import SPREAD, Latency, latency
from lanewise.topology.read import read_system


def small_copy(gpu: str, p2p: bool = True, catalog: Catalog | None = None) -> Latency:
    text = f"""
lanewise: 1
system: pair
devices: {{cpu0: {{cpu: milan}}, sw0: {{switch: null}}, "gpu[0-1]": {{gpu: {gpu}}}}}
links:
  - {{from: cpu0, to: sw0, pcie: auto}}
  - {{from: sw0, to: "gpu[0-1]", pcie: auto}}
"""
    return latency(read_system(text, "pair.yaml", catalog=catalog or builtin()), "gpu0", "gpu1", p2p)


def test_a_card_for_servers_takes_what_those_of_its_generation_do() -> None:
    # A30: peers as an A100 (1.99 us), staged copies as two A100 (16.67, and 20.43 and 24.5), within what V100
    # to H200 take.
    peers, staged = small_copy("a30"), small_copy("a30", p2p=False)
    assert (peers.basis, staged.basis) == ("typical", "typical")
    assert peers.api == pytest.approx(1.99e-6, rel=0.01)
    assert staged.api == pytest.approx(statistics.mean((16.67e-6, 22.465e-6)), rel=0.01)
    assert (staged.low, staged.high) == pytest.approx((SPREAD[0] * 14.45e-6, SPREAD[1] * 22.465e-6), rel=0.01)


def test_a_card_for_desktops_takes_what_such_cards_do() -> None:
    # RTX 4090 with a patched driver: 1.26 us (rtx4090-rome); an RTX 6000 Ada takes 1.1, Blackwell 0.37.
    found = small_copy("rtx-4090-p2p", catalog=builtin().without_machine("rtx4090-rome"))
    assert found.api == pytest.approx(1.1e-6, rel=0.01)
    assert found.low is not None
    assert found.low < 0.37e-6
    assert "rtx-6000-ada" in found.rests_on[0]


def test_other_makers_gpus_have_none_and_measured_ones_keep_theirs() -> None:
    assert small_copy("mi210").api is None
    assert small_copy("k40").api is None  # 7.7 us of 2014: what newer ones take says nothing of it
    measured = small_copy("a100-sxm-40gb")
    assert measured.basis == "calibrated"
    assert (measured.low, measured.high) == pytest.approx((0.8 * 1.99e-6, 1.5 * 1.99e-6), rel=0.01)
