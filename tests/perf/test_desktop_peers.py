"""Peers through Intel's desktop CPUs, of which one generation was measured, beside those through Xeons."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.topology.read import read_system


def peers(cpu: str, link: str = "gen5 x8", gpu: str = "rtx-5060-ti-p2p") -> lanewise.FlowRate:
    text = f"""
lanewise: 1
system: desktop
devices: {{cpu0: {{cpu: {cpu}}}, "gpu[0-1]": {{gpu: {gpu}}}}}
links: [{{from: cpu0, to: "gpu[0-1]", pcie: {link}}}]
policies: {{peers: system}}
"""
    return lanewise.predict(read_system(text, "desktop.yaml"), "gpu0->gpu1").rates[0]


def test_a_core_of_the_12th_to_14th_generation_passes_what_one_was_measured_to() -> None:
    # Two RTX 5060 Ti at a Core i5-13600KF: 6.79 GB/s of 31.5; the next host at most what packets of 64 B allow.
    rate = peers("core-12-to-14")
    assert rate.rate == pytest.approx(6.8e9)
    assert rate.basis == "calibrated"
    assert rate.high == pytest.approx(22.91e9, rel=0.01)


def test_packets_of_64_bytes_are_only_planned_of_other_desktop_cores() -> None:
    # NCCL's table has them for all of Intel's CPUs. Whether they split writes, and what they pass, nobody measured.
    rate, raw = peers("core-11", "gen4 x8"), 15.754e9
    assert rate.basis == "planning"
    assert rate.low == pytest.approx(0.25 * raw, rel=1e-3)
    assert rate.high > raw * 0.9 * 256 / 280  # full packets
    assert "was not measured" in rate.doubt


@pytest.mark.parametrize(("link", "least"), [("gen5 x16", 0.57), ("gen5 x8", 0.216 * 0.90)])
def test_a_cpu_that_nobody_named_may_be_a_core_where_its_lanes_suffice(link: str, least: float) -> None:
    # A Core has 16 lanes for slots, so x8 for each of two GPUs; of the others the slowest has 0.57 of a link.
    raw = {"gen5 x16": 63.015e9, "gen5 x8": 31.508e9}[link]
    assert peers("null", link, "rtx-5090-p2p").low == pytest.approx(least * raw, rel=0.02)


def test_xeons_split_them_as_measured() -> None:
    # A Dell R760 passes 45.2 GB/s at x16, 0.72 of raw; the next host at most what packets of 64 B allow.
    rate = peers("sapphire-rapids")
    assert rate.basis == "calibrated"
    assert rate.low > 20e9
    assert rate.high < 23.1e9
