"""What a text shows beside its rows: drives by name, ports below their speed, links of cards, loops that wait."""

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api

SATA = """# lsblk -d -o NAME,MODEL,TRAN,ROTA
NAME MODEL              TRAN ROTA
{drive}  {model:18} {tran:4}    0
hoped for 3 GB/s
seq: (g=0): rw=read, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, (T) 1024KiB-1024KiB, ioengine=libaio, iodepth=32
fio-3.35
Starting 1 process

seq: (groupid=0, jobs=1): err= 0: pid=2345: Mon Sep  8 09:12:44 2025
  read: IOPS={mib}, BW={mib}MiB/s ({mb}MB/s)(187GiB/60002msec)
  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=0.1%, 16=0.1%, 32=100.0%, >=64=0.0%

"""
COPY = "device: NVIDIA {gpu}\n{words} 1.00 GiB: {ms} ms/iter  ->  {rate} GB/s\n"
PORT = """{words}
    Supported link modes:   1000baseT/Full
                            {most}baseT/Full
    Speed: 1000Mb/s
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  1.10 GBytes   {rate} Mbits/sec    0             sender
"""
TABLE = """{heading}
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
  {size}  2097152  float  none  -1   7064.9  {alg:.2f}  {bus:.2f}    N/A   7111.6  {alg:.2f}  {bus:.2f}    N/A
"""
RANKS = """# Collective test starting: all_gather_perf
#  Rank  0 Group  0 Pid 402112 on     node01 device  0 [0x1b] NVIDIA H100 80GB HBM3
...
#  Rank 63 Group  0 Pid 388127 on     node08 device  7 [0xdf] NVIDIA H100 80GB HBM3
"""
SOCKETS = """{plugin}
h1:1:2 [0] NCCL INFO Using network Socket
# Collective test starting: all_reduce_perf
""" + "".join(
    f"#  Rank {rank:2} Group  0 Pid  {900 + rank} on   h{rank // 8} device  {rank % 8} [0x{rank % 8 + 1}b] "
    "NVIDIA {gpu}\n"
    for rank in range(16)
)  # fmt: skip
REPORT = """{name}
============ Serving Benchmark Result ============
Successful requests:                     {requests}
Total input tokens:                      102400
Total generated tokens:                  51200
Output token throughput (tok/s):         {rate}
"""


def checked(text, tmp_path):
    path = tmp_path / "pasted.txt"
    path.write_text(text, encoding="utf-8")
    return api.check([path])


@pytest.mark.parametrize(
    ("drive", "model", "tran", "mib", "verdict"),
    [
        ("sda", "CT1000MX500SSD1", "sata", 530, "ok"),
        ("sdb", "Micron_5400_MTFDDA", "sata", 500, "ok"),
        ("sda", "CT1000MX500SSD1", "sata", 265, "slow"),
        ("sda", "CT1000MX500SSD1", "usb", 33, "slow"),
    ],
)  # fmt: skip
def test_a_drive_that_lsblk_names_is_judged_by_its_bus(drive, model, tran, mib, verdict, tmp_path):
    text = SATA.format(drive=drive, model=model, tran=tran, mib=mib, mb=round(mib * 1.048576))
    assert verdict_of(checked(text, tmp_path)) == verdict


@pytest.mark.parametrize(
    ("gpu", "words", "rate", "verdict"),
    [
        ("H100 80GB HBM3", "copy d2d", 1354, "ok"),
        ("GeForce RTX 4090", "d2d copy", 453, "ok"),
        ("A100-SXM4-80GB", "device to device", 300, "slow"),  # no more than NVLinks carry: between two of them
        ("H100 80GB HBM3", "p2p gpu0 to gpu1", 1354, "fast"),
    ],
)  # fmt: skip
def test_a_copy_from_device_to_device_beyond_any_link_is_within_one(gpu, words, rate, verdict, tmp_path):
    text = COPY.format(gpu=gpu, words=words, ms=round(1073.741824 / rate, 4), rate=rate)
    row = checked(text, tmp_path).results[0].row
    assert (row.path == "GPU memory") is (verdict == "ok")


@pytest.mark.parametrize(
    ("words", "most", "rate", "verdict"),
    [
        ("10GbE between both hosts, iperf3 says 1/10", 10000, 941, "slow"),
        ("10G uplink to the store", 10000, 935, "slow"),
        ("the switch has gigabit ports", 10000, 941, "ok"),
        ("25GbE between both hosts", 10000, 941, "ok"),  # more than this port can: it is another one's
    ],
)  # fmt: skip
def test_a_port_that_came_up_below_the_line_of_the_words(words, most, rate, verdict, tmp_path):
    found = checked(PORT.format(words=words, most=most, rate=rate), tmp_path)
    assert verdict_of(found) == verdict
    assert verdict != "slow" or first_causes(found)[0] == "link"


def tables(first, second, sizes):
    made = [TABLE.format(heading=name, size=size, bus=bus, alg=bus * 64 / 63) for (name, bus), size in
            zip((first, second), sizes, strict=True)]  # fmt: skip
    return RANKS + "".join(made)


@pytest.mark.parametrize(
    ("best", "sizes", "slow"),
    [
        (335, (17179869184, 16106127360), True),
        (335, (17179869184, 17179869184), True),
        (210, (17179869184, 16106127360), False),
        (335, (16777216, 16106127360), False),  # short messages are slower on any fabric
    ],
)  # fmt: skip
def test_long_messages_of_two_tables_are_compared_whatever_their_sizes(best, sizes, slow, tmp_path):
    text = tables(("all hosts:", 185), ("without node05:", best), sizes)
    assert (verdict_of(checked(text, tmp_path)) == "slow") is slow


PLUGIN = "h1:1:2 [0] x() NCCL WARN NET/OFI aws-ofi-nccl initialization failed"


@pytest.mark.parametrize(
    ("plugin", "gpu", "bus", "verdict"),
    [
        (PLUGIN, "H100 80GB HBM3", 10.9, "slow"),
        ("", "H100 80GB HBM3", 10.9, "unknown"),
        (PLUGIN, "A10G", 2.9, "unknown"),  # such hosts may have no EFA
    ],
)  # fmt: skip
def test_a_network_plugin_that_does_not_start_leaves_sockets(plugin, gpu, bus, verdict, tmp_path):
    table = TABLE.format(heading="", size=1073741824, bus=bus, alg=bus * 8 / 15).replace("none", "sum")
    text = SOCKETS.format(plugin=plugin, gpu=gpu) + table
    found = checked(text, tmp_path)
    assert verdict_of(found) == verdict
    assert verdict != "slow" or "software" in first_causes(found)


@pytest.mark.parametrize(
    ("data", "verdict"), [(0.589, "slow"), (0.40, "slow"), (0.20, "unknown"), (0.003, "ok")],
)  # fmt: skip
def test_a_step_that_waits_for_data_most_of_its_time_is_slow(data, verdict, tmp_path):
    found = checked(f"Epoch: [0][ 100/5005]\tTime  0.661 ( 0.672)\tData  {data} ( {data})\tLoss 6.9 (7.0)\n", tmp_path)
    assert verdict_of(found) == verdict
    assert verdict != "slow" or first_causes(found) == ["setting", "software"]


@pytest.mark.parametrize(
    ("requests", "sign", "verdict"),
    [
        (200, "a:1:2 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1", "slow"),
        (200, "", "unknown"),  # two machines may differ so
        (100, "a:1:2 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1", "unknown"),  # another load
    ],
)  # fmt: skip
def test_of_one_load_the_lower_report_is_slow_beside_a_transport_turned_off(requests, sign, verdict, tmp_path):
    text = REPORT.format(name="## first box", requests=200, rate=716.7)
    text += REPORT.format(name="## second box", requests=requests, rate=175.9) + sign
    assert verdict_of(checked(text, tmp_path)) == verdict
