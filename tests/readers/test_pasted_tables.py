"""Tables that people make of results."""

from __future__ import annotations

import pytest

from lanewise.errors import FormatError
from lanewise.readers.kinds import read_results

CRYSTAL = """When using 1.74 of viostor.sys
| Test | Read MB/s | Write MB/s |
| --- | --- | --- |
| Seq Q32T1 | 716.9 | 120.9 |
| 4K Q32T1 | 58.04 | 9.606 |
"""
COLUMNS = "| Test | Local | Ceph |\n|---|---|---|\n| 4k randread | 90k IOPS | ~12k IOPS |\n"
NETWORK = "| test | bitrate |\n|---|---|\n| host to vm | 1.4 Gbits/s |\n"
DRIVES = "| Drive | Read MB/s |\n|---|---|\n| Samsung 980 Pro | 6,900 |\n| Kingston A400 | **500** |\n"
UNIT_IN_LABEL = "| Metric | TCP | RDMA |\n|---|--:|--:|\n| seqread MiB/s | 175 | 448 |\n| qd1 read us | 1417 | 372 |\n"
GPUS = "| GPU | H2D (GB/s) | D2H (GB/s) |\n|---|---|---|\n| 1 | 25.1 | 26.3 |\n"
KBENCH = """            Local-Path   vs                 Longhorn    :              Change
IOPS (Read/Write)
        Random:          58,550 / 40,665   vs           29,420 / 6,897    :   -49.75% / -83.04%
"""


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (CRYSTAL, [("drive->host0", 716.9e6), ("host0->drive", 120.9e6),
                   ("drive->host0", 58.04e6), ("host0->drive", 9.606e6)]),
        (COLUMNS, [("drive->host0", 90e3 * 4096), ("drive->host0", 12e3 * 4096)]),
        (NETWORK, [("host0->host1", 1.4e9 / 8)]),
        (DRIVES, [("Samsung_980_Pro_->host0", 6.9e9), ("Kingston_A400_->host0", 0.5e9)]),
        (UNIT_IN_LABEL, [("drive->host0", 175 * 2**20), ("drive->host0", 448 * 2**20)]),
        (GPUS, [("host0->gpu1", 25.1e9), ("gpu1->host0", 26.3e9)]),
        (KBENCH, [("volume->host0", 58550 * 4096), ("host0->volume", 40665 * 4096),
                  ("volume->host0", 29420 * 4096), ("host0->volume", 6897 * 4096)]),
    ],
)  # fmt: skip
def test_each_rate_of_a_table_is_a_row(text: str, rows: list[tuple[str, float]]) -> None:
    found = read_results(text, "f").observations
    assert [(row.flow, row.value) for row in found] == [(flow, pytest.approx(value)) for flow, value in rows]


def test_sizes_and_requests_in_flight_are_those_of_the_label() -> None:
    rows = read_results(CRYSTAL, "f").observations
    assert [dict(row.settings) for row in rows[::2]] == [
        {"depth": 32, "threads": 1},
        {"bytes": 4096, "depth": 32, "threads": 1},
    ]


def test_rows_are_named_by_what_stands_above_the_table_where_the_label_is_a_test() -> None:
    assert "1.74" in read_results(CRYSTAL, "f").observations[0].scenario
    assert [row.scenario.split()[0] for row in read_results(COLUMNS, "f").observations] == ["Local", "Ceph"]


@pytest.mark.parametrize(
    "text",
    [
        "| Metric | Without | With |\n|---|---|---|\n| Throughput | 175 MB/s | 580 MB/s |\n",
        "| Test | Result |\n|---|---|\n| seq read | 95 % |\n",
        "a | b in MB/s",
    ],
)
def test_a_table_that_does_not_say_what_moves_is_not_read(text: str) -> None:
    with pytest.raises(FormatError):
        read_results(text, "f")


def test_a_tools_own_text_comes_before_tables_that_quote_it() -> None:
    tool = "[  5]   0.00-10.00  sec  4.10 GBytes  3.52 Gbits/sec  0             sender\n"
    assert [row.how["tool"] for row in read_results(NETWORK + tool, "f").observations] == ["iperf"]


def test_thousands_may_be_set_apart_and_changes_are_no_figures() -> None:
    text = "| Measure | default | tuned | change |\n|-|-|-|-|\n| random write IOPS | 3 833 | 11 800 | **3.1×** |\n"
    assert [row.value for row in read_results(text, "f").observations] == pytest.approx([3833, 11800])


@pytest.mark.parametrize(
    ("text", "flows"),
    [
        ("| Test | HDD | SATA SSD |\n|-|-|-|\n| read IOPS | 120 | 90 000 |\n", ["HDD_->host0", "SATA_SSD_->host0"]),
        ("| Volume type | write IOPS |\n|-|-|\n| gp2 | 3000 |\n| io2 | 64000 |\n", ["host0->gp2_", "host0->io2_"]),
        ("| Workload | read MB/s |\n|-|-|\n| 100 % | 900 |\n| 70/30 | 400 |\n", ["drive->host0"]),
    ],
)
def test_kinds_of_storage_are_devices_and_mixes_are_left_out(text: str, flows: list[str]) -> None:
    rows = read_results(text, "f").observations
    assert [row.flow for row in rows] == flows
