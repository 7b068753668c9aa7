"""Readers of fabtests, cards' own tools, memory benchmarks, file-system benchmarks and load generators."""

from __future__ import annotations

import pytest

from lanewise.checking.checkup import check
from lanewise.readers.kinds import read_posted, read_results

FABRIC = """bytes   iters   total       time     MB/sec    usec/xfer   Mxfers/sec
64      20k     1.2m        0.03s     43.77       1.46       0.68
1m      200     200m        0.03s   6734.38     155.71       0.01
"""
PINGPONG = """fi_pingpong -e rdm -p efa
bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
64k     10      =10      1.2m        0.00s    494.98     132.40       0.01
"""
XDMA = "/dev/xdma0_h2c_0 ** Average BW = 1048576, 2417.5\n/dev/xdma0_c2h_0 ** Average BW = 1024, 7.25\n"
XBUTIL = "Buffer size - '16 MB'\n Host -> PCIe -> FPGA write bandwidth = 9302.8 MB/s\n"
STREAM = """Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           73876.7     0.013882     0.013861     0.013905
Triad:          70000.0     0.013882     0.013861     0.013905
"""
STREAM_TABLE = "Task | Best Rate MB/s | Avg time |\n---|---|---|\nCopy | 73,876.7 | 0.013882 |\n"
MLC = """Intel(R) Memory Latency Checker - v3.5
Measuring Memory Bandwidths between nodes within system
                Numa node
Numa node            0       1
       0        90935.7 34457.4
       1        34387.1 90870.6
"""
MLC_LATENCY = """Intel(R) Memory Latency Checker - v3.9
Measuring idle latencies (in ns)...
                Numa node
Numa node            0       1
       0          80.1   140.2
       1         139.0    80.0
"""
MLC_PEAK = "./mlc --peak_injection_bandwidth\nALL Reads        :      181223.5\n1:1 Reads-Writes :      174143.7\n"
SYSBENCH = "  block size: 4KiB\n  operation: read\n20480.00 MiB transferred (2541.04 MiB/sec)\n"
MBW = "AVG     Method: MEMCPY  Elapsed: 0.10  MiB: 1024.00000  Copy: 9876.5 MiB/s\n"
BW_MEM = "# ./bw_mem 200M rd\n209.72 424.38\n"
LIKWID = "$ likwid-bench -t triad_mem_avx512_fma -w S0:20GB\nMByte/s:\t\t191140.47\n"
ELBENCHO = """$ elbencho -r -b 4M -t 16 --iodepth 8 --direct /mnt/data/file1
OPERATION   RESULT TYPE         FIRST DONE   LAST DONE
=========== ================    ==========   =========
READ        Elapsed time     :     11.559s     11.559s
            Throughput MiB/s :         900         885
"""
IOR = "xfersize            : 1 MiB\nMax Write: 25154.87 MiB/sec (26376.80 MB/sec)\nMax Read:  22659.51 MiB/sec\n"
LOADGEN = """MLPerf Results Summary
Scenario : Server
Scheduled samples per second : 666.66
Result is : INVALID
Completed samples per second    : 666
99.00 percentile latency (ns)   : 13032638
"""
TRITON = "Request concurrency: 4\n    Throughput: 58.992 infer/sec\n    p99 latency: 31911 usec\n"
VLLM = "Request throughput (req/s):              5.99      \nP99 TTFT (ms):                           812.5     \n"
WARP = """./warp get --objects 1000 -obj.size 64M -concurrent 60
Operation: GET. Concurrency: 60. Hosts: 4.
* Average: 1117.15 MB/s, 17.46 obj/s

Operation: PUT
* Average: 96.81 MiB/s, 99.14 obj/s
"""
FIO_GROUPS = """9p (cache=none)
----------
   READ: bw=43.1MiB/s (45.2MB/s), 43.1MiB/s-43.1MiB/s (45.2MB/s-45.2MB/s), io=3070MiB (3219MB), run=71260-71260msec
virtiofs
   READ: io=12484MB, aggrb=213061KB/s, minb=213061KB/s
"""
OSU_MULTIPLE = "# OSU MPI Multiple Bandwidth / Message Rate Test v5.2\n# Size MB/s\n65536  6398.15  97627.95\n"
OSU_PUT = "# OSU MPI_Put Bandwidth Test v5.3\n# Size      Bandwidth (MB/s)\n65536  6398.15\n"
TO, BACK, WITHIN = "host0->host1", "host1->host0", "host0->host0"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (FABRIC, [(TO, 43.77e6), (TO, 6734.38e6)]),
        (PINGPONG, [(TO, 494.98e6)]),
        (XDMA, [("host0->xdma0", 2417.5e6), ("xdma0->host0", 7.25e6)]),
        (XBUTIL, [("host0->fpga0", 9302.8e6)]),
        (STREAM, [(WITHIN, 73876.7e6), (WITHIN, 70e9)]),
        (STREAM_TABLE, [(WITHIN, 73876.7e6)]),
        (MLC, [("host0:0->host0:0", 90935.7e6), ("host0:1->host0:0", 34457.4e6), ("host0:0->host0:1", 34387.1e6),
               ("host0:1->host0:1", 90870.6e6)]),
        (MLC_LATENCY, [("host0:0->host0:0", 80.1e-9), ("host0:1->host0:0", 140.2e-9), ("host0:0->host0:1", 139e-9),
                       ("host0:1->host0:1", 80e-9)]),
        (MLC_PEAK, [(WITHIN, 181223.5e6), (WITHIN, 174143.7e6)]),
        (SYSBENCH, [(WITHIN, 2541.04 * 2**20)]),
        (MBW, [(WITHIN, 9876.5 * 2**20)]),
        (BW_MEM, [(WITHIN, 424.38e6)]),
        (LIKWID, [(WITHIN, 191140.47e6)]),
        (ELBENCHO, [("file1->host0", 885 * 2**20)]),
        (IOR, [("host0->storage", 25154.87 * 2**20), ("storage->host0", 22659.51 * 2**20)]),
        (LOADGEN, [("client->service", 666), ("client->service", 13.032638e-3)]),
        (TRITON, [("client->service", 58.992), ("client->service", 31.911e-3)]),
        (VLLM, [("client->service", 5.99), ("client->service", 0.8125)]),
        (WARP, [("s3->host0", 1117.15e6), ("host0->s3", 96.81 * 2**20)]),
        (FIO_GROUPS, [("drive->host0", 43.1 * 2**20), ("drive->host0", 213061 * 1024)]),
        (OSU_MULTIPLE, [(TO, 6398.15e6)]),
        (OSU_PUT, [(TO, 6398.15e6)]),
        (OSU_PUT.replace("Put", "Get"), [(BACK, 6398.15e6)]),
    ],
)  # fmt: skip
def test_each_rate_becomes_a_row_in_si_units(text: str, rows: list[tuple[str, float]]) -> None:
    found = read_results(f"Hello, is this normal?\n{text}\nThanks\n", "f").observations
    assert [row.flow for row in found] == [flow for flow, _ in rows]
    assert [row.value for row in found] == pytest.approx([value for _, value in rows], rel=1e-6)


def test_sizes_and_settings_are_those_of_the_tool() -> None:
    assert [row.settings["bytes"] for row in read_results(FABRIC, "f").observations] == [64, 1 << 20]
    assert [row.settings["bytes"] for row in read_results(XDMA, "f").observations] == [1 << 20, 1024]
    assert read_results(XBUTIL, "f").observations[0].settings == {"bytes": 16 << 20}
    assert read_results(SYSBENCH, "f").observations[0].settings == {"bytes": 4096}
    (row,) = read_results(ELBENCHO, "f").observations
    assert row.settings == {"depth": 8, "threads": 16, "bytes": 4 << 20}
    assert (row.how["mode"], row.how["folder"]) == ("direct", "/mnt/data")
    assert [row.settings for row in read_results(IOR, "f").observations] == [{"bytes": 1 << 20}] * 2


def test_summaries_of_fio_are_named_by_the_line_above_and_left_out_where_jobs_are_shown() -> None:
    assert [row.scenario for row in read_results(FIO_GROUPS, "f").observations] == ["9p (cache=none)", "virtiofs"]
    job = "a: (groupid=0, jobs=1): err= 0: pid=1\n  read: IOPS=1012k, BW=3954MiB/s (4146MB/s)(1000GiB/258987msec)\n"
    rows = [row for row in read_results(job + FIO_GROUPS, "f").observations if row.metric == "goodput"]
    assert [row.value for row in rows] == pytest.approx([3954 * 2**20])


def test_warps_size_and_requests_in_flight_are_those_of_the_command_and_the_run() -> None:
    assert read_results(WARP, "f").observations[0].settings == {"depth": 60, "bytes": 64 << 20}


def test_an_invalid_run_of_loadgen_is_noted_and_kept() -> None:
    assert any("INVALID" in note for note in read_results(LOADGEN, "f").notes)
    assert not read_results(LOADGEN.replace("INVALID", "VALID"), "f").notes


def test_two_runs_of_one_kernel_are_named_by_what_stands_above_them() -> None:
    old, new = "20480.00 MB transferred (37471.66 MB/sec)", "20480.00 MiB transferred (2541 MiB/sec)"
    text = f"0.4.12 said:\n{old}\n1.0 said:\n{new}\n"
    rows = read_results(text, "f").observations
    assert [row.scenario for row in rows] == ["sysbench 0.4.12 said", "sysbench 1.0 said"]


def test_a_run_of_sysbench_is_named_by_its_own_command() -> None:
    text = "".join(
        f"$ sysbench memory --memory-oper={oper} run\n102400.00 MiB transferred ({rate}.00 MiB/sec)\n"
        for oper, rate in (("read", 20000), ("write", 10000))
    )
    assert [row.how["pattern"] for row in read_results(text, "f").observations] == ["read", "write"]


def test_tables_of_osu_without_their_titles_are_named_by_what_differs_in_their_commands() -> None:
    table = "[...]\n1048576 {}\n2097152 {}\n\n"
    text = "".join(
        f"mpirun -np 2 -mca pml {pml} ./osu_put_bw\n" + table.format(rate, rate)
        for pml, rate in (("ucx", 4e3), ("cm", 12e3))
    )
    rows = read_results(text, "f").observations
    assert [(row.scenario, row.value) for row in rows] == [
        ("osu put bandwidth ucx", 4e9), ("osu put bandwidth ucx", 4e9),
        ("osu put bandwidth cm", 12e9), ("osu put bandwidth cm", 12e9),
    ]  # fmt: skip


def test_pciconf_shows_lanes_that_a_card_lacks_if_it_was_singled_out() -> None:
    line = "                 link x2(x8) speed 8.0(8.0) ClockPM disabled\n"
    (statement,) = read_posted(f"# pciconf -lcv ql0\n{line}", "f").posted.statements
    assert (statement.key, statement.value) == ("link width", "ql0 x2 of x8")
    assert not read_posted(f"# pciconf -lcv\n{line * 3}", "f").posted.statements
    assert not read_posted(f"# pciconf -lcv ql0\n{line.replace('x2', 'x8')}", "f").posted.statements


def test_dbench_gives_random_requests_and_rates_with_the_sizes_that_it_uses() -> None:
    text = """Random Read/Write IOPS: 294k/22.3k. BW: 9601MiB/s / 111MiB/s
Average Latency (usec) Read/Write: 13.83/1289.22
Sequential Read/Write: 8869MiB/s / 113MiB/s
"""
    rows = read_results(text, "f").observations
    rates = [294e3 * 4096, 22.3e3 * 4096, *(value * 2**20 for value in (9601, 111, 8869, 113))]
    assert [row.value for row in rows] == pytest.approx(rates)
    assert [row.settings["bytes"] for row in rows] == [4096, 4096, 131072, 131072, 1 << 20, 1 << 20]
    assert {row.how["pattern"] for row in rows[:4]} == {"random"}


def test_the_shell_of_an_alveo_card_says_its_link():
    # Xilinx/XRT#4439
    text = (
        "INFO: Validating card[1]: xilinx_u30_gen3x4_base_1\n"
        "Host -> PCIe -> FPGA write bandwidth = 3284.493598 MB/s\n"
        "Host <- PCIe <- FPGA read bandwidth = 3165.026458 MB/s\n"
    )
    rows = read_results(text, "f").observations
    assert [row.how["slot"] for row in rows] == ["Gen3 x4", "Gen3 x4"]
    assert [result.verdict.value for result in check(rows).results] == ["ok", "ok"]


def test_a_sum_of_iperf_alone_does_not_say_of_how_many_connections():
    (row,) = read_results("[SUM]   0.00-30.00  sec  86.2 GBytes  24.7 Gbits/sec   receiver\n", "f").observations
    assert row.settings == {}
