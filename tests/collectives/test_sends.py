"""Sends to the next rank over NVLink switches: their channels, and what they carry below and above 16 MiB a channel."""

from __future__ import annotations

import pytest
from collectives.collective_systems import gpu_node
from hypothesis import given
from hypothesis import strategies as st

from lanewise.collectives.curve import predict_collective
from lanewise.collectives.model import Collective, CollectiveSettings
from lanewise.collectives.sends import send_channels

MiB = 2.0**20


@pytest.mark.parametrize(
    ("size", "ranks", "channels"),
    [
        (64 * MiB, 2, 16), (256 * MiB, 2, 16), (512 * MiB, 2, 32),  # what two H200 showed: 258, 297 and 342 GB/s
        (8 * MiB, 4, 8), (128 * MiB, 4, 8), (256 * MiB, 4, 16), (512 * MiB, 4, 32),  # four H100: 124, 162, 298, 353
        (64 * MiB, 8, 4), (1, 4, 1), (128 * 1024, 4, 2),
    ],
)  # fmt: skip
def test_channels_of_a_send_are_those_that_the_library_takes(size: float, ranks: int, channels: int):
    assert send_channels(size, ranks, links=18, connected=24) == channels


def test_a_limit_of_eight_channels_gives_a_pair_four_below_128_mib():
    # NCCL_MAX_P2P_NCHANNELS=8 on two H200: 81.2 GB/s at 64 MiB, 161 at 128 MiB
    assert [send_channels(size * MiB, 2, links=18, connected=8) for size in (64, 128)] == [4, 8]


@given(st.integers(1, 2**34), st.integers(2, 16), st.integers(1, 18), st.integers(1, 64))
def test_channels_are_within_what_is_connected(size: int, ranks: int, links: int, connected: int):
    channels = send_channels(size, ranks, links, connected)
    assert 1 <= channels < 2 * connected
    assert send_channels(2 * size, ranks, links, connected) >= channels


def test_more_ranks_send_short_messages_slower_and_long_ones_as_fast():
    curves = [
        predict_collective(gpu_node("h100-sxm"), Collective.SENDRECV, f"gpu[0-{last}]", [64 * MiB, 8192 * MiB]).points
        for last in (2, 7)
    ]
    (three, long_of_three), (eight, long_of_eight) = curves
    assert eight.bus_bandwidth < 0.6 * three.bus_bandwidth
    assert (three.channels, eight.channels) == (8, 4)
    assert eight.limit == "4 channels of NCCL's sends"
    assert long_of_eight.bus_bandwidth == pytest.approx(long_of_three.bus_bandwidth, rel=0.01)


def test_where_no_channel_was_measured_the_range_reaches_what_the_links_carry():
    sizes = [64 * MiB]
    measured = predict_collective(gpu_node("h100-sxm"), Collective.SENDRECV, "gpu[0-7]", sizes).points[0]
    unknown = predict_collective(gpu_node("b200"), Collective.SENDRECV, "gpu[0-7]", sizes).points[0]
    broadcast = predict_collective(gpu_node("b200"), Collective.BROADCAST, "gpu[0-7]", sizes).points[0]
    assert unknown.high / unknown.bus_bandwidth > 2 * measured.high / measured.bus_bandwidth
    assert unknown.high > broadcast.bus_bandwidth


def test_a_machine_is_not_predicted_from_its_own_channels():
    alone = CollectiveSettings(without=frozenset({"h100-vm-4gpus", "h200-vm-2gpus-thirteenth"}))
    sent = predict_collective(gpu_node("h100-sxm"), Collective.SENDRECV, "gpu[0-7]", [64 * MiB], alone).points[0]
    assert any("plans of a channel" in text for text in sent.rests_on)
