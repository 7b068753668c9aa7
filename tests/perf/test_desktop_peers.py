"""Peers through Intel's desktop CPUs, which nobody measured, beside those through Xeons, which were."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.topology.read import read_system


def peers(cpu: str) -> lanewise.FlowRate:
    text = f"""
lanewise: 1
system: desktop
devices: {{cpu0: {{cpu: {cpu}}}, "gpu[0-1]": {{gpu: rtx-5060-ti-p2p}}}}
links: [{{from: cpu0, to: "gpu[0-1]", pcie: gen5 x8}}]
policies: {{peers: system}}
"""
    return lanewise.predict(read_system(text, "desktop.yaml"), "gpu0->gpu1").rates[0]


def test_packets_of_64_bytes_are_only_planned_of_a_desktop_core() -> None:
    # NCCL's table has them for all of Intel's CPUs. Whether a Core splits writes, and what it passes, nobody measured.
    rate, raw = peers("core-12-to-14"), 31.508e9
    assert rate.basis == "planning"
    assert rate.low == pytest.approx(0.25 * raw, rel=1e-3)
    assert rate.high > raw * 0.9 * 256 / 280  # full packets
    assert "was not measured" in rate.doubt


def test_xeons_split_them_as_measured() -> None:
    # A Dell R760 passes 45.2 GB/s at x16, 0.72 of raw; the next host at most what packets of 64 B allow.
    rate = peers("sapphire-rapids")
    assert rate.basis == "calibrated"
    assert rate.low > 20e9
    assert rate.high < 23.1e9
