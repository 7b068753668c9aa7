"""Typed rows: packets of a size on a line, small messages, cards of one name, stores, disks, drives of GPU hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import QuestionThread, first_causes, verdict_of

from lanewise.checking.checkup import Checkup


def checkup(folder: Path, *rows: str, head: str = "") -> Checkup:
    text = f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    return QuestionThread("rows", text, "", (), (), "").check(folder)


def verdict(folder: Path, *rows: str, head: str = "") -> str:
    return verdict_of(checkup(folder, *rows, head=head))


@pytest.mark.parametrize(
    ("rate", "size", "line", "expected"),
    [
        ("14.88 Mpps", "bytes: 64", "10 Gb/s", "ok"),
        ("14.9 Mpps", "bytes: 64", "10 Gb/s", "ok"),  # rounded
        ("15.5 Mpps", "bytes: 64", "10 Gb/s", "fast"),
        ("14.88 Mpps", "bytes: 60", "10 Gb/s", "ok"),  # without its checksum
        ("148 Mpps", "bytes: 64", "100 Gb/s", "ok"),
        ("812 kpps", "bytes: 1518", "10 Gb/s", "ok"),
        ("900 kpps", "bytes: 1518", "10 Gb/s", "fast"),
        ("2 Mpps", "bytes: 64", "10 Gb/s", "unknown"),  # what one core does of a kernel's stack
        ("16 Mpps", "", "10 Gb/s", "fast"),
        ("1.4 million", "bytes: 64", "", "error"),
        ("12 Mpps", "", "10 Gb/s", "unknown"),
        ("30 M messages/s", "bytes: 64", "10 Gb/s", "fast"),  # as bytes they exceed the line
        ("16 M messages/s", "bytes: 64", "10 Gb/s", "ok"),  # several of them go in one packet
    ],
)
def test_packets_of_a_size_are_held_against_what_the_line_carries(
    rate: str, size: str, line: str, expected: str, tmp_path: Path
):
    row = ", ".join(filter(None, (f'flows: "host0->host1", value: {rate}', size, f"line: {line}" * bool(line))))
    if expected == "error":
        with pytest.raises(Exception, match="no rate and no time"):
            verdict(tmp_path, row)
    else:
        assert verdict(tmp_path, row) == expected


@pytest.mark.parametrize(("rate", "expected"), [("9.49", "ok"), ("12.1", "fast"), ("3", "unknown")])
def test_small_messages_that_fill_the_line_are_fine_and_fewer_are_no_fault(rate: str, expected: str, tmp_path: Path):
    row = f'flows: "host0->host1", path: tcpreplay, value: {rate} Gb/s, bytes: 450, line: 10 Gb/s'
    assert verdict(tmp_path, row) == expected


def test_a_network_expected_at_that_size_is_slow_below_it_and_at_another_size_it_is_not(tmp_path: Path):
    row = 'flows: "nic0->host1", path: l2fwd, value: 10 Mpps, bytes: 64, line: 10 Gb/s'
    for size, expected in ((64, "slow"), (1500, "unknown")):
        wanted = f'flows: "nic0->host1", path: expected, value: 14.88 Mpps, bytes: {size}'
        assert verdict(tmp_path, row, wanted) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("90 us, bytes: 12", "3 us", "slow"),  # a program beside a tool that names no size
        ("25 us, bytes: 2048", "3 us, bytes: 8", "unknown"),  # a longer message and another program
        ("900 us, bytes: 1M", "3 us, bytes: 8", "ok"),
        ("900 us, path: put of 64 MB", "30 us, bytes: 8, path: ping", "unknown"),
    ],
)
def test_small_messages_between_the_same_ends_take_alike_whatever_their_size(
    first: str, second: str, expected: str, tmp_path: Path
):
    rows = [f'flows: "client->server", value: {each}' for each in (first, second)]
    result = verdict(tmp_path, *rows)
    assert result == expected or (expected == "unknown" and result == "ok")


TUNED = 'flows: "{gpu}->{gpu}", path: "{path}", value: {rate} it/s'


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"gpu": "gpu1", "path": "training, x1 riser", "rate": 8}, "slow"),
        ({"gpu": "gpu1", "path": "training, x16", "rate": 8}, "slow"),
        ({"gpu": "gpu1", "path": "training, x8", "rate": 28}, "unknown"),
        ({"gpu": "gpu1", "path": "inference, x1 riser", "rate": 8}, "unknown"),  # other work
    ],
)
def test_cards_of_one_name_do_the_same_work_alike_in_every_slot(other: dict[str, str], expected: str, tmp_path: Path):
    rows = (TUNED.format(gpu="gpu0", path="training, x16", rate=30), TUNED.format(**other))
    named = checkup(tmp_path, *rows, head="gpus: NVIDIA GeForce RTX 3060\n")
    assert verdict_of(named) == expected
    assert expected != "slow" or first_causes(named)[0] == "link"
    unlike = "gpus: {gpu0: NVIDIA GeForce RTX 3060, gpu1: NVIDIA GeForce GT 1030}\n"
    assert verdict(tmp_path, *rows, head=unlike) == "unknown"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("memcpy non-temporal, value: 3 GB/s", "memcpy, value: 9 GB/s", "slow"),
        ("memset ntstore, value: 9 GB/s", "memset, value: 9.5 GB/s", "unknown"),
        ("fill, value: 10 GB/s", "fill streaming stores, value: 19 GB/s", "unknown"),  # each line is read as well
        ("memset, value: 4 GB/s", "memset nt, value: 19 GB/s", "slow"),
        ("memcpy, value: 4 GB/s", "memset, value: 12 GB/s", "unknown"),  # half of its bytes are reads
    ],
)
def test_one_operation_by_two_kinds_of_stores_is_compared(first: str, second: str, expected: str, tmp_path: Path):
    rows = [f'flows: "host0->host0", path: {each}' for each in (first, second)]
    assert verdict(tmp_path, *rows) == expected


@pytest.mark.parametrize(
    ("slower", "faster"),
    [("W16A16", "W4A16"), ("bf16", "mxfp4"), ("16-bit", "4-bit"), ("float16", "IQ4_XS"), ("W8A16", "4 bits")],
)
def test_weights_of_other_bits_are_no_measure(slower: str, faster: str, tmp_path: Path):
    rows = [f'flows: "gpu0->gpu0", path: "model {bits}", value: {rate} tokens/s'
            for bits, rate in ((slower, 20), (faster, 60))]  # fmt: skip
    assert verdict(tmp_path, *rows) == "unknown"
    same = [row.replace(faster, f"{slower} again") for row in rows]
    assert verdict(tmp_path, *same) == "slow"


@pytest.mark.parametrize(
    ("device", "rate", "expected"),
    [
        ("Seagate Archive v2 8TB ST8000AS0002", 165, "ok"),
        ("WDC WD40EFRX-68N32N0", 150, "ok"),
        ("ST16000NM001G", 100, "unknown"),
        ("ST16000NM001G", 900, "fast"),
        ("WDC WDS500G2B0A", 165, "unknown"),  # an SSD, of which nobody says how much was in flight
        ("WDC WDS500G2B0A", 530, "ok"),
        ("Crucial CT500MX500SSD1", 900, "fast"),  # from the page cache
    ],
)
def test_a_disk_is_known_by_its_part_number(device: str, rate: int, expected: str, tmp_path: Path):
    found = checkup(tmp_path, f'flows: "sda->host0", value: {rate} MB/s, device: {device}')
    assert verdict_of(found) == expected


def test_a_drive_that_the_catalogue_lacks_is_named_with_what_to_state(tmp_path: Path):
    row = 'flows: "sda->host0", value: 20 MB/s, device: Verbatim Store n Go'
    (result,) = checkup(tmp_path, row).results
    assert "'Verbatim Store n Go': give its row what the data sheet says, such as rated: " in result.note
    assert verdict(tmp_path, f"{row}, rated: 60 MB/s") == "slow"


@pytest.mark.parametrize(
    ("head", "more", "expected"),
    [
        ("gpus: NVIDIA L4\n", "bytes: 1M, depth: 32", "slow"),
        ("gpus: NVIDIA L4\n", "", "unknown"),  # nobody says how much was in flight
        ("gpus: NVIDIA L4\nstated: {virtual machine: yes}\n", "bytes: 1M, depth: 32", "unknown"),  # a volume
        ("gpus: NVIDIA Jetson AGX Orin\n", "bytes: 1M, depth: 32", "unknown"),  # a small board
        ("", "bytes: 1M, depth: 32", "unknown"),
    ],
)
def test_an_nvme_drive_beside_a_card_of_gen3_reads_more(head: str, more: str, expected: str, tmp_path: Path):
    row = ", ".join(filter(None, ('flows: "nvme1n1->host0", value: 380 MB/s', more)))
    assert verdict(tmp_path, row, head=head) == expected


def test_several_gpus_in_stated_slots_that_are_slower_than_one_may_lack_peer_access(tmp_path: Path):
    rows = (
        'flows: "gpu0->gpu0", path: ResNet, value: 2 it/s',
        'flows: "gpu[0-3]->gpu[0-3]", path: ResNet, value: 1 it/s',
    )
    assert first_causes(checkup(tmp_path, *rows)) == ["software", "link"]
    assert first_causes(checkup(tmp_path, *rows, head="stated: {slot: x16}\n")) == ["software", "peers"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ('path: hdparm, flows: "sda->host0", value: 275 MB/s', "slow"),  # a port of 3 Gb/s
        ('path: hdparm, flows: "sda->host0", value: 520 MB/s', "ok"),
        ('path: dd, flows: "host0->sda", value: 120 MB/s', "unknown"),  # its fast cells are full
    ],
)
def test_an_ssd_of_sata_reads_what_its_link_carries(row: str, expected: str, tmp_path: Path):
    assert verdict(tmp_path, f"{row}, device: Samsung SSD 870 EVO 1TB") == expected


NODES = (
    'path: "all_reduce_perf {hosts} nodes", flows: "gpu[0-7]->gpu[0-7]", '
    "hosts: {hosts}, bytes: {size}, value: {rate} GB/s"
)


@pytest.mark.parametrize(
    ("hosts", "rate", "size", "expected"),
    [(4, 140, "8G", "slow"), (4, 290, "8G", "unknown"), (16, 260, "8G", "unknown"), (4, 100, "1M", "unknown")],
)
def test_a_collective_over_more_hosts_keeps_most_of_its_bus_bandwidth(
    hosts: int, rate: int, size: str, expected: str, tmp_path: Path
):
    rows = [NODES.format(hosts=hosts, rate=rate, size=size), NODES.format(hosts=2, rate=480, size=size)]
    found = checkup(tmp_path, *rows, head="gpus: NVIDIA H100 80GB HBM3\n")
    assert [each.verdict.value for each in found.results if each.row.settings["hosts"] == hosts] == [expected]


@pytest.mark.parametrize(("test", "expected"), [("tg128 @ d16384", "unknown"), ("tg128", "slow")])
def test_generation_behind_a_long_context_is_other_work(test: str, expected: str, tmp_path: Path):
    rows = [f'path: "7B Q4_0 {name}", flows: "gpu0->gpu0", value: {rate} t/s'
            for name, rate in (("tg128 main", 120), (f"{test} branch", 62))]  # fmt: skip
    assert verdict(tmp_path, *rows) == expected


@pytest.mark.parametrize(
    ("work", "of_four", "expected"),
    [("training", 380, "slow"), ("training", 900, "unknown"), ("decode", 380, "unknown"), ("decode", 250, "slow")],
)
def test_four_gpus_that_train_count_more_than_one(work: str, of_four: int, expected: str, tmp_path: Path):
    rows = [f'path: "model {work}", flows: "{gpus}->{gpus}", value: {rate} samples/s'
            for gpus, rate in (("gpu0", 400), ("gpu[0-3]", of_four))]  # fmt: skip
    assert verdict(tmp_path, *rows) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(60, "slow"), (3, "unknown")])
def test_the_time_of_a_load_is_compared_with_its_drive(seconds: int, expected: str, tmp_path: Path):
    rows = (
        f'path: load, flows: "nvme0n1->gpu0", value: {seconds} s, bytes: 16G',
        'path: fio, flows: "nvme0n1->host0", value: 6.6 GB/s, bytes: 1M, depth: 32',
    )
    assert verdict(tmp_path, *rows) == expected


def test_two_gpus_whose_rows_state_other_slots_are_no_measure_of_each_other(tmp_path: Path):
    rows = [f'flows: "host0->gpu{gpu}", value: {rate} GB/s, host memory: pinned, slot: {slot}'
            for gpu, rate, slot in ((0, 6.4, "x4"), (1, 25, "x16"))]  # fmt: skip
    assert verdict(tmp_path, *rows, head="gpus: NVIDIA GeForce RTX 3090\n") == "ok"
    unsaid = [row.rsplit(",", 1)[0] for row in rows]
    assert verdict(tmp_path, *unsaid, head="gpus: NVIDIA GeForce RTX 3090\n") == "slow"
