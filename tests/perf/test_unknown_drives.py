"""Drives of which nothing is known: what data sheets state of drives for data centres, or of all."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.topology.read import read_system


def of_drive(cpus: str, gen: int | str, flow: str = "host0->ssd0") -> tuple[float, str]:
    text = f"""
lanewise: 1
system: drives
devices: {{{cpus}, ssd0: {{ssd: null}}, gpu0: {{gpu: h200-sxm}}}}
links:
  - {{from: cpu0, to: gpu0, pcie: auto}}
  - {{from: cpu0, to: ssd0, pcie: "gen{gen} x4"}}
"""
    rate = lanewise.predict(read_system(text, "drives.yaml"), flow).rates[0]
    return rate.rate / 1e9, rate.rests_on[0]


@pytest.mark.parametrize(("gen", "share", "raw"), [(3, 0.762, 3.938), (4, 0.495, 7.877), (5, 0.419, 15.75)])
def test_a_server_has_drives_for_data_centres_of_the_slots_generation(gen: int, share: float, raw: float) -> None:
    # They state what they write for good: 6.6 GB/s of Gen5 x4 (PM1743), a client drive 12.7 (T705) into its cache.
    rate, rests_on = of_drive("cpu0: {cpu: sapphire-rapids}", gen)
    assert rate == pytest.approx(share * raw, rel=0.002)
    assert f"data centre drives of Gen{gen}" in rests_on


def test_two_sockets_that_nobody_named_are_a_servers() -> None:
    one, two = of_drive("cpu0: {cpu: null}", 5), of_drive("cpu0: {cpu: null}, cpu1: {cpu: null}", 5)
    assert "data centre" in two[1]
    assert "data centre" not in one[1]
    assert two[0] < 0.7 * one[0]


def test_a_desktop_may_have_any_drive() -> None:
    # The median of all 41 that state their writes.
    assert of_drive("cpu0: {cpu: Ryzen 9 9950X}", 5)[0] == pytest.approx(0.635 * 15.75, rel=0.002)


@pytest.mark.parametrize(("cpu", "reads", "written", "drives"), [
    ("sapphire-rapids", 6.45, 3.65, "data centre drives up to Gen5"),
    ("cascade-lake-sp", 3.25, 3.0, "data centre drives up to Gen3"),  # none is faster than the slot can be
])  # fmt: skip
def test_a_slot_of_unknown_generation_has_the_median_drive_not_the_newest(
    cpu: str, reads: float, written: float, drives: str
) -> None:
    # Eight drives of Azure's ND H100 v5, whose slots are not stated, read 55.4 and write 33.9 GB/s.
    found = [of_drive(f"cpu0: {{cpu: {cpu}}}", "?", flow) for flow in ("ssd0->host0", "host0->ssd0")]
    assert [rate for rate, _ in found] == pytest.approx([reads, written], rel=0.002)
    assert all(drives in rests_on for _, rests_on in found)
