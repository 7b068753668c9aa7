"""Questions in plain words, without the output of any known tool: read, and judged by what they say themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api
from lanewise.checking.checkup import Checkup
from lanewise.errors import FormatError


def checked(text: str, folder: Path) -> Checkup:
    path = folder / "question.txt"
    path.write_text(text, encoding="utf-8")
    return api.check([path])


EXPECTED = [
    "I get 3 GB/s on my NVMe drive where the card should do 12 GB/s.",
    "My SSD is rated at 7000 MB/s but I only get 1200 MB/s reads.",
    "Transfer rate is 25 MB/s instead of the usual 110 MB/s over gigabit ethernet",
    "Expected: 3500 MB/s\nMeasured: 425 MB/s",
    "Read speed: 120 MB/s\nI expected about 500 MB/s from this disk.",
    "Current speed: 1.2 MB/s. Should be at least 80 MB/s.",
    "The theoretical bandwidth of PCIe Gen3 x8 is 7.8 GB/s, my FPGA reaches 0.8 GB/s.",
    "ping-pong latency is 45 us, expected 3 us with RoCE",
]
CONDITIONS = [
    "Before upgrade:\nseq write: 900 MB/s\nAfter upgrade:\nseq write: 200 MB/s",
    "After the upgrade to kernel 6.8 the write throughput dropped to 200 MB/s; before it was 900 MB/s.",
    "Speed went from 950 MB/s to 300 MB/s after update",
    "With IOMMU off: 24 GB/s\nWith IOMMU on: 6 GB/s",
    "v1.2.3: 1800 tokens/s\nv1.3.0: 900 tokens/s",
    "| config | tokens/s |\n|---|---|\n| vllm 0.6.1 | 1200 |\n| vllm 0.6.3 | 700 |",
    "native: 9.4 Gbps\nVM: 2.1 Gbps",
    "host: 9.4 Gbps, in docker container: 1.2 Gbps",
    "dd gives me 90 MB/s; Windows gets 450 MB/s on the same drive",
    "NFS over RDMA. fio says 1.1 GiB/s, but locally on the server the same array does 9 GiB/s.",
    "We see 12.1 GB/s H2D but D2H is only 3.2 GB/s",
]
LINES = [
    "iperf3 shows 2.3 Gbit/s on a 10GbE link.",
    "We have 100 Gbps NICs. With iperf3 -P 8 we reach 35 Gbps.",
]
# The second figure has no unit, or the two stand in clauses of their own.
LISTS = [
    "With passthrough 3.1 GB/s, without 12.4, same GPU.",
    "Two hosts with 25G NICs: iperf 23.5 Gb/s, our program 9",
    "mount A of the pool 840 MB/s; through the gateway 110",
    "The export reads 900 MB/s, and it was 2400 before",
    "iperf gets 38 of 100 Gb/s",
    "Only 3.3 GB/s of 12",
    "Throughput fell from 27 to 10 GB/s",
    "nfs over a card of 40 Gb/s: 9 Gb/s",
    "NFS over gigabit: 31 MB/s",
    "8x A100 80GB SXM: all_reduce_perf gives 40 GB/s busbw within one box",
    "750,000 reads a second by the kernel, 100,000 by the gateway",
    "14 t/s with the old build, 5 with the new one",
    "A collective takes 215 ms in the server, 41 us alone",
    "With the rdma mount: 8.9 GB/s, with the tcp mount: 2.1 GB/s",
    "ib_write_bw shows 97 Gb/s between the nodes but NCCL all_reduce only gets 4.5 GB/s",
    "our loader sends at 900 MB/s, receives at 210 over RDMA",
    "A single RTX 4090, host to device: 6.1 GB/s",
    "An A100-SXM4-80GB copies 11 GB/s from pinned host memory to the GPU",
    "Reads of a Samsung 980 PRO: 1.4 GB/s",
]
LINES_APART = [
    "**Expected behavior**\nAbout 11 GB/s\n\n**Actual behavior**\n2.3 GB/s\n",
    "### Expected result\n9.4 Gbit/s\n\n### Actual result\n3.1 Gbit/s",
    "On machine A the copy reaches 24.5 GB/s.\nOn machine B the same copy reaches 12.1 GB/s.",
    "Yesterday the pool wrote 1.4 GB/s.\nToday it writes 320 MB/s.",
    "version 1.2:\n  write 540 MB/s\nversion 1.3:\n  write 210 MB/s",
]
TABLES = [
    "| Setting | Throughput | Note |\n|---|---:|---|\n| default | 2.1 GiB/s | - |\n| hugepages | 5.9 GiB/s | - |",
    "| ops/s | old image | new image |\n|---|---|---|\n| job A | 900 | 410 |",
    "| Mode | Write Bandwidth (MB/sec) |\n|---|---|\n| As shipped | 31.4 |\n| Small writes joined | 77.8 |",
    "Naive kernel: 8.2 GB/s\nPrefetched: 242 GB/s",
    "Baseline:   A to B = 53.9 GB/s   A to C = 53.4 GB/s\nSwitched:   A to B = 54.2 GB/s   A to C = 7.0 GB/s",
]
TOO_FAST = [
    "fio reads 45 GB/s, the drive has about 7 GB/s",
    "iperf3 shows 48 Gb/s over a card of 10 Gb/s",
    "An RTX 3090: 61 GB/s from the host to the GPU",
    "The program reports reads of 9.8 GB/s from my SATA SSD",
    "dd to the NAS shows 2.1 GB/s on a 1 GbE port, how can that be?",
]
OK = [
    "I expected 50 GB/s from the host to an RTX 3090, but get 25 GB/s",
    "A laptop over 1 Gb/s: 940 Mb/s up, 930 down",
    "A SATA SSD, sequential reads of 540 MB/s",
    "Files come at 112 MB/s over gigabit ethernet",
    "An H100, host to device by SM: 35 GB/s",
    "RTX 4090: pinned copies from host to device 25 GB/s, pageable 11",
    "25 GB/s between two L40S, P2P, but the slot is said to have 64",
    "An RTX 4090 copies 26 GB/s to the GPU from pinned memory",
    "We have a 10 Gbps link and iperf3 gives 9.4 Gbps.",
    "I get 112 MB/s over a 1 Gbps ethernet port, is that normal?",
    "64B: 1487460 Pkts/s (line-rate: 1488095 Pkts/s)",
    "Throughput improved from 2 GB/s to 8 GB/s with the patch on this drive",
]
UNKNOWN = [
    "1 thread 3 GB/s, with eight 12",
    "| test | rate |\n|---|---|\n| Copy | 70 GB/s |\n| Triad | 30 GB/s |",
    "| GPU | rate |\n|---|---|\n| RTX 3090 | 12 GB/s |\n| RTX 4090 | 25 GB/s |",
    "| drives | rate |\n|---|---|\n| 1 drive | 3 GB/s |\n| 4 drives | 11 GB/s |",
    "node1: 12 GB/s\nnode2: 3 GB/s",
    "The disk of the office reads 150 MB/s.\nMy laptop at home gets 3 GB/s.",
    "Expected and actual result\n3 GB/s",
    "The SSD does 450 MB/s, the hard disk 160 MB/s",
    "cold read 0.9 GB/s, cached read 11 GB/s",
    "dd without oflag=direct: 2.4 GB/s, with oflag=direct 480 MB/s",
    "Host memory gives 38 GB/s and the GPU memory of 1.9 TB/s",
    "The bond gives 24 Gbit/s for one stream and 46 Gbit/s for many",
    "Memory 47 GB/s; with blocks larger than the cache 15 GB/s",
    "P2P has 52 GB/s, but the tool shows a bridge of 8 GB/s",
    "A disk at a SATA port: reads of 150 MB/s",
    "all_reduce of eight H100 SXM over two nodes: 40 GB/s",
    "min: 2 GB/s\nmax: 9 GB/s",
    "packets of 64 bytes 5 Gb/s, of 1500 bytes 9.8",
    "The drive has 419 MB/s at Gen2, 807 at Gen3",
    "both ways at once 12 GB/s, 25 alone",
    "Copies to the GPU 25 GB/s, all_reduce of eight 140 GB/s",
    "Writes of 12 GB/s on kernel 5.15 with driver 535",
    "An RTX 4090 and an RTX 3090 in one box: 13 GB/s and 24 GB/s by bandwidthTest",
    "1 thread: 3 GB/s\n8 threads: 12 GB/s",
    "read: 3 GB/s\nwrite: 1 GB/s",
    "3 GB/s read, 1 GB/s write",
    "node1 12 GB/s\nnode2 3 GB/s",
    "Peak 12 GB/s but on average 3 GB/s",
    "Copy 30 GB/s\nTriad 20 GB/s with default settings",
    "| batch | tokens/s |\n|---|---|\n| 1 | 120 |\n| 8 | 700 |",
    "Hardware: 2x 25 Gbps NIC\nResults\nread 5.1 GB/s\nwrite 4.2 GB/s",
    "STREAM triad gives 113 GB/s of theoretical 204.8 GB/s",
    "| Metric | TCP | MPTCP |\n|---|---|---|\n| Avg Latency (us) | 50.9 | 57.1 |\n| Messages/sec | 9819 | 8749 |",
    "I measured a latency of 5 us.",
]


@pytest.mark.parametrize("text", [*EXPECTED, *CONDITIONS, *LINES, *LISTS, *TABLES, *LINES_APART])
def test_a_question_that_says_what_it_expected_is_slow_and_has_causes(text: str, tmp_path: Path):
    checkup = checked(text, tmp_path)
    assert (verdict_of(checkup), checkup.exit_code) == ("slow", 1)
    assert first_causes(checkup)


@pytest.mark.parametrize(("by_4", "by_32", "verdict"), [(220, 90, "slow"), (90, 220, "ok")])
def test_threads_that_do_less_than_fewer_do_are_the_first_cause(by_4: int, by_32: int, verdict: str, tmp_path: Path):
    text = f"Random read 4 KiB of an NVMe drive\n4 threads: {by_4},000 IOPS\n32 threads: {by_32},000 IOPS\n"
    checkup = checked(text, tmp_path)
    assert verdict_of(checkup) == verdict
    slow = [finding for finding in checkup.findings if finding.kind == "slow"]
    assert [finding.causes[0].key for finding in slow] == [("setting", "threads")] * len(slow)


@pytest.mark.parametrize("text", OK)
def test_a_figure_that_reaches_what_stands_beside_it_is_ok(text: str, tmp_path: Path):
    assert verdict_of(checked(text, tmp_path)) == "ok"


@pytest.mark.parametrize("text", TOO_FAST)
def test_a_figure_above_what_its_path_can_is_too_fast(text: str, tmp_path: Path):
    assert verdict_of(checked(text, tmp_path)) == "fast"


@pytest.mark.parametrize("text", UNKNOWN)
def test_figures_of_other_work_are_no_measure_of_each_other(text: str, tmp_path: Path):
    checkup = checked(text, tmp_path)
    assert verdict_of(checkup) == "unknown"
    assert any("read as plain text" in note and "lanewise-rows" in note for note in checkup.notes)


def test_the_same_figure_decides_when_its_words_change(tmp_path: Path):
    assert verdict_of(checked("I get 11 GB/s where the card should do 12 GB/s.", tmp_path)) == "ok"
    assert verdict_of(checked("v1.2.3: 1800 tokens/s\nv1.3.0: 1700 tokens/s", tmp_path)) == "unknown"
    assert verdict_of(checked("v1.2.3: 1800 tokens/s\nv1.3.0: 1500 tokens/s", tmp_path)) == "slow"


@pytest.mark.parametrize("text", ["My card does not work.", "32 GB of memory, 10.5 seconds", "LnkSta: Speed 8GT/s"])
def test_a_text_without_a_figure_is_refused_as_before(text: str, tmp_path: Path):
    with pytest.raises(FormatError, match="neither results of a tool nor a dump"):
        checked(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("vllm v1.2.3: 1800 tokens/s\nvllm v1.3.0: 900 tokens/s", "software"),
        ("throughput without encryption 940 MB/s\nthroughput with encryption 120 MB/s", "setting"),
        ("native: 9.4 Gbps\nVM: 2.1 Gbps", "virtual machine"),
        ("An SSD writes 480 MB/s, 45 after two months", "drive"),
        ("GPU memory over the network card reaches 140 Gb/s, host memory 381", "staged"),
        ("Bus bandwidth of the GPUs 5 GB/s, 25 expected; the log says NET/Socket, card of 200 Gb/s", "transport"),
        ("An RTX 4090 behind the chipset: 3 GB/s from host to device", "chipset"),
        ("Batches go to the GPU at 6 GB/s on an A100 SXM4", "pageable"),
        ("PCIe slot: the card should do 12 GB/s, I get 3 GB/s", "link"),
        ("Each disk alone does 500 MB/s, but 4 at once only 150 MB/s each", "shared"),
        ("iperf3 shows 2.3 Gbit/s on a 10GbE link", "software"),
    ],
)
def test_the_first_causes_are_those_of_the_words(text: str, cause: str, tmp_path: Path):
    assert cause in first_causes(checked(text, tmp_path))[:2]


def test_a_dump_without_devices_leaves_the_figures_beside_it(tmp_path: Path):
    dump = "0000:02:00.0 Memory controller: Xilinx Corporation Device 7018\n\tSubsystem: Xilinx Corporation\n"
    checkup = checked("I expected 3500 MB/s\nsend bw: 424.788240 MB/s 269.406982ms\n\n" + dump, tmp_path)
    assert verdict_of(checkup) == "slow"


def test_a_described_machine_predicts_nothing_of_words(tmp_path: Path):
    path = tmp_path / "question.txt"
    path.write_text("GPU H2D copy: 3 GB/s\n")
    checkup = api.check([path], "falcon-4010-epyc")
    assert verdict_of(checkup) == "unknown"


STRIPED = [
    ("One drive alone reads 3.1 GB/s, a RAID 0 of four reads 3.3 GB/s. Why is it not faster?", "slow"),
    ("one NVMe drive alone 3.1 GB/s, RAID of four 3.3 GB/s", "slow"),
    ("A single SSD reads 3.1 GB/s, the stripe of four SSDs reads 11.2 GB/s. Fine?", "unknown"),
    ("A single SSD reads 3.1 GB/s. The RAID 1 of two SSDs reads 3.2 GB/s.", "unknown"),
    ("One drive alone reads 3.1 GB/s, a RAID 0 of four reads 4.5 GB/s.", "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "verdict"), STRIPED)
def test_striped_drives_have_more_than_one_alone(text: str, verdict: str, tmp_path: Path):
    checkup = checked(text, tmp_path)
    assert verdict_of(checkup) == verdict
    assert verdict != "slow" or first_causes(checkup)[0] == "shared"


def test_what_stays_within_a_server_does_not_take_its_line(tmp_path: Path):
    text = "Inside one server all_reduce of 8 H100 has 480 GB/s, over two servers only 45 GB/s. Cards of 400 Gb/s."
    verdicts = {round((each.row.value or 0) / 1e9): each.verdict for each in checked(text, tmp_path).results}
    assert verdicts == {480: "unknown", 45: "ok"}
