"""Tools that say one copy a line, tables of SHOC and HIP, clpeak's parts and tables of sizes: what each becomes."""

from __future__ import annotations

import pytest

from lanewise.errors import FormatError
from lanewise.readers.kinds import read_results
from lanewise.results.observation import Observation

# ProjectPhysX/OpenCL-Benchmark, README.md
OPENCL = """\
| Device Name    | NVIDIA B200                                                |
| Memory Bandwidth ( coalesced read      )                       6668.71 GB/s |
| Memory Bandwidth (misaligned      write)                        937.78 GB/s |
| PCIe   Bandwidth (send                 )                         14.08 GB/s |
| PCIe   Bandwidth (   receive           )                         13.82 GB/s |
| PCIe   Bandwidth (        bidirectional)            (Gen3 x16)   11.39 GB/s |
"""
# NVIDIA/gdrcopy, README.md
GDRCOPY = """\
GPU id:0; name: Tesla V100-SXM2-32GB; Bus id: 0000:06:00
GPU id:1; name: Tesla V100-SXM2-32GB; Bus id: 0000:07:00
selecting device 1
writing test, size=131072 offset=0 num_iters=10000
write BW: 9638.54MB/s
reading test, size=131072 offset=0 num_iters=100
read BW: 530.135MB/s
"""
# microsoft/superbenchmark, tests/data/gpu_copy_bw_performance.log
SUPERBENCH = """\
cpu_to_gpu0_by_dma_under_numa0 26.2387
gpu0_to_cpu_by_sm_under_numa1 5.67346
gpu0_to_gpu0_by_sm 682.667
gpu0_to_gpu1_write_by_sm 258.397
gpu1_to_gpu0_read_by_dma 275.825
"""
# NVIDIA/cuda-samples, simpleMultiCopy.cu; NVIDIA-developer-blog/code-samples, bandwidthtest.cu
MULTI = " Memcpy host to device\t: 2.725280 ms (6.156196 GB/s)\n Memcpy device to host\t: 2.723872 ms (6.159378 GB/s)\n"
BLOG = """\
Device: NVS 4200M
Transfer size (MB): 16

Pageable transfers
  Host to Device bandwidth (GB/s): 2.308439
Pinned transfers
  Device to Host bandwidth (GB/s): 5.958834
"""
# vetter/shoc, tools/driver.pl; ROCm/aomp#247
SHOC = (
    "Device 0: 'Tesla K20m'\n    result for bspeed_download:   6.0504 GB/sec\n"
    "    result for gmem_readbw:  147.0 GB/s\n"
)
AOMP = """\
./omp_band
Time 1.209406 for copy host to device
3.307407 GBytes/sec
Time 0.358129 for copy device to host
11.169171 GBytes/sec
./bit_extract
info: copy Device2Host
Time 1.055073 for copy to device 4000000000 bytes
3.530835 GBytes/sec
"""
# oneapi-src/level-zero-tests, ze_bandwidth.cpp and ze_peer
ZE = """\
DEVICE-TO-HOST BANDWIDTH AND LATENCY
Device->Host
\t[Device 1  268435456]:  BW = 21.512345 GBPS  Latency =  12478.10 usec
[Total     268435456]:  BW = 21.512345 GBPS  Latency =  12478.10 usec
Bandwidth Read : Device( 0 )<-Device( 1 )
BW [GBPS]:  256 MB:    13.55
"""
# GpuZelenograd/memtest_vulkan, src/main.rs
MEMTEST = """\
Standard 5-minute test of 1: Bus=0xC5:00 DevId=0x2204   24GB NVIDIA GeForce RTX 3090
      1 iteration. Passed  0.0528 seconds  written:   19.5GB  81.0GB/sec        checked:   22.8GB 799.0GB/sec
      2 iteration. Passed  0.0528 seconds  written:   19.5GB 801.0GB/sec        checked:   22.8GB  99.0GB/sec
"""
# ROCm/tensorflow-upstream#359 and #92
HIP = """\
Device:Vega 10 XL/XT [Radeon RX Vega 56/64] Mem=8.0GB #CUs=64 Freq=1630Mhz  MallocMode=pinned
   H2D_Bandwidth_pinned\t     +064By\t  GB/sec\t0.0020\t0.0020\t0.0014\t0.0429\t0.0470\t
   D2H_Bandwidth_unpinned\t    65536kB\t  GB/sec\t14.2004\t14.1963\t0.0079\t14.1802\t14.2033\t
        D2H_Time_pinned\t        1kB\t      ms\t0.0216\t0.0219\t0.0008\t0.0209\t0.0236\t
for gpu#0 Vega 10 XT [Radeon RX Vega 64]
    peer2peer not supported : gpu#1
      p2p_uni_gpu0_gpu1\t    65536kB\t  GB/sec\t3.8896\t3.8916\t0.0068\t3.8883\t3.9118
      p2p_bi_gpu1_gpu0\t    65536kB\t  GB/sec\t7.5\t7.5\t0.0068\t7.4\t7.6
"""
# RRZE-HPC/gpu-benches#12
STREAM = """\
block smBlocks   threads    occ%   |                init       read       scale
  16      2112       1    0.8%     |  GB/s:          76         32         62
  32      4224       1    1.6%     |  GB/s:         150         63         23
"""
# krrishnarraj/clpeak: parts of version 1, and of version 2 with another backend (README.md)
CLPEAK = """\
Global memory bandwidth (GBPS)
    float   : 1165.79
    float8  : 1355.40
    float16 : 1350.14

**clpeak - PCIe Transfer Bandwidth**

enqueueWriteBuffer              : 0.85 GB/s
enqueueReadBuffer non-blocking  : 0.83 GB/s
"""
CLPEAK_2 = """\
Backend: CUDA
  Device 0: NVIDIA GeForce RTX 5060
    Global memory bandwidth (GBPS)
      float4   : 418.82
    Single-precision compute (GFLOPS)
      float    : 21100.20
    Transfer bandwidth (GBPS)
      h2d_pinned : 12.9
"""
# openucx/ucx#3740, and the same with bars, with sizes that have units
SIZES = "len(bytes)      latency (us)           bw (GB/s)\n1               2.349609                0.000426\n"
BARS = "| Size | H2D (GB/s) | D2H (MiB/s) |\n|---:|---:|---:|\n| 64 MB | 24.5 | 1000 |\n"
# bandwidthTest --csv (microsoft/superbenchmark, tests/data/cuda_memory_h2d_bw.log); oclBandwidthTest
CSV = """\
 Device 0: Tesla V100-PCIE-32GB
bandwidthTest-H2D-Paged, Bandwidth = 3.1 GB/s, Time = 0.00260 s, Size = 33554432 bytes, NumDevsUsed = 1
bandwidthTest-D2D, Bandwidth = 730 GB/s, Time = 0.00005 s, Size = 33554432 bytes, NumDevsUsed = 1
bandwidthTest-H2D-Pinned, Bandwidth = 24.1 GB/s, Time = 0.00260 s, Size = 33554432 bytes, NumDevsUsed = 2
"""
OPENCL_SAMPLE = """\
Running on...

GeForce GTX 1080

Host to Device Bandwidth, 1 Device(s), Paged memory, direct access
   Transfer Size (Bytes)\tBandwidth(MB/s)
   33554432\t\t\t1000
"""
# gdrcopy's copylat; a table of ROCm/clr#273
COPYLAT = (
    "Test             Size(B)     Avg.Time(us)\ngdr_copy_to_mapping             1         0.0889\n"
    "gdr_copy_to_mapping      16777216         1677.7216\ngdr_copy_from_mapping    16777216         16777.216\n"
)
ARROWS = "| dir | batch |\n|---|---|\n| store/ANY (D\u2192H) 1 MiB | 1.7 GB/s |\n| load (H\u2192D) 1 MiB | ~30 GB/s |\n"
# TransferBench, its presets a2a and p2p, cut
A2A = (
    "Summary: [67108864 bytes per Transfer] [GFX:8] [1 Read(s) 1 Write(s)]\n"
    "SRC\\DST  GPU 00     GPU 01     GPU 02       STotal     Actual\n"
    "GPU 00      N/A      40.12      41.10       122.42     120.36\nGPU 01    40.20\n"
)
P2P_CUT = (
    "Unidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)\n"
    " SRC+EXE\\DST    CPU 00    GPU 00    GPU 01\n  CPU 00  ->     15.54      9.88      8.77\n"
    "  GPU 00  ->     25.54    590.8\n"
)
H2D, D2H, P2P = "host0->gpu0", "gpu0->host0", "gpu0->gpu1"
RATES = [
    (OPENCL, [("gpu0->gpu0", 6668.71), (H2D, 14.08), (D2H, 13.82)]),
    (GDRCOPY, [("host0->gpu1", 9638.54 * 2**20 / 1e9), ("gpu1->host0", 530.135 * 2**20 / 1e9)]),
    (SUPERBENCH, [("host0:0->gpu0", 26.2387), ("gpu0->host0:1", 5.67346), ("gpu0->gpu0", 682.667), (P2P, 258.397),
                  ("gpu1->gpu0", 275.825)]),
    (MULTI, [(H2D, 6.156196), (D2H, 6.159378)]),
    (BLOG, [(H2D, 2.308439), (D2H, 5.958834)]),
    (SHOC, [(H2D, 6.0504), ("gpu0->gpu0", 147.0)]),
    (AOMP, [(H2D, 3.307407), (D2H, 11.169171), (D2H, 3.530835)]),
    (ZE, [("gpu1->host0", 21.512345), ("gpu1->gpu0", 13.55)]),
    (MEMTEST, [("gpu0->gpu0", 801 * 2**30 / 1e9), ("gpu0->gpu0", 799 * 2**30 / 1e9)]),
    (HIP, [(H2D, 0.002), (D2H, 14.2004), (P2P, 3.8896), ("gpu1->gpu0, gpu0->gpu1", 7.5)]),
    (STREAM, [("gpu0->gpu0", 150), ("gpu0->gpu0", 63), ("gpu0->gpu0", 62)]),
    (CLPEAK, [(H2D, 0.85), (D2H, 0.83), ("gpu0->gpu0", 1355.40)]),
    (CLPEAK_2, [(H2D, 12.9), ("gpu0->gpu0", 418.82)]),
    (SIZES, [("a copy", 0.000426)]),
    (BARS, [(H2D, 24.5), (D2H, 1000 * 2**20 / 1e9)]),
    (CSV, [(H2D, 3.1), ("gpu0->gpu0", 365)]),
    (OPENCL_SAMPLE, [(H2D, 1000 * 2**20 / 1e9)]),
    (COPYLAT, [(H2D, 10.0), (D2H, 1.0)]),
    (ARROWS, [(D2H, 1.7), (H2D, 30.0)]),
    (A2A, [(P2P, 40.12), ("gpu0->gpu2", 41.10)]),
    (P2P_CUT, [("host0:0->gpu0", 9.88), ("host0:0->gpu1", 8.77)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rates"), RATES)
def test_each_line_with_a_rate_becomes_a_row(text: str, rates: list[tuple[str, float]]):
    found = read_results(text, "f").observations
    assert [row.flow for row in found] == [flow for flow, _ in rates]
    assert [row.value for row in found] == pytest.approx([1e9 * rate for _, rate in rates])


def rows(text: str) -> list[Observation]:
    return list(read_results(text, "f").observations)


def test_what_a_tool_says_of_its_copies_is_kept():
    assert [row.how.get("host memory") for row in rows(BLOG)] == ["pageable", "pinned"]
    assert {row.settings["bytes"] for row in rows(BLOG)} == {16 << 20}
    assert [row.settings["bytes"] for row in rows(GDRCOPY)] == [131072, 131072]
    assert {row.how["engine"] for row in rows(GDRCOPY)} == {"CPU"}
    assert [row.how.get("engine") for row in rows(SUPERBENCH)] == ["copy engine", "SM", "SM", "SM", "copy engine"]
    assert rows(SUPERBENCH)[-1].how["flows"] == "gpu1->gpu0 read"
    assert [row.settings.get("bytes") for row in rows(AOMP)] == [None, None, 4_000_000_000]
    assert rows(ZE)[1].settings == {"bytes": 256 << 20}
    assert rows(BARS)[0].settings == {"bytes": 64 << 20}
    assert [row.how.get("host memory") for row in rows(CSV)] == ["pageable", None]
    assert rows(OPENCL_SAMPLE)[0].how["host memory"] == "pageable"


def test_gpus_are_called_as_the_text_calls_them():
    for text, gpu, title in (
        (OPENCL, "gpu0", "NVIDIA B200"), (GDRCOPY, "gpu1", "Tesla V100-SXM2-32GB"), (SHOC, "gpu0", "Tesla K20m"),
        (MEMTEST, "gpu0", "NVIDIA GeForce RTX 3090"), (CLPEAK_2, "gpu0", "NVIDIA GeForce RTX 5060"),
        (OPENCL_SAMPLE, "gpu0", "GeForce GTX 1080"), (BLOG, "gpu0", "NVS 4200M"),
    ):  # fmt: skip
        assert read_results(text, "f").posted.title(gpu) == title


def test_pairs_that_are_no_peers_are_staged():
    result = read_results(HIP, "f")
    assert result.peers == {("gpu0", "gpu1"): False}
    paths = [(row.path, row.how.get("p2p")) for row in result.observations[2:]]
    assert paths == [("peer, staged", "off"), ("peer", "on")]
    assert [row.settings["bytes"] for row in result.observations] == [64, 65536 << 10, 65536 << 10, 65536 << 10]


def test_a_table_of_nccl_tests_with_one_set_of_columns_cut_off_is_read():
    # NVIDIA/nccl#445
    heads = "# size count type redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
    row = "      262144         65536   float     sum    122.3    2.14    3.22    N/A{}\n"
    (only,) = rows(heads + row.format(""))
    assert only.value == pytest.approx(3.22e9)
    assert len(rows(heads + row.format("    122.3    2.14    3.22    N/A"))) == 2
    with pytest.raises(FormatError):
        rows(heads + row.format("    122.3"))


RUN = """{}
[CUDA Bandwidth Test] - Starting...
 Device 0: Tesla V100-PCIE-32GB
 Host to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)\tBandwidth(GB/s)
   32000000\t\t\t{}
"""


def test_several_runs_of_bandwidth_test_are_named_by_the_line_above_each():
    found = rows(RUN.format("before the update", 6.3) + RUN.format("after the update", 12.3))
    assert [(row.scenario, row.value) for row in found] == [
        ("Host to Device (before the update)", 6.3e9), ("Host to Device (after the update)", 12.3e9),
    ]  # fmt: skip
    (only,) = rows(RUN.format("after the update", 12.3))
    assert only.scenario == "Host to Device"


HCCL = """[BENCHMARK] hcclAllReduce(src!=dst, data_size=33554432, count=8388608, dtype=float, iterations=1000)
[BENCHMARK]     NW Bandwidth   : 258.209121 GB/s
[BENCHMARK]     Algo Bandwidth : 147.548069 GB/s
[BENCHMARK] hcclReduceScatter(src!=dst, count=134217728, dtype=fp32, iterations=1000)
[BENCHMARK]     Bandwidth     : 69214.565 MB/s
"""


def test_the_rate_that_hccl_demo_counts_is_that_of_the_bus():
    assert [(row.scenario, row.metric, row.value, row.settings) for row in rows(HCCL)] == [
        ("all_reduce", "bus_bandwidth", pytest.approx(258.209121e9), {"bytes": 1 << 25}),
        ("reduce_scatter", "bus_bandwidth", pytest.approx(69.214565e9), {"bytes": 1 << 29}),
    ]


def test_times_of_oneccl_are_those_of_a_call():
    text = (
        "# Benchmarking: allreduce\n# #processes: 2\n"
        "   #bytes  #elem_count  #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]  stddev[%]\n"
        "  1048576       262144            16       123.10       125.10       124.00       0.50\n"
    )
    (row,) = rows(text)
    assert (row.scenario, row.metric, row.value) == ("all_reduce", "time", pytest.approx(124e-6))
    assert row.settings == {"bytes": 1 << 20, "ranks": 2}
