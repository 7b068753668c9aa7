"""Channels of RCCL: rings of a board that fit no table of its, and sends to another node."""

from __future__ import annotations

import pytest

from lanewise.collectives.curve import predict_collective
from lanewise.collectives.model import Collective, CollectiveSettings
from lanewise.collectives.rccl import ring_channels
from lanewise.topology.model import System
from lanewise.topology.read import read_system

GIB = 2.0**30


@pytest.fixture(scope="module")
def boards() -> System:
    """Two boards of eight MI300X, a card of 400 Gb/s for each GPU."""
    return read_system(
        """
lanewise: 1
system: two-boards
hosts: [n0, n1]
devices:
  n0cpu0: {cpu: null, host: n0}
  n1cpu0: {cpu: null, host: n1}
  "n[0-1]sw[0-7]": {switch: null}
  "n[0-1]gpu[0-7]": {gpu: mi300x}
  "n[0-1]nic[0-7]": {nic: null}
  net: {netswitch: null}
links:
  - {from: "n[0-1]cpu0", to: "n[0-1]sw[0-7]", pairs: true, pcie: gen5 x16}
  - {from: "n[0-1]sw[0-7]", to: "n[0-1]gpu[0-7]", pairs: true, pcie: gen5 x16}
  - {from: "n[0-1]sw[0-7]", to: "n[0-1]nic[0-7]", pairs: true, pcie: gen5 x16}
  - {mesh: "n0gpu[0-7]", nvlink: 1}
  - {mesh: "n1gpu[0-7]", nvlink: 1}
  - {from: "n[0-1]nic[0-7]", to: net, network: 400 Gb/s}
""",
        "two-boards.yaml",
    )


def rate(system: System, ranks: str, collective: Collective = Collective.ALL_REDUCE) -> float:
    return predict_collective(system, collective, ranks, [8 * GIB]).points[0].bus_bandwidth


@pytest.mark.parametrize(("ranks", "channels"), [(2, None), (3, 8), (4, None), (5, 4), (6, 4), (7, 4), (8, None)])
def test_rings_that_no_table_has_run_on_few_channels(ranks: int, channels: int | None) -> None:
    assert ring_channels(ranks) == channels


def test_a_fifth_gpu_of_a_board_slows_a_ring_down(boards: System) -> None:
    rates = {count: rate(boards, f"n0gpu[0-{count - 1}]") for count in range(2, 9)}
    assert rates[5] < rates[2] < rates[3] < rates[4] < rates[8]
    assert rates[5] == pytest.approx(rates[7], rel=0.05)
    point = predict_collective(boards, Collective.ALL_REDUCE, "n0gpu[0-4]", [8 * GIB]).points[0]
    assert point.limit == "4 channels of RCCL's ring"


def test_sends_of_a_board_have_channels_of_their_own(boards: System) -> None:
    assert rate(boards, "n0gpu[0-4]", Collective.ALL_TO_ALL) > 2 * rate(boards, "n0gpu[0-4]")


def test_a_send_to_another_node_waits_for_its_two_channels_and_a_ring_does_not(boards: System) -> None:
    point = predict_collective(boards, Collective.SENDRECV, "n[0-1]gpu0", [8 * GIB]).points[0]
    assert (point.channels, point.limit) == (2, "2 channels of RCCL's sends to another node")
    assert point.bus_bandwidth < 0.6 * rate(boards, "n[0-1]gpu0")
    assert point.high > 1.3 * point.bus_bandwidth


@pytest.mark.parametrize("machine", ["mi355x-rccl-node", "mi355x-pollara-pair"])
def test_each_machine_is_predicted_from_the_other(boards: System, machine: str) -> None:
    settings = CollectiveSettings(without=frozenset({machine}))
    point = predict_collective(boards, Collective.ALL_REDUCE, "n0gpu[0-4]", [8 * GIB], settings).points[0]
    (channel,) = [text for text in point.rests_on if "channel of RCCL" in text]
    assert machine not in channel
