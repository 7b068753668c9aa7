"""Tables between bars of results of GPUs, as people make them in posts and READMEs."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api
from lanewise.checking.checkup import Checkup
from lanewise.readers.kinds import read_results

PAIRS = "| Pair | Bandwidth |\n|---|---|\n| GPU0-GPU1 | 22.1 GB/s |\n| GPU 2 → GPU 3 | 271 GB/s |\n"
BARE = "P2P of each pair\n\n| Pair | GB/s |\n|---|---|\n| 0-1 | 22.1 |\n| 2 <-> 3 | 271 |\n"
MODES = """| | P2P disabled | P2P enabled |
|---|---|---|
| Unidirectional | 11.2 GB/s | 1.9 GB/s |
| Bidirectional | 16.3 GB/s | 2.1 GB/s |
"""
BUS = """nccl-tests all_reduce on 8x H100 SXM:

| Size | algbw (GB/s) | busbw (GB/s) |
|---|---|---|
| 1G | 62 | 108.5 |
| 128 MiB | 60 | 105 |
"""
ENDS = "| from | to | GB/s |\n|---|---|---|\n| GPU 0 | GPU 1 | 22.1 |\n| GPU 2 | GPU 2 | 9 |\n| GPU 0 | GPU 3 | 11 |\n"
AT_ONCE = "| Config | Total BW |\n|---|---|\n| GPU0->GPU1 | 54.1 GB/s |\n| GPU0->GPU1 + GPU2->GPU3 | 108.6 GB/s |\n"
NODES = "| Nodes | GPUs | busbw |\n|---|---|---|\n| 1 | 8 | 478 |\n| 2 | 16 | 95 |\n"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (PAIRS, [("gpu0->gpu1", "goodput", "on", 22.1e9), ("gpu2->gpu3", "goodput", "on", 271e9)]),
        (BARE, [("gpu0->gpu1", "goodput", "on", 22.1e9), ("gpu2->gpu3, gpu3->gpu2", "total", "on", 271e9)]),
        (ENDS, [("gpu0->gpu1", "goodput", "on", 22.1e9), ("gpu0->gpu3", "goodput", "on", 11e9)]),
        (AT_ONCE, [("gpu0->gpu1", "goodput", "on", 54.1e9), ("gpu0->gpu1, gpu2->gpu3", "total", "on", 108.6e9)]),
        (MODES, [("gpu0->gpu1", "goodput", "off", 11.2e9), ("gpu0->gpu1", "goodput", "on", 1.9e9),
                 ("gpu0->gpu1, gpu1->gpu0", "total", "off", 16.3e9), ("gpu0->gpu1, gpu1->gpu0", "total", "on", 2.1e9)]),
    ],
)  # fmt: skip
def test_a_pair_of_gpus_is_a_peer_copy(text: str, rows: list[tuple[str, str, str, float]]):
    found = read_results(text, "f").observations
    assert [(row.flow, row.metric, row.how["p2p"], row.value) for row in found] == [
        (flow, metric, p2p, pytest.approx(value)) for flow, metric, p2p, value in rows
    ]


def test_bus_bandwidth_is_of_a_collective_with_its_size_and_ranks():
    rows = read_results(BUS, "f").observations
    assert [(row.scenario, row.metric, dict(row.settings)) for row in rows] == [
        ("all_reduce", "bus_bandwidth", {"bytes": 1 << 30, "ranks": 8}),
        ("all_reduce", "bus_bandwidth", {"bytes": 128 << 20, "ranks": 8}),
    ]
    assert {row.flow.count("->") for row in rows} == {8}


def test_ranks_of_several_hosts_are_no_ring_of_one():
    first, second = read_results(NODES, "f").observations
    assert (first.flow.count("->"), dict(first.settings)) == (8, {"hosts": 1, "ranks": 8})
    assert (second.flow, dict(second.settings)) == ("collective of its GPUs", {"hosts": 2, "ranks": 16})
    assert second.value == pytest.approx(95e9)


def test_pairs_that_a_table_counts_are_a_sum_of_as_many(tmp_path: Path):
    heads = "| Flows | Config | Total BW | Per-flow |\n|---|---|---|---|\n"
    one, near = "| 1 | PIX (same switch) | 53.4 GB/s | 53.4 |\n", "| 2 | PIX (same switch) | 107.5 GB/s | 53.8 |\n"
    far = "| 2 | NODE (same src switch) | 53.8 GB/s | 26.9 |\n"
    crossed = "| 12 | PIX all-to-all | 148.9 GB/s | 12.4 |\n"
    rows = read_results(heads + one + near + crossed, "f").observations
    assert [(row.flow, row.metric, row.value) for row in rows] == [
        ("gpu0->gpu1", "goodput", 53.4e9), ("gpu0->gpu1, gpu2->gpu3", "total", 107.5e9),
    ]  # fmt: skip
    checkup = checked(heads + one + near + far, tmp_path)
    assert (verdict_of(checkup), first_causes(checkup)[0]) == ("slow", "shared")
    assert verdict_of(checked(heads + one + near, tmp_path)) != "slow"


def test_columns_of_the_algorithms_rate_are_left_out():
    text = "| Size | busbw | algbw |\n|---|---|---|\n| 32KiB | 1.4 GB/s | 0.8 GB/s |\n| 1GiB | 460 GB/s | 265 GB/s |"
    rows = read_results(text, "f").observations
    assert [(row.value, row.settings["bytes"]) for row in rows] == [(1.4e9, 32 << 10), (460e9, 1 << 30)]


def checked(text: str, folder: Path) -> Checkup:
    path = folder / "post.md"
    path.write_text(text, "utf-8")
    return api.check([path])


def test_a_board_whose_collective_is_far_below_its_links_is_slow(tmp_path: Path):
    assert verdict_of(checked(BUS, tmp_path)) == "slow"
    assert verdict_of(checked(BUS.replace("108.5", "360").replace("105", "340"), tmp_path)) == "ok"


def test_peer_copies_far_below_staged_ones_are_the_iommu(tmp_path: Path):
    checkup = checked(f"RTX 3090 x2\n\n{MODES}", tmp_path)
    assert (verdict_of(checkup), first_causes(checkup)[0]) == ("slow", "iommu")


def test_pageable_columns_are_judged_as_pageable(tmp_path: Path):
    table = "\n\n| | Pageable | Pinned |\n|---|---|---|\n"
    table += "| H2D | 6.1 GB/s | 25.4 GB/s |\n| D2H | 5.9 GB/s | 26.1 GB/s |\n"
    assert verdict_of(checked(f"Copies of an RTX 4090:{table}", tmp_path)) == "ok"
    checkup = checked(f"Copies of an RTX 4090:{table.replace('25.4', '12.4').replace('26.1', '12.9')}", tmp_path)
    assert (verdict_of(checkup), first_causes(checkup)[0]) == ("slow", "link")
    # Pages that the copy touches first.
    checkup = checked(f"Copies of an RTX 4090:{table.replace('5.9', '2.1')}", tmp_path)
    assert (verdict_of(checkup), first_causes(checkup)[0]) == ("slow", "pageable")


def test_an_expected_column_is_no_measurement_and_a_label_names_the_gpu(tmp_path: Path):
    table = "| Test | Expected | Measured |\n|---|---|---|\n| H2D (A100 PCIe) | 25 GB/s | 12.1 GB/s |\n"
    checkup = checked(f"{table}| D2H (A100 PCIe) | 25 GB/s | 12.9 GB/s |\n", tmp_path)
    assert (verdict_of(checkup), first_causes(checkup)[0]) == ("slow", "link")
    assert "A100 PCIe can Gen4 x16" in checkup.findings[0].title


def test_gpus_called_by_their_models_are_judged_by_these(tmp_path: Path):
    table = "| GPU | H2D (GB/s) |\n|---|---|\n| RTX 3090 | 24.8 |\n| RTX 4060 | 12.9 |\n"
    checkup = checked(table, tmp_path)
    assert {str(result.verdict) for result in checkup.results} == {"ok"}


def test_one_gpu_of_several_has_a_lesser_link_whatever_its_number_in_the_name(tmp_path: Path):
    rows = "".join(f"| {at} | {rate} | {rate} |\n" for at, rate in enumerate((26.1, 26.0, 13.1, 26.1)))
    table = f"| GPU | Host to Device (GB/s) | Device to Host (GB/s) |\n|---|---|---|\n{rows}"
    checkup = checked(table, tmp_path)
    assert (verdict_of(checkup), first_causes(checkup)[0]) == ("slow", "link")
    assert checkup.findings[0].title.startswith("gpu2's link")


MATRIX = """**Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)**

| D\\D | GPU0 | GPU1 |
|:---:|---:|---|
| GPU0 | **740.1** | 48.3 |
| GPU1 | 48.2 | - |
"""


def test_a_matrix_between_bars_is_read_as_the_tools_own():
    rows = [row for row in read_results(MATRIX, "f").observations if row.path == "peer"]
    assert [(row.flow, row.value) for row in rows] == [("gpu0->gpu1", 48.3e9), ("gpu1->gpu0", 48.2e9)]


@pytest.mark.parametrize(
    "name", ["GPU 0: Tesla V100-SXM2-16GB", "- **Hardware:** 2x Tesla V100 SXM2", "Tesla V100-SXM2-16GB"]
)
def test_a_gpu_by_itself_on_a_line_is_that_of_the_results(name: str, tmp_path: Path):
    assert verdict_of(checked(MATRIX, tmp_path)) == "unknown"
    assert verdict_of(checked(f"{name}\n\n{MATRIX}", tmp_path)) == "ok"
