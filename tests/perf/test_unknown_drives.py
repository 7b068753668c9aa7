"""Drives of which nothing is known: what data sheets state of drives for data centres, or of all."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.topology.read import read_system


def writes(cpus: str, gen: int, lanes: int = 4) -> tuple[float, str]:
    text = f"""
lanewise: 1
system: drives
devices: {{{cpus}, ssd0: {{ssd: null}}, gpu0: {{gpu: h200-sxm}}}}
links:
  - {{from: cpu0, to: gpu0, pcie: gen5 x16}}
  - {{from: cpu0, to: ssd0, pcie: gen{gen} x{lanes}}}
"""
    rate = lanewise.predict(read_system(text, "drives.yaml"), "host0->ssd0").rates[0]
    return rate.rate / 1e9, rate.rests_on[0]


@pytest.mark.parametrize(("gen", "share", "raw"), [(3, 0.762, 3.938), (4, 0.495, 7.877), (5, 0.419, 15.75)])
def test_a_server_has_drives_for_data_centres_of_the_slots_generation(gen: int, share: float, raw: float) -> None:
    # They state what they write for good: 6.6 GB/s of Gen5 x4 (PM1743), a client drive 12.7 (T705) into its cache.
    rate, rests_on = writes("cpu0: {cpu: sapphire-rapids}", gen)
    assert rate == pytest.approx(share * raw, rel=0.002)
    assert f"data centre drives of Gen{gen}" in rests_on


def test_two_sockets_that_nobody_named_are_a_servers() -> None:
    one, two = writes("cpu0: {cpu: null}", 5), writes("cpu0: {cpu: null}, cpu1: {cpu: null}", 5)
    assert "data centre" in two[1]
    assert "data centre" not in one[1]
    assert two[0] < 0.7 * one[0]


def test_a_desktop_may_have_any_drive() -> None:
    # The median of all 41 that state their writes.
    assert writes("cpu0: {cpu: Ryzen 9 9950X}", 5)[0] == pytest.approx(0.635 * 15.75, rel=0.002)
