"""What no device of its kind stays below, both ways of a card, several drives at once, and causes of named changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api
from lanewise.checking.references.together import copies
from lanewise.readers.typed.figures import read_text


def asked(folder: Path, *rows: str, text: str = "") -> tuple[str, list[str]]:
    path = folder / "rows.txt"
    path.write_text(text or "lanewise-rows: 1\nrows:\n" + "".join(f"  - {{{row}}}\n" for row in rows))
    checkup = api.check([path])
    return verdict_of(checkup), first_causes(checkup)


HDPARM = "/dev/{0}:\n Timing buffered disk reads:  10 MB in  3.05 seconds =  {1}/sec\n"


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        (['flows: "fpga0->host0", value: 240 MB/s', 'flows: "host0->fpga0", value: 5 GB/s'], "slow"),
        (['flows: "fpga0->host0", value: 2 GB/s', 'flows: "host0->fpga0", value: 5 GB/s'], "unknown"),
        (['flows: "fpga0->host0", value: 25 MB/s'], "slow"),
        (['flows: "fpga0->host0", value: 25 MB/s, bytes: 4096'], "unknown"),
        (['flows: "fpga0->host0", value: 150 MB/s'], "unknown"),
        (['flows: "nvme0->host0", value: 60 MB/s, bytes: 1M'], "slow"),
        (['flows: "host0->nvme0", value: 60 MB/s, bytes: 1M'], "unknown"),
        (['flows: "vol0->host0", value: 60 MB/s, bytes: 1M'], "unknown"),
        (['path: randread, flows: "nvme0->host0", value: 60 MB/s, bytes: 1M'], "unknown"),
    ],
)
def test_a_device_below_any_of_its_kind_and_a_far_slower_direction(rows, verdict, tmp_path: Path):
    assert asked(tmp_path, *rows)[0] == verdict


@pytest.mark.parametrize(
    ("drive", "rate", "verdict"),
    [
        ("hda", "3.27 MB", "slow"),
        ("hda", "30 MB", "unknown"),
        ("nvme0n1", "60.45 kB", "slow"),
        ("sda", "8 MB", "unknown"),
    ],
)
def test_hdparm_of_a_drive_below_the_least_bus(drive, rate, verdict, tmp_path: Path):
    assert asked(tmp_path, text=HDPARM.format(drive, rate))[0] == verdict


def test_a_setting_and_failures_of_a_drive_in_the_text_are_causes(tmp_path: Path):
    text = HDPARM.format("hda", "3.27 MB")
    assert asked(tmp_path, text=text)[1][0] == "drive"
    assert asked(tmp_path, text=" using_dma = 0 (off)\n" + text)[1][0] == "setting"
    assert asked(tmp_path, text=text + "nvme nvme0: I/O 79 (I/O Cmd) QID 4 timeout, aborting\n")[1] == ["drive", "link"]


@pytest.mark.parametrize(("each", "verdict"), [("18 MB/s", "slow"), ("80 MB/s", "unknown")])
def test_drives_at_once_get_together_what_one_alone_gets(each, verdict, tmp_path: Path):
    alone = 'path: one, flows: "host0->vol0", value: 165 MB/s, bytes: 1 GiB'
    both = f'path: two at once, flows: "host0->vol[0-1]", value: {each}, bytes: 1 GiB, of: each'
    answer = asked(tmp_path, alone, both)
    assert answer[0] == verdict
    assert verdict != "slow" or answer[1][0] == "shared"


def test_a_service_on_several_gpus_is_compared_with_itself(tmp_path: Path):
    rows = [
        f'path: vllm v{v}, flows: "gpu[0-3]->gpu[0-3]", value: {n} tokens/s'
        for v, n in (("0.10.2", 60), ("0.12.0", 28))
    ]
    assert asked(tmp_path, *rows)[0] == "slow"
    assert asked(tmp_path, rows[0], rows[1].replace("28", "58"))[0] == "unknown"


@pytest.mark.parametrize(("size", "verdict"), [("128 MB", "unknown"), ("128 K", "slow")])
def test_a_small_whole_file_may_come_from_the_page_cache(size, verdict, tmp_path: Path):
    rows = [f'path: KDiskMark, flows: "usb0->host0", value: 500 MB/s, bytes: {size}',
            f'path: CrystalDiskMark, flows: "usb0->host0", value: 130 MB/s, bytes: {size}']  # fmt: skip
    assert asked(tmp_path, *rows)[0] == verdict


@pytest.mark.parametrize(("head", "verdict"), [("{} OSDs", "unknown"), ("config {}", "slow")])
def test_columns_of_other_numbers_of_machines_are_other_systems(head, verdict, tmp_path: Path):
    heads = " | ".join(head.format(number) for number in (30, 630))
    table = f"| Test | {heads} |\n|---|---|---|\n| 4MB Read | 63 GiB/s | 1025 GiB/s |\n"
    assert asked(tmp_path, text=table)[0] == verdict


DD = "2147483648 bytes (2,1 GB) copied, 17,4306 s, {} MB/s\n"


@pytest.mark.parametrize(("rate", "verdict"), [("78,4", "slow"), ("118", "unknown")])
def test_a_file_system_is_no_slower_than_one_of_its_drives_at_once(rate, verdict, tmp_path: Path):
    drives = "".join(f"dd if=/dev/sd{drive}2 of=/dev/null bs=4k &\n" for drive in "ab") + "wait\n"
    text = f"dd if=/data/test of=/dev/null bs=4k\n{DD.format(rate)}{drives}{DD.format('123')}{DD.format('120')}"
    assert asked(tmp_path, text=text)[0] == verdict


@pytest.mark.parametrize(
    ("names", "cause"),
    [
        (("driver 1.2.3", "driver 1.3.0"), "software"), (("with offload", "without offload"), "setting"),
        (("large batch", "small batch"), "requests"),
    ],
)  # fmt: skip
def test_what_names_differ_in_is_among_the_first_two_causes(names, cause, tmp_path: Path):
    rates = (50, 20)
    rows = [
        f'path: {name}, flows: "gpu0->gpu0", value: {rate} tokens/s' for name, rate in zip(names, rates, strict=True)
    ]
    assert cause in asked(tmp_path, *rows)[1]


def test_many_copies_at_once_are_read_once_for_all_rows_that_compare_themselves():
    text = 'lanewise-rows: 1\nrows:\n  - {flows: "host0->gpu[0-63]", value: 9 GB/s each}\n'
    first, *others = read_text(text, "figures.yaml").observations
    assert len(copies(first)) == 64
    assert all(copies(other) is copies(first) for other in others)
