"""Typed rows: short requests beside a limit, hard disks, Thunderbolt cables, one program at two times."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import QuestionThread, first_causes, verdict_of

DISK = 'flows: "hdd0->host0", path: fio randread, bytes: 4k, depth: 4'
CARD = 'flows: "fpga0->host0", depth: 32'
CABLE = 'flows: "host0->host1", path: iperf, line: 40 Gb/s'


def check(folder: Path, *rows: str, head: str = "") -> tuple[str, list[str]]:
    text = f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    checkup = QuestionThread("rows", text, "", (), (), "").check(folder)
    return verdict_of(checkup), first_causes(checkup)


@pytest.mark.parametrize(
    ("rate", "verdict"), [("142 IOPS", "ok"), ("60 IOPS", "ok"), ("30 IOPS", "unknown"), ("20k IOPS", "unknown")]
)
def test_random_reads_of_a_hard_disk_wait_for_its_arm(rate: str, verdict: str, tmp_path: Path):
    assert check(tmp_path, f"{DISK}, value: {rate}")[0] == verdict


@pytest.mark.parametrize("change", [("hdd0", "nvme0n1"), ("randread", "read"), ("4k", "1M")])
def test_other_drives_orders_and_sizes_are_not_fine_at_the_rate_of_an_arm(change: tuple[str, str], tmp_path: Path):
    assert check(tmp_path, f"{DISK.replace(*change)}, value: 142 IOPS")[0] != "ok"


def test_more_readers_of_a_hard_disk_make_it_seek_by_design(tmp_path: Path):
    rows = [f'flows: "hdd0->host0", path: fio read, threads: {count}, value: {{}} MB/s' for count in (1, 16)]
    assert check(tmp_path, rows[0].format(130), rows[1].format(40))[0] == "unknown"
    flash = [row.replace("hdd0", "nvme0n1") for row in rows]
    assert check(tmp_path, flash[0].format(130), flash[1].format(40))[0] == "slow"


def test_short_transfers_of_a_card_beside_a_limit_are_fine_or_too_short(tmp_path: Path):
    limit = 'path: theoretical, flows: "fpga0->host0", value: 12 GB/s'
    assert check(tmp_path, f"{CARD}, bytes: 16384, value: 10 GB/s", limit)[0] == "ok"
    assert check(tmp_path, f"{CARD}, bytes: 4096, value: 2.5 GB/s", limit) == ("slow", ["requests", "software"])


def test_short_requests_of_a_drive_are_below_its_limit_by_design(tmp_path: Path):
    row, limit = 'flows: "nvme0n1->host0", bytes: 4k', 'path: rated, flows: "nvme0n1->host0", value: 3.5 GB/s'
    assert check(tmp_path, f"{row}, value: 200 MB/s", limit)[0] == "unknown"
    assert check(tmp_path, f"{row}, value: 2.9 GB/s", limit)[0] == "ok"


@pytest.mark.parametrize(
    ("rate", "verdict"), [("20 Gb/s", "ok"), ("15 Gb/s", "ok"), ("12 Gb/s", "unknown"), ("5 Gb/s", "slow")]
)
def test_ip_over_a_thunderbolt_cable_carries_half_of_its_line(rate: str, verdict: str, tmp_path: Path):
    assert check(tmp_path, f"{CABLE}, value: {rate}", head="stated: {tunnel: Thunderbolt 3}\n")[0] == verdict
    named = CABLE.replace("iperf", "iperf over Thunderbolt 3")
    assert check(tmp_path, f"{named}, value: {rate}")[0] == verdict


@pytest.mark.parametrize(
    ("rate", "verdict"), [("2.8 GB/s", "ok"), ("1.5 GB/s", "unknown"), ("1 GB/s", "slow"), ("6 GB/s", "fast")]
)
def test_a_drive_at_a_thunderbolt_cable_has_what_its_tunnel_of_pcie_carries(rate: str, verdict: str, tmp_path: Path):
    drive = 'flows: "nvme0->host0", path: external SSD over Thunderbolt, line: 40 Gb/s'
    assert check(tmp_path, f"{drive}, value: {rate}")[0] == verdict


@pytest.mark.parametrize("head", ["", "stated: {tunnel: Thunderbolt 3}\n"])
def test_an_ethernet_adapter_beside_a_thunderbolt_cable_has_a_line_of_its_own(head: str, tmp_path: Path):
    adapter = 'flows: "host0->host1", path: iperf over a Thunderbolt adapter, line: 10 Gb/s, value: 4 Gb/s'
    assert check(tmp_path, adapter, head=head)[0] == "slow"


def test_another_cable_carries_more_of_its_line(tmp_path: Path):
    assert check(tmp_path, f"{CABLE}, value: 20 Gb/s")[0] == "slow"


def test_a_second_write_is_not_faster_by_design_and_the_drive_is_the_cause(tmp_path: Path):
    rows = [
        f'flows: "{{}}", path: dd {turn} run, value: {value} MB/s' for turn, value in (("first", 30), ("second", 100))
    ]
    assert check(tmp_path, *(row.format("host0->emmc0") for row in rows)) == ("slow", ["drive", "requests"])
    assert check(tmp_path, *(row.format("emmc0->host0") for row in rows))[0] == "unknown"  # memory holds what was read


@pytest.mark.parametrize(("rate", "cause"), [("1 Gb/s", "port"), ("0.93 Gb/s", "port"), ("1.1 Gb/s", "software")])
def test_the_rate_of_a_lesser_port_is_rounded_by_who_types_it(rate: str, cause: str, tmp_path: Path):
    row = 'flows: "client->nas", path: iperf, line: 2.5 Gb/s'
    verdict, causes = check(tmp_path, f"{row}, value: {rate}")
    assert (verdict, causes[0]) == ("slow", cause)


@pytest.mark.parametrize(
    ("drive", "rate", "verdict"),
    [("nvme0n1", 3200, "unknown"), ("nvme0n1", 1500, "slow"), ("raid0", 3200, "slow"), ("nvme0n1", 9000, "ok")],
)
def test_one_drive_need_not_fill_the_line_of_a_network(drive: str, rate: int, verdict: str, tmp_path: Path):
    row = f'flows: "{drive}->host0", line: 100 Gb/s, bytes: 128K, depth: 64, value: {rate} MB/s'
    assert check(tmp_path, row)[0] == verdict


@pytest.mark.parametrize(("rate", "verdict"), [("8.7 GB/s", "ok"), ("6.0 GB/s", "slow")])
def test_one_job_may_leave_a_part_of_a_line_that_several_fill(rate: str, verdict: str, tmp_path: Path):
    row = 'flows: "host1->host0", line: 100 Gb/s, bytes: 128K'
    rows = (f"{row}, threads: 1, value: {rate}", f"{row}, threads: 4, value: 12.4 GB/s")
    assert check(tmp_path, *rows)[0] == verdict
