"""What NCCL chooses: against its source and the switches between algorithms that users saw."""

from __future__ import annotations

import pytest
from collectives.collective_systems import gpu_node, two_nodes

from lanewise.collectives.constants import compute_capability, library_named
from lanewise.collectives.curve import predict_collective
from lanewise.collectives.model import Algorithm, Collective, CollectiveCurve, CollectiveSettings, Protocol
from lanewise.collectives.rings import disjoint_rings
from lanewise.collectives.trees import busiest_node
from lanewise.errors import FormatError

MiB, GiB = 2.0**20, 2.0**30


def curve(part: str, ranks: int, version: str, *sizes: float, links: int = 18) -> CollectiveCurve:
    settings = CollectiveSettings(version=version)
    return predict_collective(
        gpu_node(part, links), Collective.ALL_REDUCE, f"gpu[0-{ranks - 1}]", sizes or [8 * GiB], settings
    )


@pytest.mark.parametrize(
    ("part", "ranks", "algorithm"),
    [
        # Eight of p5en and p6-b200, NCCL 2.27.7 (github.com/stas00/ml-engineering, network).
        ("h200-sxm", 4, Algorithm.RING),
        ("h200-sxm", 5, Algorithm.NVLS),
        ("b200", 5, Algorithm.RING),
        ("b200", 6, Algorithm.NVLS),
    ],
)
def test_nvls_begins_at_as_many_gpus_as_users_saw(part: str, ranks: int, algorithm: Algorithm) -> None:
    assert curve(part, ranks, "2.27.7").points[0].algorithm is algorithm


def test_one_hopper_node_goes_from_ring_ll_to_nvls_at_two_mebibytes() -> None:
    short, long = curve("h200-sxm", 8, "2.27.7", MiB, 2 * MiB).points
    assert (short.algorithm, short.protocol) == (Algorithm.RING, Protocol.LL)
    assert (long.algorithm, long.protocol) == (Algorithm.NVLS, Protocol.SIMPLE)


def test_channels_are_those_of_the_log() -> None:
    # Two H200: "24 coll channels"; 8 NVLS heads for 8 GPUs.
    assert curve("h200-sxm", 2, "2.27.7").points[0].channels == 24
    assert curve("h200-sxm", 8, "2.27.7").points[0].channels == 8


def test_ampere_has_no_nvls() -> None:
    assert {point.algorithm for point in curve("a100-sxm-80gb", 8, "", MiB, GiB, links=12).points} <= {
        Algorithm.RING, Algorithm.TREE,
    }  # fmt: skip


def test_two_nodes_take_nvls_trees_and_gathers_take_rings() -> None:
    system = two_nodes(8, "connectx-7-ndr")
    reduce = predict_collective(system, Collective.ALL_REDUCE, "n[0-1]gpu[0-7]", [8 * GiB])
    gather = predict_collective(system, Collective.ALL_GATHER, "n[0-1]gpu[0-7]", [8 * GiB])
    assert reduce.points[0].algorithm is Algorithm.NVLS_TREE
    assert gather.points[0].algorithm is Algorithm.RING


def test_efa_carries_simple_alone_and_rings_from_three_nodes_on() -> None:
    two = predict_collective(two_nodes(8, "efa-400"), Collective.ALL_REDUCE, "n[0-1]gpu[0-7]", [1024.0, GiB])
    three = predict_collective(two_nodes(8, "efa-400", 3), Collective.ALL_REDUCE, "n[0-2]gpu[0-7]", [1024.0, GiB])
    assert {point.protocol for point in (*two.points, *three.points)} == {Protocol.SIMPLE}
    assert {point.algorithm for point in three.points} == {Algorithm.RING}


def test_forced_algorithms_run() -> None:
    settings = CollectiveSettings(algorithm=Algorithm.RING)
    forced = predict_collective(gpu_node("h100-sxm"), Collective.ALL_REDUCE, "gpu[0-7]", [GiB], settings)
    assert forced.points[0].algorithm is Algorithm.RING


def test_constants_follow_the_version() -> None:
    assert library_named("NCCL", "2.27.7").versions == "2.20 to 2.27"
    assert library_named("NCCL", "2.28.3+cuda13.0").versions == "2.28 to 2.30"
    assert library_named("NCCL") == library_named("NCCL", "2.30")
    assert library_named("NCCL", "2.31.1").title == "NCCL 2.31.1 by the constants of 2.28 to 2.30"
    assert library_named("NCCL", "2.18").title == "NCCL 2.18 by the constants of 2.20 to 2.27"
    with pytest.raises(FormatError, match="'new' is not a version of NCCL"):
        library_named("NCCL", "new")


def test_the_longest_word_of_a_part_decides_its_capability() -> None:
    assert compute_capability(None, "a100-pcie-80gb") == 80  # not that of an a10
    assert compute_capability(None, "l40s") == 89
    assert compute_capability("nvlink4", "whatever") == 90
    assert compute_capability(None, "whatever") == 0


@pytest.mark.parametrize(("nodes", "bytes_"), [(2, 1.0), (3, 1.5), (4, 2.0), (16, 2.0)])
def test_the_busiest_card_of_two_trees(nodes: int, bytes_: float) -> None:
    # Two nodes: each sends its half up one tree and the result down the other. Three: GB200 partitions reach 0.63 of
    # the cards' rate (NVIDIA/nccl#1801), 1 / 1.5 at most.
    assert busiest_node(nodes) == bytes_


def test_rings_over_direct_links_use_each_link_once() -> None:
    complete = {(a, b): 1 for a in "abcdefgh" for b in "abcdefgh" if a != b}
    assert disjoint_rings(tuple("abcdefgh"), complete)[0] == 7
    square = {pair: 2 for a, b in ("ab", "bc", "cd", "da") for pair in ((a, b), (b, a))}
    assert disjoint_rings(tuple("abcd"), square)[0] == 4
    assert disjoint_rings(tuple("abc"), {("a", "b"): 1, ("b", "a"): 1, ("b", "c"): 1, ("c", "b"): 1})[0] == 0
