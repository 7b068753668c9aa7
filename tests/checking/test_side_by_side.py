"""Counts a second and memory of a host: judged by their like alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import QuestionThread, first_causes, verdict_of


def _check(folder: Path, *rows: str) -> tuple[str, list[str]]:
    text = "lanewise-rows: 1\nrows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    checkup = QuestionThread("rows", text, "", (), (), "").check(folder)
    return verdict_of(checkup), first_causes(checkup)


def test_memory_that_fell_between_two_runs_lost_a_channel_or_the_program_changed(tmp_path: Path) -> None:
    before = 'path: Triad before, flows: "host0->host0", value: 100 GB/s'
    after = 'path: Triad after, flows: "host0->host0", value: 70 GB/s'
    assert _check(tmp_path, before, after) == ("slow", ["memory channels", "software"])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("path: read, value: 180 GB/s", "path: write, value: 90 GB/s"),
        ("path: STREAM Copy, value: 180 GB/s", "path: STREAM Triad, value: 120 GB/s"),
        ("path: sysbench, bytes: 1K, value: 47 GB/s", "path: sysbench, bytes: 64M, value: 15 GB/s"),
        ("path: STREAM, threads: 8, value: 90 GB/s", "path: STREAM, threads: 1, value: 15 GB/s"),
        ("path: before, value: 100 GB/s", "path: after, value: 80 GB/s"),
    ],
)
def test_other_kernels_sizes_and_threads_are_no_measure_of_memory(tmp_path: Path, first: str, second: str) -> None:
    verdict, _ = _check(tmp_path, f'flows: "host0->host0", {first}', f'flows: "host0->host0", {second}')
    assert verdict == "unknown"


def test_a_node_whose_own_memory_is_slower_than_that_of_the_other(tmp_path: Path) -> None:
    nodes = ('flows: "host0:0->host0:0", path: MLC, value: 90 GB/s', 'flows: "host0:1->host0:1", path: MLC, value: ')
    assert _check(tmp_path, nodes[0], nodes[1] + "45 GB/s") == ("slow", ["memory channels", "software"])
    assert _check(tmp_path, nodes[0], nodes[1] + "84 GB/s")[0] == "unknown"


def test_memory_of_the_other_node_is_compared_with_the_way_back_alone(tmp_path: Path) -> None:
    local = 'flows: "host0:0->host0:0", path: MLC, value: 90 GB/s'
    far = [f'flows: "host0:{a}->host0:{b}", path: MLC, value: {value} GB/s' for a, b, value in ((0, 1, 34), (1, 0, 33))]
    assert _check(tmp_path, local, *far)[0] == "unknown"
    assert _check(tmp_path, local, far[0], far[1].replace("33", "12"))[0] == "slow"


def test_what_a_service_answers_by_one_way_and_by_another(tmp_path: Path) -> None:
    ways = ('path: in process, flows: "host0->gpu0", value: 30000 infer/s',
            'path: over gRPC, flows: "host0->gpu0", value: 6000 infer/s')  # fmt: skip
    assert _check(tmp_path, *ways) == ("slow", ["software", "link"])
    assert _check(tmp_path, ways[0], ways[1].replace("6000", "26000"))[0] == "unknown"


def test_a_card_that_is_no_gpu_is_measured_by_its_link_and_may_have_one_lane(tmp_path: Path) -> None:
    row = 'flows: "fpga0->host0", value: {}, link under load: Gen2 x1'
    assert [_check(tmp_path, row.format(rate))[0] for rate in ("120 MB/s", "380 MB/s")] == ["slow", "ok"]
    assert _check(tmp_path, 'flows: "capture0->host0", value: 380 MB/s')[0] == "unknown"
    assert _check(tmp_path, 'flows: "xdma0->host0", value: 671340 MB/s')[0] == "fast"


def test_messages_of_which_each_waits_for_the_one_before_are_no_measure_of_larger_ones(tmp_path: Path) -> None:
    table = (
        "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
        "64k     10      =10      1.2m        0.00s    494.98     132.40       0.01\n"
        "1m      10      =10      20m         0.01s   2185.67     479.75       0.00\n"
    )
    assert verdict_of(QuestionThread("pingpong", table, "", (), (), "").check(tmp_path)) == "unknown"


def _check_text(folder: Path, text: str) -> tuple[str, list[str]]:
    checkup = QuestionThread("text", text, "", (), (), "").check(folder)
    return verdict_of(checkup), first_causes(checkup)


def test_a_healthy_drive_reads_less_with_one_request_in_flight_or_in_random_order(tmp_path: Path) -> None:
    deep = 'flows: "nvme0->host0", path: fio, value: 7 GB/s, bytes: 1M, depth: 32'
    assert _check(tmp_path, deep, deep.replace("7 GB", "3 GB").replace("32", "1"))[0] == "unknown"
    assert _check(tmp_path, deep, deep.replace("7 GB", "3 GB").replace("32", "64"))[0] == "slow"
    order = [f'flows: "sda->host0", path: {name}, value: {rate} MB/s' for name, rate in (("seq", 180), ("random", 1))]
    assert _check(tmp_path, *order)[0] == "unknown"


def test_four_drives_that_give_what_one_gives_share_a_link(tmp_path: Path) -> None:
    one = 'flows: "nvme0->host0", path: one, value: 6 GB/s'
    rows = [f'flows: "nvme[0-3]->host0", path: all, value: {rate} GB/s' for rate in (7, 20)]
    assert _check(tmp_path, one, rows[0]) == ("slow", ["link", "software"])
    assert _check(tmp_path, one, rows[1])[0] == "unknown"


@pytest.mark.parametrize(
    ("flow", "line", "verdict"),
    [
        ("client->server", "10GbE", "ok"), ("pc->nas", "10G", "ok"), ("server->client", "25 Gbps", "slow"),
        ("host0->host1", "EDR", "slow"), ("vm0->host0", "10 Gb/s", "ok"),
    ],
)  # fmt: skip
def test_machines_and_lines_by_the_names_that_people_give_them(
    tmp_path: Path, flow: str, line: str, verdict: str
) -> None:
    assert _check(tmp_path, f'flows: "{flow}", value: 9.4 Gbps, line: {line}')[0] == verdict


def test_drives_in_a_table_are_no_measure_of_each_other_but_ways_to_one_drive_are(tmp_path: Path) -> None:
    drives = "| {} | Read MB/s |\n|---|---|\n| {} | 6900 |\n| {} | 500 |\n"
    assert _check_text(tmp_path, drives.format("Drive", "Samsung 980 Pro", "Kingston A400"))[0] == "unknown"
    assert _check_text(tmp_path, drives.format("Driver", "virtio-scsi", "virtio-blk"))[0] == "slow"


def test_two_programs_on_files_of_one_folder_measure_one_drive(tmp_path: Path) -> None:
    dd = "$ dd if=/dev/zero of={}/b oflag=direct bs=4M\n10737418240 bytes (11 GB, 10 GiB) copied, 5.5 s, 1.9 GB/s\n"
    elbencho = "$ elbencho -w -b 4M -t 1 --direct /mnt/a\nWRITE       Elapsed time     :     11s     11s\n"
    elbencho += "            Throughput MiB/s :         885         885\n"
    assert _check_text(tmp_path, elbencho + dd.format("/mnt"))[0] == "slow"
    assert _check_text(tmp_path, elbencho + dd.format("/home"))[0] == "unknown"


def test_the_two_ways_between_two_machines_are_alike_whatever_their_names(tmp_path: Path) -> None:
    ways = ('flows: "client->server", path: writes, value: 8.5 GB/s, bytes: 64K',
            'flows: "server->client", path: reads, value: {} GB/s, bytes: 64K')  # fmt: skip
    assert _check(tmp_path, ways[0], ways[1].format(22.9))[0] == "slow"
    assert _check(tmp_path, ways[0], ways[1].format(9.9))[0] == "unknown"


def test_fios_random_reads_are_not_measured_by_sequential_ones(tmp_path: Path) -> None:
    job = "{0}: (g=0): rw={1}, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, (T) 1024KiB-1024KiB, ioengine=libaio, "
    result = "iodepth=8\n{0}: (groupid=0, jobs=1): err= 0: pid=1\n  read: IOPS=1, BW={2}MiB/s (1MB/s)(1GiB/1msec)\n"
    jobs = [(job + result).format(name, way, rate) for name, way, rate in (("a", "read", 180), ("b", "randread", 60))]
    text = "fio --filename=/dev/sda --direct=1\n" + "".join(jobs)
    assert _check_text(tmp_path, text)[0] == "unknown"
    assert _check_text(tmp_path, text.replace("randread", "read"))[0] == "slow"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("path: 16 threads, value: 90 GB/s", "path: 1 thread, value: 12 GB/s"),
        ("path: concurrency 32, value: 1800 tok/s", "path: concurrency 1, value: 90 tok/s"),
        ("path: Llama 8B, value: 3000 tok/s", "path: Llama 70B, value: 300 tok/s"),
        ("path: prefill, value: 3000 tok/s", "path: decode, value: 60 tok/s"),
        ("path: /health, value: 20000 req/s", "path: /infer, value: 300 req/s"),
        ("path: fp8, value: 2000 tok/s", "path: bf16, value: 1100 tok/s"),
    ],
)
def test_more_threads_smaller_models_and_other_work_are_no_measure(tmp_path: Path, first: str, second: str) -> None:
    verdict, _ = _check(tmp_path, f'flows: "host0->host0", {first}', f'flows: "host0->host0", {second}')
    assert verdict == "unknown"


def test_drives_of_different_models_are_no_measure_of_each_other(tmp_path: Path) -> None:
    rows = [
        f'flows: "nvme{at}->host0", value: {rate} GB/s, bytes: 1M, depth: 32, device: {model}'
        for at, rate, model in ((0, 7, "Samsung SSD 980 PRO 1TB"), (1, 3.4, "Samsung SSD 970 EVO Plus 1TB"))
    ]
    assert _check(tmp_path, *rows)[0] == "ok"
    assert _check(tmp_path, rows[0], rows[1].replace("970 EVO Plus", "980 PRO"))[0] == "slow"


@pytest.mark.parametrize(
    ("ends", "verdict"), [(("pc", "internet"), "unknown"), (("laptop", "nas"), "unknown"), (("node1", "node2"), "slow")]
)
def test_a_line_to_the_internet_may_be_uneven_and_one_between_servers_may_not(
    tmp_path: Path, ends: tuple[str, str], verdict: str
) -> None:
    ways = [f'flows: "{a}->{b}", value: {rate} Mbps' for a, b, rate in ((*ends, 300), (*ends[::-1], 900))]
    assert _check(tmp_path, *ways)[0] == verdict
