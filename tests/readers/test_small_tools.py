"""dd, hdparm, disk benchmarks, qperf, netperf and clpeak: what their lines become, and what says nothing."""

from __future__ import annotations

import pytest

from lanewise.errors import FormatError
from lanewise.readers.kinds import read_posted, read_results

DD = "$ dd if={} of={} bs={} {}\n{} copied, 2.5 s, {}\n"
QPERF = (
    "tcp_bw:\n"
    "    bw  =  1.15 GB/sec\n"
    "rc_lat:\n"
    "    latency  =  2.4 us\n"
    "ud_bw:\n"
    "    send_bw  =  9 GB/sec\n"
    "    recv_bw  =  8.5 Gb/sec\n"
)
NETPERF = "TCP_STREAM TEST from 0.0.0.0 () port 0 AF_INET to 10.0.0.2\n 87380  16384  16384    10.00    9414.30\n"
MARK = (
    "[Read]\n"
    "  SEQ    1MiB (Q=  8, T= 1):  7082.063 MB/s [ 6754.0 IOPS] < 1183.55 us>\n"
    "[Write]\n"
    "  RND    4KiB (Q= 32, T=16):   500.000 MB/s\n"
)
OLD_MARK = "   Sequential Read (Q= 32,T= 1) :  3496.213 MB/s\n  Random Write 4KiB (Q=  1,T= 1) :   181.100 MB/s\n"
CLPEAK = (
    "  Device: NVIDIA A10\n"
    "    Transfer bandwidth (GBPS)\n"
    "      enqueueWriteBuffer              : 12.5\n"
    "      enqueueReadBuffer : 13\n"
)

PI = (
    "     Category                  Test                      Result      \n"
    "HDParm                    Disk Read                 707.07 MB/sec            \n"
    "HDParm                    Cached Disk Read          661.63 MB/sec            \n"
    "DD                        Disk Write                418 MB/s                 \n"
    "FIO                       4k random read            103434 IOPS (413737 KB/s)\n"
    "IOZone                    4k write                  214328 KB/s              \n"
)
_TRACE = "{}     -     -     -     -     -  {}  Tesla V100-SXM2{}         1         7  [CUDA memcpy {}]\n"
NVPROF = "".join((
    "   Start  Duration  Size  Throughput  SrcMemType  DstMemType  Device   Context    Stream  Name\n",
    _TRACE.format("1.79551s  209.30ms", "1.0000GB  4.7779GB/s    Pageable      Device", "", "HtoD"),
    _TRACE.format("1.80000s  1.0000us", "8B  7.6294MB/s    Pageable      Device", "", "HtoD"),
    _TRACE.format("2.00497s  584.59ms", "1.0000GB  1.7106GB/s      Device    Pageable", " (1)", "DtoH"),
))  # fmt: skip

RATES = [
    (PI, [("drive->host0", 707.07 * 2**20), ("host0->drive", 418e6), ("drive->host0", 413737 * 1024),
          ("host0->drive", 214328 * 1024)]),
    (NVPROF, [("host0->gpu0", 4.7779 * 2**30), ("gpu1->host0", 1.7106 * 2**30)]),
    (DD.format("/dev/nvme0n1", "/dev/null", "1M", "iflag=direct", "2621440000 bytes (2.6 GB, 2.4 GiB)", "1.0 GB/s"),
     [("nvme0n1->host0", 1e9)]),
    (DD.format("/dev/zero", "/mnt/a/file.bin", "4k", "oflag=dsync", "100000000 bytes (100 MB, 95 MiB)", "40.0 MB/s"),
     [("host0->file.bin", 40e6)]),
    ("/dev/nvme1n1:\n Timing O_DIRECT disk reads: 1202 MB in  3.00 seconds = 400.5 MB/sec\n",
     [("nvme1n1->host0", 400.5 * 2**20)]),
    (MARK, [("drive->host0", 7082.063e6), ("host0->drive", 500e6)]),
    (OLD_MARK, [("drive->host0", 3496.213e6), ("host0->drive", 181.1e6)]),
    (QPERF, [("host0->host1", 1.15e9), ("host0->host1", 2.4e-6), ("host0->host1", 8.5e9 / 8)]),
    (NETPERF, [("host0->host1", 9414.3e6 / 8)]),
    (CLPEAK, [("host0->gpu0", 12.5e9), ("gpu0->host0", 13e9)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rows"), RATES)
def test_each_line_becomes_a_row_in_si_units(text: str, rows: list[tuple[str, float]]):
    found = read_results(text, "f").observations
    assert [row.flow for row in found] == [flow for flow, _ in rows]
    assert [row.value for row in found] == pytest.approx([value for _, value in rows], rel=1e-3)


def test_size_depth_and_mode_are_those_of_the_command_and_of_the_test():
    (row,) = read_results(RATES[2][0], "f").observations
    assert (row.settings, row.how["mode"]) == ({"depth": 1, "bytes": 1 << 20}, "direct")
    _, row = read_results(MARK, "f").observations
    assert (row.settings, row.how["pattern"]) == ({"bytes": 4096, "depth": 32, "threads": 16}, "random")


def test_a_copy_between_two_files_or_without_its_command_says_nothing_of_a_drive():
    between = DD.format("/mnt/a", "/mnt/b", "1M", "", "100 bytes (100 B)", "1.0 GB/s")
    for text in (between, "100 bytes (100 B) copied, 2.5 s, 1.0 GB/s\n"):
        with pytest.raises(FormatError):
            read_results(text, "f")


def test_many_retransmits_of_iperf3_are_lost_packets_and_few_are_none():
    text = "[  5]   0.00-10.00  sec  4.10 GBytes  3.52 Gbits/sec  {}             sender\n"
    assert read_results(text.format(184522), "f").posted.stated("lost packets")[0].value == "184522 retransmits"
    assert not read_results(text.format(12), "f").posted.stated("lost packets")


def test_copies_of_a_trace_of_nvprof_are_of_the_memory_and_the_gpu_that_it_names():
    results = read_results(NVPROF, "f")
    assert [row.how["host memory"] for row in results.observations] == ["pageable", "pageable"]
    assert results.observations[0].settings == {"bytes": 2**30}
    assert results.posted.title("gpu0") == "Tesla V100-SXM2"


_HEAD = "[ ID] Interval           Transfer     Bitrate         Retr\n"
_RUN = (
    "Connecting to host 10.0.0.1, port 5201\n{way}" + _HEAD + "[  5]   0.00-1.00   sec  1.00 GBytes  8.60 Gbits/sec\n"
    "- - - - - - - - -\n" + _HEAD + "[  5]   0.00-10.00  sec  9.00 GBytes  {rate} Gbits/sec    0             sender\n"
    "[  5]   0.00-10.00  sec  9.00 GBytes  {rate} Gbits/sec                  receiver\n\niperf Done.\n"
)


def test_each_run_of_iperf3_in_a_text_is_a_row_named_by_the_line_above_it_and_reverse_is_the_other_way():
    reverse = "Reverse mode, remote host 10.0.0.1 is sending\n"
    text = "On the host:\n" + _RUN.format(way="", rate=9.4) + "**In the VM**\n" + _RUN.format(way=reverse, rate=3.1)
    found = read_results(text, "f").observations
    assert [(row.scenario, row.flow, row.value) for row in found] == [
        ("On the host", "host0->host1", pytest.approx(9.4e9 / 8)),
        ("In the VM", "host1->host0", pytest.approx(3.1e9 / 8)),
    ]  # fmt: skip
    (alone,) = read_results("On the host:\n" + _RUN.format(way="", rate=9.4), "f").observations
    assert alone.scenario == "iperf3"


def test_summaries_of_iperf3_without_the_lines_above_them_are_runs_of_their_own():
    summary = _HEAD + "[  5]   0.00-10.00  sec  9.00 GBytes  {} Gbits/sec                  receiver\n"
    found = read_results(f"{summary.format(22.6)}\nwith another driver:\n{summary.format(7.9)}", "f").observations
    assert [row.scenario for row in found] == ["run 1", "with another driver"]
    assert [row.value for row in found] == pytest.approx([22.6e9 / 8, 7.9e9 / 8])


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc mq", "mtu", "1500"),
        ("     rx_out_of_buffer: 12831", "lost packets", "rx_out_of_buffer 12831"),
        ("n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0", "network transport", "Socket"),
        ("Percentage Used:                    97%", "drive health", "Percentage Used: 97%"),
    ],
)  # fmt: skip
def test_what_is_posted_with_figures_is_stated(line: str, key: str, value: str):
    assert [statement.value for statement in read_posted(line, "f").posted.stated(key)] == [value]


@pytest.mark.parametrize(
    "line",
    ["1: lo: <LOOPBACK,UP> mtu 65536", "rx_out_of_buffer: 0", "Percentage Used:    3%", "CESta: BadTLP- BadDLLP-"],
)  # fmt: skip
def test_what_is_as_it_should_be_states_nothing(line: str):
    assert read_posted(line, "f").posted.statements == ()


MSCCLPP = (
    "$ mpirun -np 8 ./build/bin/tests/allreduce_test_perf -b 1G -e 1G\n"
    "#  Rank  0 Pid  85576 on host-A device  0 [0001:00:00.0] NVIDIA A100-SXM4-80GB\n"
    "#  Rank  1 Pid  85577 on host-A device  1 [0002:00:00.0] NVIDIA A100-SXM4-80GB\n"
    "#                                    in-place                       out-of-place          \n"
    "#       size         count     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong\n"
    "#        (B)    (elements)     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       \n"
    "  1073741824     268435456    17018   63.09  110.41      0\n"
    "  2147483648     268435456                                    5716.9  187.82  187.82      0\n"
)


def test_a_table_of_mscclpp_has_one_set_of_figures_a_row_below_the_heads_of_its_way():
    results = read_results(MSCCLPP, "f")
    in_place, out = results.observations
    assert (in_place.scenario, in_place.value, in_place.settings["bytes"]) == ("all_reduce in place", 110.41e9, 2**30)
    assert (out.scenario, out.value, out.settings["ranks"]) == ("all_reduce", 187.82e9, 2)
    assert (out.how["engine"], results.posted.title("gpu1")) == ("MSCCL++", "NVIDIA A100-SXM4-80GB")
    (unnamed, _) = read_results("".join(MSCCLPP.splitlines(keepends=True)[3:]), "f").observations
    assert (unnamed.scenario, unnamed.metric) == ("collective in place", "bus_bandwidth")


def test_a_table_of_mscclpp_without_rows_is_refused():
    with pytest.raises(FormatError, match="no rows"):
        read_results("".join(MSCCLPP.splitlines(keepends=True)[:6]), "f")
