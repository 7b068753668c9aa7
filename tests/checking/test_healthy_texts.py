"""Texts of healthy machines at the low end of what is healthy: none of their figures is called slow, none fast."""

from __future__ import annotations

import pytest

from lanewise import api
from lanewise.checking.verdict import Verdict

# The first three are clpeak's own results (krrishnarraj/clpeak, results/NVIDIA_CUDA): plain memory.
TEXTS = {
    "clpeak, RTX 2060": """Platform: NVIDIA CUDA
  Device: GeForce RTX 2060
    Transfer bandwidth (GBPS)
      enqueueWriteBuffer         : 6.02
      enqueueReadBuffer          : 6.20
""",
    "clpeak, TITAN V": """Platform: NVIDIA CUDA
  Device: TITAN V
    Transfer bandwidth (GBPS)
      enqueueWriteBuffer              : 6.09
      enqueueReadBuffer               : 6.45
      enqueueWriteBuffer non-blocking : 4.58
      enqueueReadBuffer non-blocking  : 4.93
""",
    "clpeak, A100": """Platform: NVIDIA CUDA
  Device: NVIDIA A100-SXM4-40GB
    Transfer bandwidth (GBPS)
      enqueueWriteBuffer              : 14.54
      enqueueReadBuffer               : 13.04
      enqueueWriteBuffer non-blocking : 7.79
      enqueueReadBuffer non-blocking  : 7.21
""",
    "a data sheet's rate is of requests in order": (
        "Seq read 7.0 GB/s, random 4k read 62 MB/s, random write 210 MB/s on a 980 Pro as advertised (7000 MB/s).\n"
    ),
    "the nominal rate of the sentence before": (
        "memtest says DDR4 dual channel 38 GB/s, theoretical 51.2 GB/s. CPU to GPU copies at 12.1 GB/s over "
        "PCIe 3.0 x16 (theoretical 15.75 GB/s).\n"
    ),
    "copying and setting memory": (
        "memcpy:                copied 8 GB in 7712 milliseconds (1062 MiB/sec)\n"
        "memset:                copied 8 GB in 4000 milliseconds (2048 MiB/sec)\n"
    ),
    "an SD card": "/dev/mmcblk0:\n Timing buffered disk reads:  56 MB in  3.06 seconds =  18.30 MB/sec\n",
    "an old disk": "/dev/sda:\n Timing buffered disk reads: 270 MB in  3.01 seconds =  89.70 MB/sec\n",
    "random reads of a disk": """fio-3.28
seq: (g=0): rw=read, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, (T) 1024KiB-1024KiB, ioengine=libaio, iodepth=8
seq: (groupid=0, jobs=1): err= 0: pid=1: Mon Jan  1 00:00:00 2024
  read: IOPS=110, BW=111MiB/s (116MB/s)(6660MiB/60001msec)
rnd: (g=1): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=32
rnd: (groupid=1, jobs=1): err= 0: pid=2: Mon Jan  1 00:00:00 2024
  read: IOPS=140, BW=562KiB/s (576kB/s)(32.9MiB/60001msec)
""",
    "a T4 in a cloud": """ Device 0: Tesla T4
 Host to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)	Bandwidth(GB/s)
   32000000			10.1
""",
    "two sockets": """Intel(R) Memory Latency Checker - v3.9
ALL Reads        :	201000.0
1:1 Reads-Writes :	165000.0
Measuring Memory Bandwidths between nodes within system
		Numa node
Numa node	     0	     1
       0	101000.0	34000.0
       1	34100.0	100900.0
""",
    "a size below 1 MB": """RTX 4090, pinned memory

| Size | H2D (GB/s) | D2H (GB/s) |
|---:|---:|---:|
| 0.25 MB | 11.30 | 15.29 |
| 500 MB | 23.92 | 26.38 |
""",
    "both directions in one row": """| Configuration | BW (GB/s) |
|---|---:|
| H2D alone | 57.5 |
| H2D + D2H at once | 98.8 |
""",
    "all cards beside one": """| Test | Bandwidth |
|---|---|
| fabric, all 8 NICs | 3160 Gb/s |
| fabric, 1 MB | 395 Gb/s |
""",
    "a share and an item": "Table 3: copies within the GPU reach 245 GB/s, about 70%, on:\n1. a Titan X\n",
    "an FPGA": """Host -> PCIe -> FPGA write bandwidth = 9900.000000 MB/s
Host <- PCIe <- FPGA read bandwidth = 11600.000000 MB/s
""",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_figure_of_a_healthy_machine_is_slow_or_fast(text, tmp_path):
    path = tmp_path / "posted.txt"
    path.write_text(text, encoding="utf-8")
    checkup = api.check([path])
    assert [
        (result.row.scenario, result.row.flow) for result in checkup.results
        if result.verdict in (Verdict.SLOW, Verdict.FAST)
    ] == []  # fmt: skip
    assert checkup.results or checkup.left_aside
