"""Rings over NVLink: the last step of each loop, which passes nothing on, and measured rings of four to eight ranks."""

from __future__ import annotations

import math

import pytest
from collectives.collective_systems import gpu_node, two_nodes
from hypothesis import given
from hypothesis import strategies as st

from lanewise.collectives.curve import collective_model, predict_collective
from lanewise.collectives.model import Algorithm, Collective, CollectiveSettings
from lanewise.collectives.ring_loops import CHUNK, waited_loops
from lanewise.topology.model import System

MiB, GiB = 2.0**20, 2.0**30
RING = CollectiveSettings(version="2.27.7", algorithm=Algorithm.RING)
IN_LOOPS = (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER)


def bus(ranks: int, size: float, collective: Collective, part: str = "h200-sxm") -> float:
    """GB/s of a ring."""
    curve = predict_collective(gpu_node(part), collective, f"gpu[0-{ranks - 1}]", [size], RING)
    assert curve.points[0].algorithm is Algorithm.RING
    return curve.points[0].bus_bandwidth / 1e9


@given(st.floats(0, 1e4), st.floats(0.1, 100))
def test_links_wait_for_the_first_loops_and_ever_less_for_later_ones(loops: float, drift: float) -> None:
    waited = waited_loops(loops, drift)
    assert 0 <= waited <= loops * (1 + 1e-9)
    assert waited_loops(loops + 1, drift) - waited <= 1 / (1 + loops / drift) + 1e-9
    assert waited_loops(loops * 2, drift) <= 2 * waited * (1 + 1e-9)


def test_waited_loops_are_the_sum_of_their_shares() -> None:
    fine = sum(1 / (1 + (j + 0.5) / 1000 / 3) for j in range(10_000)) / 1000  # the midpoint rule over 10 loops
    assert waited_loops(10.0, 3.0) == pytest.approx(fine, rel=1e-6)
    assert waited_loops(3 * (math.e - 1), 3.0) == pytest.approx(3.0)


@given(st.sampled_from(IN_LOOPS), st.integers(2, 8), st.integers(27, 36))
def test_a_ring_takes_what_its_links_take_and_the_last_steps(collective: Collective, ranks: int, power: int) -> None:
    model = collective_model(gpu_node("h200-sxm"), collective, f"gpu[0-{ranks - 1}]", RING)
    point = model.point(2.0**power)
    links = point.size * collective.bus_factor(ranks) / model.peaks[Algorithm.RING].bus_bandwidth
    loops = point.size / (ranks * point.channels * CHUNK)
    step = CHUNK / 21.2e9  # s of one channel
    waited = point.time - links
    assert step * waited_loops(loops, 2) < waited < step * waited_loops(loops, 4) + 70e-6  # latency of 15 steps


def test_more_ranks_lose_less_and_gathers_twice_what_reductions_do() -> None:
    # All pass the same bytes a rank and loop: the last step is one of n, or of 2 n - 1.
    for ranks in (2, 3, 4, 8):
        lost = {each: 1 / bus(ranks, 4 * GiB, each) - 1 / bus(ranks, 4096 * GiB, each) for each in IN_LOOPS}
        assert lost[Collective.ALL_GATHER] == lost[Collective.REDUCE_SCATTER]
        assert lost[Collective.ALL_GATHER] == pytest.approx(2 * lost[Collective.ALL_REDUCE], rel=0.05)
    for each in IN_LOOPS:
        rates = [bus(ranks, 4 * GiB, each) for ranks in range(2, 9)]
        assert rates == sorted(rates)


@pytest.mark.parametrize(
    ("part", "ranks", "size", "collective", "measured"),
    [
        # Eight H200 of p5en and eight B200 of p6 (stas00/ml-engineering, network/README): rings alone. Neither taught
        # how channels drift; both rise with ranks.
        ("h200-sxm", 4, 8, "all_reduce", 363.3), ("h200-sxm", 5, 8, "all_reduce", 364.4),
        ("h200-sxm", 8, 16, "all_reduce", 367.2), ("h200-sxm", 8, 16, "all_gather", 361.4),
        ("h200-sxm", 8, 16, "reduce_scatter", 362.9),
        ("b200", 4, 8, "all_reduce", 673.2), ("b200", 6, 8, "all_reduce", 677.8), ("b200", 8, 8, "all_reduce", 682.2),
        # Four H200 and four H100 of two virtual machines; pairs taught.
        ("h200-sxm", 4, 1, "all_gather", 325.7), ("h200-sxm", 4, 1, "reduce_scatter", 326.7),
        ("h200-sxm", 4, 1 / 4, "all_gather", 304.9), ("h200-sxm", 4, 1 / 16, "all_gather", 261.7),
        ("h200-sxm", 4, 1 / 16, "all_reduce", 307.0), ("h200-sxm", 4, 1 / 64, "all_reduce", 244.9),
        ("h100-sxm", 4, 1, "all_gather", 324.3), ("h100-sxm", 4, 1 / 16, "reduce_scatter", 260.5),
    ],
)  # fmt: skip
def test_rings_of_four_to_eight_reach_what_was_measured(
    part: str, ranks: int, size: float, collective: str, measured: float
) -> None:
    assert bus(ranks, size * GiB, Collective(collective), part) == pytest.approx(measured, rel=0.035)


def test_a_broadcast_waits_for_each_hop_and_for_no_last_step() -> None:
    def time(ranks: int) -> float:
        return predict_collective(
            gpu_node("h200-sxm"), Collective.BROADCAST, f"gpu[0-{ranks - 1}]", [GiB], RING
        ).points[0].time  # fmt: skip

    assert time(4) - time(2) == pytest.approx(2 * 3.4e-6, rel=0.01)  # NCCL's own latency of a hop
    assert time(8) - time(4) == pytest.approx(4 * 3.4e-6, rel=0.01)


def test_rings_over_nodes_and_switches_that_reduce_have_no_such_step() -> None:
    def rests_on(system: System, ranks: str, algorithm: Algorithm) -> str:
        settings = CollectiveSettings(version="2.27.7", algorithm=algorithm)
        return " ".join(predict_collective(system, Collective.ALL_REDUCE, ranks, [GiB], settings).sources)

    node = gpu_node("h200-sxm")
    assert "drifted apart" in rests_on(node, "gpu[0-7]", Algorithm.RING)
    assert "drifted apart" not in rests_on(node, "gpu[0-7]", Algorithm.NVLS)
    assert "drifted apart" not in rests_on(two_nodes(8, "connectx-7-ndr"), "n[0-1]gpu[0-7]", Algorithm.RING)
