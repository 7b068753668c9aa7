"""A tool's output and what stands beside it in one text: each says something of the other."""

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api
from lanewise.readers.kinds import read_results

RULE = "-" * 60
TABLE_HEAD = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
NVIDIA_TOPO = """
\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity
GPU0\t X \tSYS\t{near}\t{far}\t0-31\t0
GPU1\tSYS\t X \t{far}\t{near}\t32-63\t1
NIC0\t{near}\t{far}\t X \tSYS
NIC1\t{far}\t{near}\tSYS\t X

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""
RANKS = "".join(
    f"#  Rank {rank:2} Group  0 Pid  {900 + rank} on   tray{rank // 8} device  {rank % 8} [0x{rank % 8 + 1}b] "
    "NVIDIA H100 80GB HBM3\n"
    for rank in range(16)
)  # fmt: skip
FIO = """$ fio --name=seq --filename=/dev/nvme1n1 --direct=1 --rw=read --bs=1M --ioengine=libaio --iodepth=32
seq: (g=0): rw=read, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, (T) 1024KiB-1024KiB, ioengine=libaio, iodepth=32
fio-3.35
Starting 1 process

seq: (groupid=0, jobs=1): err= 0: pid=2345: Mon Sep  8 09:12:44 2025
  read: IOPS={iops}, BW={mib}MiB/s ({mb}MB/s)(187GiB/60002msec)
  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=0.1%, 16=0.1%, 32=100.0%, >=64=0.0%

"""


def checked(text, tmp_path):
    path = tmp_path / "pasted.txt"
    path.write_text(text, encoding="utf-8")
    return api.check([path])


def answer(text, tmp_path):
    checkup = checked(text, tmp_path)
    return verdict_of(checkup), first_causes(checkup)


def all_reduce(rate, above=""):
    """Two hosts of eight H100 each that reach `rate` GB/s of bus bandwidth."""
    half = "    {time:.1f}   {alg:.2f}  {rate:.2f}      0"
    row = f" {{size}} {{count}}     float     sum      -1{half}{half}\n"
    rows = "".join(
        row.format(size=size, count=size // 4, alg=rate / 1.875, rate=rate, time=size / (rate / 1.875) / 1e3)
        for size in (2**30, 2**32, 2**33)
    )  # fmt: skip
    head = "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong\n"
    return f"{above}$ mpirun -np 16 ./all_reduce_perf -b 1G -e 8G -f 2 -g 1\n# nThread 1 nGpus 1\n{RANKS}{head}{rows}"


def write_bw(rate, command="ib_write_bw -d mlx5_0", header=True, extra=""):
    """perftest's table of one size at `rate` Gb/s below its command."""
    title = f"{RULE}\n                    RDMA_Write BW Test\n Number of qps   : 4\t\tDevice : mlx5_0\n{RULE}\n"
    row = f" 1048576 5000 {rate:.2f} {rate:.2f} 0.02\n{RULE}\n"
    return f"$ {command} --report_gbits 10.0.0.2\n{title if header else ''}{TABLE_HEAD}{row}{extra}"


@pytest.mark.parametrize(
    ("rate", "above", "verdict"),
    [
        (121.0, "# 2x DGX H100, 8x ConnectX-7 400Gb NDR each\n", "slow"),
        (121.0, "Each node has 8x NDR.\n", "slow"),
        (375.0, "# 2x DGX H100, 8x ConnectX-7 400Gb NDR each\n", "ok"),
        (121.0, "", "unknown"),
    ],
)
def test_the_cards_of_each_host_say_what_a_collective_over_hosts_should_reach(rate, above, verdict, tmp_path):
    found, causes = answer(all_reduce(rate, above), tmp_path)
    assert found == verdict
    assert verdict != "slow" or causes[0] == "setting"


@pytest.mark.parametrize("cards", ["8 x 400 Gb/s", "8x 400 Gb/s", "8"])
def test_cards_may_be_stated_beside_typed_rows(cards, tmp_path):
    text = f"lanewise-rows: 1\nstated:\n  network cards: {cards}\n  network transport: IB\nrows:\n"
    checked(f"{text}  - {{flows: host0->host1, value: 40 GB/s, hosts: 2}}\n", tmp_path)


@pytest.mark.parametrize(("count", "verdict"), [(1, "slow"), (4, "slow"), (8, "unknown")])
def test_cards_that_nccl_leaves_out_make_a_collective_slow(count, verdict, tmp_path):
    using = " ".join(f"[{at}]mlx5_{at}:1/IB" for at in range(count))
    above = f"The hosts have 8 rails.\nh:1:2 [0] NCCL INFO NET/IB : Using {using}; OOB eno1:10.0.0.1<0>\n"
    found, causes = answer(all_reduce(45.0 * count if count < 8 else 150.0, above), tmp_path)
    assert (found, causes[:1]) == (verdict, ["setting"] if verdict == "slow" else [])


def test_sockets_in_nccls_log_explain_a_collective_far_below_any_card(tmp_path):
    log = "h:1:2 [0] NCCL INFO NET/IB : No device found.\nh:1:2 [0] NCCL INFO Using network Socket\n"
    found, causes = answer(all_reduce(2.8, log), tmp_path)
    assert (found, causes[0]) == ("slow", "transport")
    assert answer(all_reduce(2.8), tmp_path)[0] == "unknown"


def test_a_card_that_gives_half_of_its_ports_own_rate_has_a_lesser_link(tmp_path):
    ibstat = "$ ibstat mlx5_0\nCA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n"
    assert answer(write_bw(196.3, extra=ibstat), tmp_path)[1][0] == "link"
    # Where only words say what the line is, a port that came up at half of it is as likely.
    assert answer("Two ConnectX-7 NDR cards face each other.\n" + write_bw(196.3), tmp_path)[1][0] == "port"


@pytest.mark.parametrize(("near", "far", "cause"), [("PXB", "SYS", "far device"), ("NODE", "PIX", "acs")])
def test_topo_says_whether_a_gpu_and_the_card_of_a_command_are_apart(near, far, cause, tmp_path):
    command = "ib_write_bw --use_cuda=0 -d mlx5_1"
    text = write_bw(391.2, "ib_write_bw -d mlx5_1", header=False) + write_bw(98.1, command, header=False)
    checkup = checked(text + NVIDIA_TOPO.format(near=near, far=far), tmp_path)
    assert verdict_of(checkup) == "slow"
    assert [result.row.flow for result in checkup.results] == ["gpu0->host1", "host0->host1"]
    assert first_causes(checkup)[0] == cause
    assert cause != "far device" or "mlx5_0 is PXB" in checkup.findings[0].causes[0].evidence


@pytest.mark.parametrize(("rate", "verdict"), [(393.4, "ok"), (196.0, "unknown"), (96.6, "unknown")])
def test_a_card_that_fills_the_fastest_port_is_fine_whatever_port_it_is(rate, verdict, tmp_path):
    assert answer(write_bw(rate), tmp_path)[0] == verdict


@pytest.mark.parametrize(("words", "line"), [("NDR", "400"), ("NDR200", "200"), ("HDR100", "100"), ("EDR", "100")])
def test_infinibands_names_are_lines(words, line):
    posted = read_results(f"Both hosts have one {words} card each.\n{write_bw(90.0)}", "f").posted
    assert [statement.value for statement in posted.stated("line")] == [f"{line} Gb/s"]


@pytest.mark.parametrize(
    ("lnkcap", "lnksta", "rate", "verdict"),
    [
        ("Speed 16GT/s, Width x4", "Speed 8GT/s (downgraded), Width x4", 3350, "slow"),
        ("", "Speed 8GT/s (downgraded), Width x4", 3350, "slow"),
        ("Speed 16GT/s, Width x4", "Speed 8GT/s (downgraded), Width x4", 1100, "unknown"),
        ("Speed 16GT/s, Width x4", "Speed 16GT/s, Width x4", 3350, "unknown"),
    ],
)
def test_a_drive_that_fills_its_downgraded_link_is_slow(lnkcap, lnksta, rate, verdict, tmp_path):
    lspci = "$ sudo lspci -vv -s 41:00.0 | grep Lnk\n" + (f"\t\tLnkCap:\tPort #0, {lnkcap}\n" if lnkcap else "")
    fio = FIO.format(iops=int(rate / 1.048576), mib=int(rate / 1.048576), mb=rate)
    found, causes = answer(f"{fio}{lspci}\t\tLnkSta:\t{lnksta}\n", tmp_path)
    assert (found, causes[:1]) == (verdict, ["link"] if verdict == "slow" else [])


@pytest.mark.parametrize(
    ("line", "hot"),
    [
        ("critical_warning\t\t\t: 0x2", True), ("critical_warning\t\t\t: 0x6", True),
        ("critical_warning\t\t\t: 0", False), ("critical_warning\t\t\t: 0x4", False),
        ("Thermal Management T2 Total Time\t: 977", True), ("Thermal Management T1 Trans Count\t: 0", False),
    ],
)  # fmt: skip
def test_bit_1_and_the_counters_of_a_smart_log_are_heat(line, hot):
    fio = FIO.format(iops=1500, mib=1500, mb=1573)
    posted = read_results(f"{fio}$ nvme smart-log /dev/nvme1\n{line}\n", "f").posted
    assert bool(posted.stated("drive temperature")) is hot


def dimms(filled, slots, speed=3200):
    one = f"Memory Device\n\tSize: 32 GB\n\tSpeed: {speed} MT/s\n\tConfigured Memory Speed: {speed} MT/s\n"
    return one * filled + "Memory Device\n\tSize: No Module Installed\n" * (slots - filled)


@pytest.mark.parametrize(
    ("filled", "slots", "verdict"), [(4, 8, "slow"), (8, 8, "ok"), (8, 16, "ok"), (2, 16, "slow")]
)  # fmt: skip
def test_memory_is_slow_where_the_modules_leave_channels_of_the_cpu_empty(filled, slots, verdict, tmp_path):
    rate = 0.8 * 25600 * filled
    stream = f"Function    Best Rate MB/s  Avg time  Min time  Max time\nTriad:      {rate:.1f}     0.1  0.1  0.1\n"
    text = f"The host has one EPYC 7543P with 32 cores.\n{stream}\n$ sudo dmidecode -t 17\n{dimms(filled, slots)}"
    found, causes = answer(text, tmp_path)
    assert (found, causes[:1]) == (verdict, ["memory channels"] if verdict == "slow" else [])


def h2d(node, rate):
    return (
        f"$ numactl -N {node} -m {node} ./nvbandwidth -d -t host_to_device_memcpy_ce\nnvbandwidth Version: v0.5\n"
        "Device 0: NVIDIA A100-SXM4-40GB (00000000:07:00)\n\nRunning host_to_device_memcpy_ce.\n"
        "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n           0\n"
        f" 0     {rate}\n\nSUM host_to_device_memcpy_ce {rate}\n\n"
    )  # fmt: skip


def test_the_node_of_a_numactl_command_is_the_cause_where_another_node_is_faster(tmp_path):
    checkup = checked(h2d(1, 13.42) + h2d(0, 25.07), tmp_path)
    assert (verdict_of(checkup), first_causes(checkup)[0]) == ("slow", "far NUMA node")
    assert "node 0" in checkup.findings[0].causes[0].evidence
    # Twice on one node the memory is not what differs.
    assert checked(h2d(1, 13.42) + h2d(1, 25.07), tmp_path).findings[0].causes[0].evidence == ""
    ib = [write_bw(rate, f"numactl -N {node} ib_write_bw -d mlx5_0") for node, rate in ((1, 121.0), (0, 196.4))]
    assert answer("".join(ib), tmp_path)[1][0] == "far NUMA node"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("h:1:2 [1] NCCL WARN Error: failed to extend /dev/shm/nccl-Lqa to 9637892 bytes", "shared"),
        ("h:1:2 [1] NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory", "RDMA"),
    ],
)
def test_a_limit_that_nccl_warns_of_comes_before_the_call_that_failed(line, what, tmp_path):
    text = f"# nThread 1 nGpus 4\n{line}\nh: Test NCCL failure common.cu:1005 'unhandled system error '\n"
    checkup = checked(text, tmp_path)
    assert verdict_of(checkup) == "fault"
    assert what in checkup.findings[0].title


def test_a_name_in_a_sentence_is_no_gpu_of_the_ranks():
    ranks = "".join(f"#  Rank {at} Group  0 Pid 9 on host device {at} [0x0{at}] NVIDIA L40S\n" for at in range(2))
    row = "  8388608  2097152  float  sum  -1  628.29  13.35  13.35  0  639.15  13.12  13.12  0\n"
    head = "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong\n"
    text = f"Two L40S here, they compare it with A100 SXM.\n$ ./all_reduce_perf -g 2\n{ranks}{head}{row}"
    posted = read_results(text, "f").posted
    assert {posted.title(f"gpu{at}") for at in range(2)} == {"NVIDIA L40S"}


@pytest.mark.parametrize(("target", "verdict"), [(24, "slow"), (8, "ok"), (28, "ok")])
def test_pageable_copies_are_slow_where_pinned_ones_reach_what_is_wanted(target, verdict, tmp_path):
    runs = "".join(
        f"$ ./bandwidthTest --memory={kind}\n[CUDA Bandwidth Test] - Starting...\n Device 0: NVIDIA A100-SXM4-80GB\n"
        f" Host to Device Bandwidth, 1 Device(s)\n {kind.upper()} Memory Transfers\n"
        f"   Transfer Size (Bytes)\tBandwidth(GB/s)\n   32000000\t\t\t{rate}\n\n"
        for kind, rate in (("pageable", 9.6), ("pinned", 25.2))
    )
    found, causes = answer(f"The target in the sheet is {target} GB/s.\n{runs}", tmp_path)
    assert (found, causes[:1]) == (verdict, ["pageable"] if verdict == "slow" else [])


@pytest.mark.parametrize(("iops", "verdict"), [(12_100, "unknown"), (3_100, "slow")])
def test_one_request_at_a_time_is_held_against_a_data_sheet_only_if_it_takes_long(iops, verdict, tmp_path):
    job = "rr: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=1\n"
    text = (
        f"The data sheet says 1.45M random read IOPS, we see less.\n{job}fio-3.35\nStarting 1 process\n\n"
        f"rr: (groupid=0, jobs=1): err= 0: pid=2: Mon Sep  8 09:12:44 2025\n"
        f"  read: IOPS={iops}, BW={iops * 4096 / 2**20:.1f}MiB/s ({iops * 4096 / 1e6:.1f}MB/s)(2824MiB/60003msec)\n"
    )
    assert answer(text, tmp_path)[0] == verdict
