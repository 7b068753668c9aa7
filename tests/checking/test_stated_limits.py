"""Rows that somebody calls expected, published or a limit, and what the others are beside them."""

from __future__ import annotations

import pytest

from lanewise import api

HEAD = "lanewise-rows: 1\n"
A100, MI300X, RTX = ("gpus: NVIDIA A100-SXM4-80GB\n", "gpus: AMD Instinct MI300X\n", "gpus: NVIDIA GeForce RTX 4090\n")


def verdicts(tmp_path, *rows, gpus=""):
    path = tmp_path / "rows.txt"
    path.write_text(HEAD + gpus + "rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows))
    return [str(result.verdict) for result in sorted(api.check([path]).results, key=lambda each: each.row.scenario)]


@pytest.mark.parametrize(("value", "verdict"), [("72 tokens/s", "slow"), ("135 tokens/s", "ok")])
def test_counts_are_compared_with_what_is_expected_of_the_same_work(tmp_path, value, verdict):
    expected = 'path: "expected, 7B llama-2", flows: "gpu0->gpu0", value: 140 tokens/s'
    mine = f'path: "my own, 7B llama-2", flows: "gpu0->gpu0", value: {value}'
    assert verdicts(tmp_path, expected, mine, gpus=RTX) == [verdict]


def test_counts_of_other_work_are_not(tmp_path):
    expected = 'path: "expected, 7B llama-2", flows: "gpu0->gpu0", value: 140 tokens/s'
    mine = 'path: "my own, 70B llama-2", flows: "gpu0->gpu0", value: 20 tokens/s'
    assert verdicts(tmp_path, expected, mine, gpus=RTX) == []  # left aside


def test_counts_of_two_conditions_are_compared_where_one_changes(tmp_path):
    rows = [f'path: "{work} decode, {way}", flows: "gpu[0-1]->gpu[0-1]", value: {value} tokens/s'
            for work, way, value in (("story", "PCIe", 70.7), ("story", "bridge", 73.4), ("code", "PCIe", 93.5),
                                     ("code", "bridge", 95.2))]  # fmt: skip
    assert "slow" not in verdicts(tmp_path, *rows, gpus=RTX)


def test_what_meets_a_stated_limit_is_not_slow_by_its_parts(tmp_path):
    limit = 'path: "theoretical, one NVLink", flows: "gpu0->gpu1", value: 25 GB/s'
    for value, verdict in (("20 GB/s", "unknown"), ("9 GB/s", "slow")):
        one = f'path: "x measured, one NVLink", flows: "gpu0->gpu1", value: {value}'
        assert verdicts(tmp_path, limit, one, gpus=A100) == ["unknown", verdict]


def test_wires_are_no_measure_of_an_all_to_all_and_expectations_are_one_of_collectives(tmp_path):
    wires = 'path: theoretical, flows: "gpu[0-15]->gpu[0-15]", value: 12.5 GB/s, ranks: 16, hosts: 2'
    shared = 'path: z alltoall, flows: "gpu[0-15]->gpu[0-15]", value: 3.92 GB/s, ranks: 16, hosts: 2'
    assert verdicts(tmp_path, wires, shared) == ["unknown", "unknown"]
    expected = 'path: expected, flows: "gpu[0-1]->gpu[0-1]", value: 11.1 GB/s'
    own = 'path: store of kind device, flows: "gpu[0-1]->gpu[0-1]", value: 2.28 GB/s'
    assert set(verdicts(tmp_path, expected, own)) == {"unknown", "slow"}


@pytest.mark.parametrize(("value", "verdict"), [("53.8 GB/s", "ok"), ("30 GB/s", "unknown"), ("70 GB/s", "fast")])
def test_drives_that_fill_the_link_of_a_gpu_are_fine(tmp_path, value, verdict):
    assert verdicts(tmp_path, f'flows: "gpu0->vol0", value: {value}', gpus=MI300X) == [verdict]


def test_a_file_system_over_a_network_is_no_card(tmp_path):
    assert verdicts(tmp_path, 'path: dd, flows: "host0->gluster0", value: 38.8 MB/s, bytes: 1M') == ["unknown"]


@pytest.mark.parametrize(("value", "verdict"), [("859 MB/s", "fast"), ("167 MB/s", "unknown")])
def test_an_emmc_is_no_faster_than_its_bus(tmp_path, value, verdict):
    assert verdicts(tmp_path, f'path: dd 2GB, flows: "emmc0->host0", value: {value}, bytes: 50M') == [verdict]


@pytest.mark.parametrize(("names", "first"), [
    (("alltoall, NCCL_P2P_LEVEL=SYS", "alltoall, default (SHM)"), "NCCL_P2P_LEVEL=SYS"),
    (("NIXL UCX", "NIXL MORI_IO"), None),
])  # fmt: skip
def test_a_variable_in_a_name_is_the_first_cause_and_the_name_of_a_program_is_none(tmp_path, names, first):
    path = tmp_path / "rows.txt"
    slow, fine = names
    path.write_text(f'''{HEAD}rows:
  - {{path: "{fine}", flows: "gpu[0-7]->gpu[0-7]", value: 6.13 GB/s, metric: bus_bandwidth, p2p: false}}
  - {{path: "{slow}", flows: "gpu[0-7]->gpu[0-7]", value: 0.899 GB/s, metric: bus_bandwidth, p2p: true}}
''')
    causes = [cause.what for finding in api.check([path]).findings for cause in finding.causes]
    assert not any("MORI_IO" in cause for cause in causes)
    assert first is None or first in causes[0]


@pytest.mark.parametrize(("value", "verdict"), [("104 GB/s", "ok"), ("60 GB/s", "unknown")])
def test_several_gpus_that_copy_as_fast_as_each_alone_are_fine(tmp_path, value, verdict):
    both = f'path: two GPUs, flows: "host0->gpu[0-1]", value: {value}'
    assert verdicts(tmp_path, both, gpus=MI300X) == [verdict]


def test_a_raw_copy_is_a_measurement(tmp_path):
    assert verdicts(tmp_path, 'path: "raw HIP, local", flows: "host0->gpu0", value: 53 GB/s', gpus=MI300X) == ["ok"]
