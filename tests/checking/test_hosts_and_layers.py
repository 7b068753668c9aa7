"""Collectives between hosts, layers above a drive, series of messages, versions by their latencies."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api
from lanewise.checking.checkup import Checkup


def typed(folder: Path, *rows: str, head: str = "") -> Checkup:
    path = folder / "figures.yaml"
    text = f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return api.check([path])


BETWEEN = 'path: all_reduce, flows: "gpu[0-15]->gpu[0-15]", bytes: 16G, hosts: 2, line: 3200 Gb/s, value: {} GB/s'
H100, VIRTUAL = "gpus: NVIDIA H100 80GB HBM3\n", "stated: {virtual machine: yes}\n"


@pytest.mark.parametrize(("rate", "causes"), [(3, ["transport", "staged"]), (30, ["staged", "transport"])])
def test_a_slow_collective_between_hosts_goes_over_sockets_or_through_host_memory(
    tmp_path: Path, rate: int, causes: list[str]
):
    assert first_causes(typed(tmp_path, BETWEEN.format(rate), head=H100)) == causes
    virtual = first_causes(typed(tmp_path, BETWEEN.format(rate), head=H100 + VIRTUAL))
    assert virtual == causes, "clouds' machines are all virtual"


def test_virtual_machines_between_which_rdma_was_measured_use_no_sockets(tmp_path: Path):
    rdma = 'path: ib_write_bw, flows: "host0->host1", value: 380 Gb/s, line: 400 Gb/s'
    causes = first_causes(typed(tmp_path, rdma, BETWEEN.format(30), head=H100 + VIRTUAL))
    assert causes == ["staged", "virtual machine"]


def test_hosts_that_carry_more_in_another_row_have_gpudirect(tmp_path: Path):
    rows = (BETWEEN.format(300) + ", algorithm: NVLSTree", BETWEEN.format(30) + ", algorithm: Ring")
    assert first_causes(typed(tmp_path, *rows, head=H100))[0] not in ("transport", "staged")


SERIES = [f'path: write, flows: "host0->host1", value: {rate} Gb/s, bytes: {size}, line: 400 Gb/s'
          for rate, size in ((163, "512K"), (381, "8M"), (393, "128M"))]  # fmt: skip


def test_small_messages_of_a_program_whose_large_ones_fill_the_line_are_not_slow(tmp_path: Path):
    assert verdict_of(typed(tmp_path, *SERIES)) == "ok"
    assert verdict_of(typed(tmp_path, SERIES[0])) == "slow"
    assert verdict_of(typed(tmp_path, SERIES[0], SERIES[2].replace("393", "163"))) == "slow"


@pytest.mark.parametrize(("rate", "verdict"), [(109, "ok"), (60, "slow")])
def test_one_function_of_the_card_of_a_spark_has_four_lanes(tmp_path: Path, rate: int, verdict: str):
    row = f'path: ib_write_bw, flows: "host0->host1", value: {rate} Gb/s, line: 200 Gb/s'
    assert verdict_of(typed(tmp_path, row, head="gpus: NVIDIA GB10\n")) == verdict
    assert verdict_of(typed(tmp_path, row)) == "slow"


@pytest.mark.parametrize(("rate", "verdict"), [("1.4M", "ok"), ("1.2M", ""), ("0.9M", "slow")])
def test_a_layer_is_fine_with_nine_tenths_of_the_native_drive(tmp_path: Path, rate: str, verdict: str):
    row = 'path: {}, flows: "nvme0n1->host0", value: {} IOPS, bytes: 512'
    checkup = typed(tmp_path, row.format("native", "1.5M"), row.format("ublk", rate))
    assert [result.verdict.value for result in checkup.results] == ([verdict] if verdict else [])


VERSIONS = 'path: {} SPDK initiator, flows: "nvme0n1->host0", value: {} us, bytes: 4K, depth: 1'


def test_the_latency_of_one_program_in_two_versions_is_compared_as_a_rate_is(tmp_path: Path):
    rows = [VERSIONS.format(*each) for each in (("bace05499", 27), ("43022da37", 42))]
    assert verdict_of(typed(tmp_path, *rows)) == "slow"
    assert "host" in {cause.key[0] for cause in typed(tmp_path, *rows).findings[0].causes}, "one request at a time"
    other = VERSIONS.format("bace05499", 27).replace("SPDK", "kernel")
    assert not typed(tmp_path, rows[1], other).results, "another program"


def test_trays_that_differ_by_their_numbers_point_at_a_link_of_one(tmp_path: Path):
    row = BETWEEN.replace("path: all_reduce", "path: \"all_reduce, trays {}\"").replace("gpu[0-15]", "gpu[0-7]")
    rows = (row.format("02 and 03", 51), row.format("06 and 07", 684))
    assert first_causes(typed(tmp_path, *rows, head="gpus: NVIDIA GB300\n")) == ["nvlink", "link"]


def test_several_gpus_that_count_less_than_one_wait_for_each_other(tmp_path: Path):
    row = 'path: "7B, {} GPUs", flows: "gpu[0-{}]->gpu[0-{}]", value: {} tokens/s'
    rows = ['path: "7B, one GPU", flows: "gpu0->gpu0", value: 72 tokens/s', row.format("four", 3, 3, 31)]
    assert first_causes(typed(tmp_path, *rows, head="gpus: NVIDIA A100 80GB PCIe\n")) == ["software", "link"]


@pytest.mark.parametrize(("size", "rate", "verdict"), [("64M", 265, "ok"), ("128M", 283, "ok"), ("1G", 265, "unknown")])
def test_two_ranks_need_longer_messages_than_eight(tmp_path: Path, size: str, rate: int, verdict: str):
    row = f'path: all_reduce, flows: "gpu[0-1]->gpu[0-1]", value: {rate} GB/s, bytes: {size}'
    assert verdict_of(typed(tmp_path, row, head="gpus: NVIDIA H200\n")) == verdict


def test_rings_of_cards_that_may_have_a_bridge_are_fine_with_what_pcie_leaves(tmp_path: Path):
    row = 'path: all_reduce, flows: "gpu[0-3]->gpu[0-3]", value: 9.2 GB/s, bytes: 80M'
    assert verdict_of(typed(tmp_path, row, head="gpus: NVIDIA GeForce RTX 2080 Ti\n")) == "ok"
    assert verdict_of(typed(tmp_path, row, head="gpus: Tesla V100-SXM2-16GB\n")) != "ok"


@pytest.mark.parametrize(("rate", "first"), [("7.08", "pageable"), ("27.2", "link")])
def test_a_program_whose_copies_have_the_rate_of_a_core_has_pageable_memory(tmp_path: Path, rate: str, first: str):
    path = tmp_path / "question.txt"
    time = 512 / float(rate)
    path.write_text(f"H100 SXM server, our loader:\nupload to cuda:0 512 MB: {time:.2f} ms, {rate} GB/s\n", "utf-8")
    assert first_causes(api.check([path]))[0] == first
