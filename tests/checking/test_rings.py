"""Collectives beside the peer copies of their own GPUs, and rings over hosts whose messages have some MiB."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import QuestionThread, first_causes, verdict_of

from lanewise.checking.checkup import Checkup
from lanewise.checking.references.lines import with_steps
from lanewise.readers.tool_results import ToolValue, observation


def checkup(folder: Path, *rows: str, head: str = "gpus: NVIDIA GeForce RTX 4090\n") -> Checkup:
    text = f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    return QuestionThread("rows", text, "", (), (), "").check(folder)


def ring(rate: float, gpus: str = "0-1", size: str = "1G", rest: str = "", name: str = "all_reduce") -> str:
    return f'flows: "gpu[{gpus}]->gpu[{gpus}]", value: {rate} GB/s, path: {name}, bytes: {size}{rest}'


def pair(rate: float, flow: str = "gpu0->gpu1", rest: str = "") -> str:
    return f'flows: "{flow}", value: {rate} GB/s{rest}'


def verdict_of_ring(found: Checkup) -> str:
    return next(each.verdict.value for each in found.results if each.row.metric == "bus_bandwidth")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((ring(11), pair(22)), "slow"),
        ((ring(11, size="64M"), pair(22)), "unknown"),  # not the rate of long messages
        ((ring(11, rest=", p2p: false"), pair(22)), "unknown"),  # no peers are meant
        ((ring(11), pair(22, rest=", p2p: false")), "unknown"),
        ((ring(15), pair(22)), "unknown"),  # 0.68: the least of sound machines is 0.70
        ((ring(11, name="alltoall"), pair(22)), "unknown"),
        ((ring(11), pair(22), pair(26, "gpu0<->gpu1")), "unknown"),  # both ways at once the pair has no more
        ((ring(11), pair(22), pair(42, "gpu0<->gpu1")), "slow"),
        ((ring(11), pair(22, "gpu2->gpu3")), "unknown"),  # other GPUs
        ((ring(11, "0-7"), pair(22)), "unknown"),  # the others may hang at the other socket
        ((ring(11, "0-7"), pair(22), pair(22, "gpu0->gpu4")), "slow"),
        ((ring(11, "0-7"), pair(22), pair(12, "gpu0->gpu4")), "unknown"),  # the slowest pair decides
    ],
)
def test_a_ring_keeps_most_of_the_slowest_pair_of_peers(rows: tuple[str, ...], expected: str, tmp_path: Path):
    found = checkup(tmp_path, *rows)
    assert verdict_of_ring(found) == expected
    if expected == "slow":
        assert first_causes(found)[0] == "peers"


def test_a_pair_with_a_bridge_says_nothing_of_a_ring_over_pcie(tmp_path: Path):
    head = "gpus: NVIDIA A100 80GB PCIe\n"
    rows = ring(12, "0-3"), pair(250), pair(255, "gpu1->gpu2")
    assert verdict_of_ring(checkup(tmp_path, *rows, head=head)) == "unknown"


# As p2pBandwidthLatencyTest and nccl-tests print it.
MATRIX = """[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA GeForce RTX 4090, pciBusID: 1, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA GeForce RTX 4090, pciBusID: 21, pciDeviceID: 0, pciDomainID:0
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 915.94  25.02
     1  25.01 916.48
./all_reduce_perf -b 1G -e 1G -g 2
# nThread 1 nGpus 2 minBytes 1073741824 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20
# Using devices
#  Rank  0 Group  0 Pid   8033 on         vm device  0 [0x01] NVIDIA GeForce RTX 4090
#  Rank  1 Group  0 Pid   8033 on         vm device  1 [0x21] NVIDIA GeForce RTX 4090
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
  1073741824     268435456     float     sum      -1  {time}   {rate}   {rate}       0  {time}   {rate}   {rate}       0
"""


@pytest.mark.parametrize(("rate", "expected"), [(11.0, "slow"), (24.0, "ok")])
def test_a_table_of_nccl_is_compared_with_the_matrix_above_it(rate: float, expected: str, tmp_path: Path):
    text = MATRIX.format(time=round(2**30 / rate / 1e3, 1), rate=rate)
    found = QuestionThread("tools", text, "", (), (), "").check(tmp_path)
    assert verdict_of_ring(found) == expected


# Captured tables: ranks, line in GB/s, MiB to GB/s (data/evidence: h100-single-two, h100-p5-two, b200-p6-four,
# mi300x-two, of two and four hosts).
SOUND = [
    (2, 50, {4: 27.16, 8: 36.24, 16: 39.9, 32: 41.31}),
    (16, 400, {8: 76.8, 16: 105.52, 32: 143.09, 64: 209.19, 128: 289.16}),
    (32, 400, {8: 35.12, 16: 64.43, 32: 91.19, 64: 156.74, 128: 197.94}),
    (16, 400, {8: 39.1, 16: 63.26, 32: 106.58, 64: 153.1, 128: 173.7}),
]


def over_hosts(size: int, ranks: int, hosts: int = 2):
    value = ToolValue("gpu0->gpu1", "gpu0->gpu1", path="collective", metric="bus_bandwidth")
    return observation("typed in", "all_reduce", value, 1.0, {}, {"bytes": size, "ranks": ranks, "hosts": hosts})


@pytest.mark.parametrize(("ranks", "line", "table"), SOUND)
def test_no_size_of_a_sound_machine_is_below_the_bound(ranks: int, line: float, table: dict[int, float]):
    for size, rate in table.items():
        assert with_steps(over_hosts(size * 2**20, ranks), 0.4e9 * line) < 0.75e9 * rate


@pytest.mark.parametrize("ranks", [2, 16, 64])
def test_the_bound_is_that_of_time_and_grows_to_the_rate_with_the_size(ranks: int):
    sizes = [2**20 * step for step in (4, 16, 64, 200)]
    bounds = [with_steps(over_hosts(size, ranks), 10e9) for size in sizes]
    assert bounds == sorted(bounds)
    assert bounds[-1] < with_steps(over_hosts(2**30, ranks), 10e9) == 10e9
    for size, bound in zip(sizes, bounds, strict=True):
        moved = 2 * (ranks - 1) / ranks * size
        assert bound == pytest.approx(moved / (2 * (ranks - 1) * 25e-6 + moved / 10e9))
    assert with_steps(over_hosts(sizes[0], ranks, hosts=1), 10e9) == 10e9


@pytest.mark.parametrize(
    ("size", "rate", "expected"),
    [("128M", 1.6, "slow"), ("4M", 9.5, "unknown"), ("4M", 5, "slow"), ("1M", 1, "unknown"), ("128M", 22, "ok")],
)
def test_one_gpu_on_each_of_two_hosts_is_compared_with_the_line_less_its_steps(
    size: str, rate: float, expected: str, tmp_path: Path
):
    text = ring(rate, "0", size, ", ranks: 2, hosts: 2, line: 200 Gb/s").replace("[0]", "0")
    found = checkup(tmp_path, text, head="gpus: NVIDIA A100-SXM4-80GB\n")
    assert verdict_of(found) == expected
    assert expected != "slow" or first_causes(found) == ["transport", "staged"]


def test_boards_over_hosts_are_judged_from_some_mib_on(tmp_path: Path):
    rest = ", ranks: 16, hosts: 2, line: 8x400 Gb/s"
    head = "gpus: NVIDIA H100 80GB HBM3\n"
    for size, rate, expected in (("64M", 20, "slow"), ("64M", 200, "unknown"), ("1M", 1, "unknown")):
        assert verdict_of_ring(checkup(tmp_path, ring(rate, "0-7", size, rest), head=head)) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((ring(6.4, "0-3"), pair(26.3)), "slow"),  # a quarter of a near pair: what host memory gives
        ((ring(9.5, "0-3"), pair(26.3)), "unknown"),  # far ones may cross sockets over lesser links
        ((ring(6.4, "0-3"), ring(23.4), pair(26.3, rest=", p2p: false")), "unknown"),
        ((ring(6.4, "0-3", rest=", p2p: false"), pair(26.3)), "unknown"),
    ],
)
def test_a_ring_of_more_gpus_keeps_a_third_of_a_near_pair(rows: tuple[str, ...], expected: str, tmp_path: Path):
    found = checkup(tmp_path, *rows)
    assert verdict_of_ring(found) == expected
    assert expected != "slow" or first_causes(found)[0] == "peers"


# Captured: MB to GB/s of two GPUs (data/evidence/a100-pairs-nccl, benchmarks/runs/2026-11-27-two-gpus).
SOUND_PAIRS = [
    ("NVIDIA A100-SXM4-80GB", {12 * 2**30: 208}),
    ("NVIDIA H200", {2**26: 269, 2**27: 285, 2**28: 301, 2**29: 316}),
]


@pytest.mark.parametrize(("title", "rates"), SOUND_PAIRS)
def test_two_gpus_of_a_board_are_fine_at_what_sound_ones_have(title: str, rates: dict[int, float], tmp_path: Path):
    for size, rate in rates.items():
        found = checkup(tmp_path, ring(rate, size=str(size)), head=f"gpus: {title}\n")
        assert verdict_of_ring(found) == "ok"


def test_half_of_what_two_gpus_of_a_board_reach_is_not_fine(tmp_path: Path):
    for size, rate in (("64M", 60), ("256M", 80), ("8G", 100)):
        assert verdict_of_ring(checkup(tmp_path, ring(rate, size=size), head="gpus: NVIDIA A100-SXM4-80GB\n")) != "ok"


@pytest.mark.parametrize(
    ("rate", "size", "expected"),
    [(28.5, "16G", "slow"), (34.0, "16G", "unknown"), (48.4, "1G", "ok"), (20, "1M", "unknown")],
)
def test_sends_over_hosts_are_compared_with_a_share_of_the_line(rate: float, size: str, expected: str, tmp_path: Path):
    rest = ", ranks: 16, hosts: 2, line: 8x400 Gb/s"
    rows = (ring(rate, "0-7", size, rest, "sendrecv"), ring(380, "0-7", "16G", rest))
    found = checkup(tmp_path, *rows, head="gpus: NVIDIA H100 80GB HBM3\n")
    assert next(each.verdict.value for each in found.results if each.row.scenario == "sendrecv") == expected
    assert expected != "slow" or first_causes(found)[0] == "setting"
