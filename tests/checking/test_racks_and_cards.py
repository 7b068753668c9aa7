"""Trays of a rack, cards that NCCL counts, experts over RDMA, channels of a CPU, pairs below one bridge."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api
from lanewise.checking.checkup import Checkup


def checked(folder: Path, head: str, *rows: str) -> Checkup:
    path = folder / "question.txt"
    text = f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return api.check([path])


TRAYS = 'flows: "gpu[0-3]->gpu[0-3]", value: {} GB/s, path: "all_reduce{}", bytes: {}, ranks: 8, hosts: 2'


@pytest.mark.parametrize(
    ("rate", "words", "size", "verdict"),
    [
        (685, "", "512 MiB", "ok"),  # whatever joins them
        (51, "", "512 MiB", "unknown"),  # a network may join them
        (51, ", one NVLink domain", "512 MiB", "slow"),
        (51, ", one NVLink domain", "16 MiB", "slow"),  # below NCCL's slowest protocol
        (200, ", one NVLink domain", "16 MiB", "unknown"),
        (316, ", MNNVL off, RDMA", "1 GiB", "unknown"),
        (400, ", in two racks of one NVLink domain each", "1 GiB", "unknown"),
    ],
)
def test_trays_of_one_nvlink_domain_are_judged_by_nvlinks(
    tmp_path: Path, rate: int, words: str, size: str, verdict: str
) -> None:
    assert verdict_of(checked(tmp_path, "gpus: GB300\n", TRAYS.format(rate, words, size))) == verdict


@pytest.mark.parametrize(("fact", "verdict"), [
    ("MNNVL: cliqueSize 8", "slow"), ("MNNVL: off", "unknown"), ("NCCL_MNNVL_ENABLE: 0", "unknown"),
    ("rack: NVL72", "unknown"),
])  # fmt: skip
def test_a_log_that_counts_the_gpus_of_a_domain_says_that_nvlinks_join_them(
    tmp_path: Path, fact: str, verdict: str
) -> None:
    head = f"gpus: GB200\nstated: {{{fact}}}\n"
    assert verdict_of(checked(tmp_path, head, TRAYS.format(51, "", "512 MiB"))) == verdict


NODES = 'flows: "gpu[0-3]->gpu[0-3]", value: {} GB/s, path: "all_reduce{}", {}ranks: 8, hosts: 2'


@pytest.mark.parametrize(
    ("found", "rate", "verdict"), [(4, 72.5, "ok"), (3, 72.5, "unknown"), (4, 60, "unknown"), (4, 30, "slow")]
)
def test_less_of_the_line_is_fine_where_nccl_counts_every_card(
    tmp_path: Path, found: int, rate: float, verdict: str
) -> None:
    head = f'machine: Perlmutter\nstated: {{provider: "fabric is cxi (found {found} nics)"}}\n'
    assert verdict_of(checked(tmp_path, head, NODES.format(rate, "", "bytes: 4 GiB, "))) == verdict


@pytest.mark.parametrize(("words", "verdict"), [(", average of all sizes", "unknown"), (" average", "slow")])
def test_an_average_over_all_sizes_is_no_long_message(tmp_path: Path, words: str, verdict: str) -> None:
    assert verdict_of(checked(tmp_path, "machine: Perlmutter\n", NODES.format(19.6, words, ""))) == verdict


@pytest.mark.parametrize(
    ("rate", "hosts", "verdict"),
    [(6.5, 2, "slow"), (34, 2, "unknown"), (43, 2, "ok"), (81, 2, "ok"), (101, 2, "fast"), (81, 4, "fast")],
)
def test_deep_ep_prints_the_rate_of_a_rank_with_what_stays_on_its_host(
    tmp_path: Path, rate: float, hosts: int, verdict: str
) -> None:
    row = f'flows: "host0->host1", value: {rate} GB/s, memory: GPU, path: DeepEP dispatch RDMA, hosts: {hosts}'
    checkup = checked(tmp_path, "gpus: 8x B200\nstated: {cloud: GCP, network cards: 8}\n", row)
    assert verdict_of(checkup) == verdict
    assert ("port" in first_causes(checkup)[:1]) is (rate == 6.5)


@pytest.mark.parametrize(("flow", "rate", "verdict"), [
    ("host0:0->host0:0", 554, "ok"), ("host0:0->host0:0", 460, "unknown"), ("host0:1->host0:0", 554, "unknown"),
])  # fmt: skip
def test_a_node_with_more_than_three_of_four_channels_carry_has_none_of_a_fourth_empty(
    tmp_path: Path, flow: str, rate: int, verdict: str
) -> None:
    row = f'flows: "{flow}", value: {rate} GB/s, path: mlc read only'
    assert verdict_of(checked(tmp_path, "stated: {cpu: 2x Xeon 6980P}\n", row)) == verdict


PAIR = 'flows: "gpu[{}]->gpu[{}]", value: {} GB/s, path: "all_reduce, {}", ranks: 2, bytes: 64M, p2p: {}'


@pytest.mark.parametrize(
    ("near", "far", "verdict"),
    [("same bridge (PIX)", "other bridge", "slow"), ("same switch", "across sockets", "slow"),
     ("other bridge", "same bridge", "unknown"), ("first pair", "second pair", "unknown"),
     ("same switch", "across sockets, NVLink", "unknown")],
)  # fmt: skip
def test_a_pair_below_one_bridge_is_no_slower_than_one_further_apart(
    tmp_path: Path, near: str, far: str, verdict: str
) -> None:
    rows = PAIR.format("0-1", "0-1", 3.3, near, "false"), PAIR.format("2,4", "2,4", 5.4, far, "false")
    checkup = checked(tmp_path, "gpus: 8x Tesla V100S PCIe 32GB\n", *rows)
    assert verdict_of(checkup) == verdict
    assert (first_causes(checkup)[:1] == ["shared"]) is (verdict == "slow")


@pytest.mark.parametrize(
    ("gpus", "time", "size", "verdict"),
    [("4x RTX 3090", "7.08 ms", "7.8 MB", "slow"), ("4x RTX 3090", "1.44 ms", "7.8 MB", "unknown"),
     ("4x RTX 3090", "7.08 ms", "78 MB", "unknown"), ("4x A100 SXM4", "7.08 ms", "7.8 MB", "unknown"),
     ("", "7.08 ms", "7.8 MB", "unknown")],
)  # fmt: skip
def test_the_time_of_a_ring_of_cards_has_a_limit_by_its_bytes(
    tmp_path: Path, gpus: str, time: str, size: str, verdict: str
) -> None:
    row = f'flows: "gpu[0-3]->gpu[0-3]", value: {time}, path: all_reduce, bytes: {size}, ranks: 4'
    checkup = checked(tmp_path, f"gpus: {gpus}\n" if gpus else "", row)
    assert any(result.verdict == "slow" for result in checkup.results) is (verdict == "slow")


def test_more_ranks_than_the_flows_lead_around_are_on_hosts_that_nobody_counts(tmp_path: Path) -> None:
    row = 'flows: "gpu[0-3]->gpu[0-3]", value: 7.08 ms, path: all_reduce, bytes: 7.8 MB, ranks: 16'
    assert not any(result.verdict == "slow" for result in checked(tmp_path, "gpus: 4x RTX 3090\n", row).results)


@pytest.mark.parametrize("size", ["32 MiB", "512 MiB"])
def test_buffers_that_a_cache_holds_show_no_channels(tmp_path: Path, size: str) -> None:
    row = f'flows: "host0:0->host0:0", value: 554 GB/s, path: mlc read only, bytes: {size}'
    assert verdict_of(checked(tmp_path, "stated: {cpu: 2x Xeon 6980P}\n", row)) == "unknown"


@pytest.mark.parametrize(("wanted", "verdict"), [(50, "slow"), (8, "ok"), (100, "ok")])
def test_pageable_memory_that_misses_what_pinned_memory_would_give_is_slow(
    tmp_path: Path, wanted: int, verdict: str
) -> None:
    row = f'flows: "host0->gpu0", value: 9.3 GB/s, host memory: pageable, expected: {wanted} GB/s'
    checkup = checked(tmp_path, "stated: {slot: gen5 x16}\n", row)
    assert verdict_of(checkup) == verdict
    assert ("pageable" in first_causes(checkup)) is (verdict == "slow")
