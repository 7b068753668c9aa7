"""Sentences with two figures of which the lesser is as it should be: no verdict of slow, and none of fast."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import verdict_of

from lanewise import api

HEALTHY = """\
On an H100 the copy runs at 55 GB/s, on an A100 at 25 GB/s.
The 980 PRO reads 6.9 GB/s, the 970 EVO 3.4 GB/s.
Llama 8B runs at 120 tokens/s and Llama 70B at 18 tokens/s on the same card.
With x16 I see 25.8 GB/s, with x8 13.1 GB/s.
In the Gen4 slot 25.6 GB/s, in the Gen3 slot 12.8 GB/s.
Over Wi-Fi I get 300 Mbit/s, over the cable 940 Mbit/s.
iperf3 on localhost shows 45 Gbit/s, between the two hosts 9.41 Gbit/s.
fio with iodepth=1 gives 11k IOPS, with iodepth=32 310k IOPS.
STREAM Triad: 38 GB/s on a desktop with two channels, 210 GB/s on the server with eight.
Copying small files runs at 12 MB/s while one large file copies at 110 MB/s.
NCCL reports algbw 131 GB/s and busbw 230 GB/s on 8 A100.
NCCL inside one node reaches 230 GB/s busbw, between two nodes 23 GB/s over HDR.
Two GPUs on the same switch reach 26 GB/s, across the sockets 19 GB/s.
My NAS writes 112 MB/s over gigabit Ethernet, its disks do 450 MB/s locally.
The disk reads 210 MB/s at the beginning and 105 MB/s at the end.
Upload 40 Mbit/s, download 250 Mbit/s on my cable line.
Writes of the QLC drive start at 1.8 GB/s and drop to 160 MB/s once the SLC cache is full.
iperf3 -u shows 1.05 Mbits/sec, TCP shows 941 Mbits/sec.
gzip compresses at 95 MB/s, lz4 at 720 MB/s.
Reading through the page cache: 5.2 GB/s. Direct: 1.9 GB/s.
The memory of the card has 936 GB/s, PCIe 25 GB/s.
nvidia-smi says tx 12 MB/s, rx 340 MB/s while training.
S3 download: 85 MB/s per connection, 1.2 GB/s with 16 connections.
With a 4k context it decodes 60 tokens/s, with 64k 21 tokens/s.
Local NVMe: 3.1 GB/s; gp3 EBS volume: 125 MB/s.
osu_latency: 1.2 us for 8 bytes and 410 us for 4 MB.
Host to device 12.3 GB/s, device to device 330 GB/s.
Memory read by 1, 2, 4 and 8 threads: 24.9, 44.1, 47.8 and 63.7 GB/s
The kernel reads with 6, 5 and 4 bits: 486, 481 and 484 GB/s of 546
Peer copies of four P100 SXM2: 36.4 GB/s to one GPU, 18.3 to another
Two RTX 3090: 11.28 GB/s without P2P, 27.12 with
Uploads stay at 35 MB/s, the line was tested to have 300
all_reduce on an A100 node: 235 GB/s where NVLink is advertised with 600
With 4096- and 8192-byte payloads I measure 57.8 GB/s, the theoretical rate is 64.0 GB/s
The array scrubs at 900 MB/s and the media server streams at 240 MB/s.
I got iperf3 at 2.40 Gb/s up and down and smb transfers at 265 mb/s in blackmagic
connection 3 total_tx: 20.47 Gb/sec drop_rate: 0 b/sec rx_util: 0.1% / 1.73 KB/sec
""".splitlines()

# What the same rules must leave slow.
SLOW = """\
One of my two identical servers writes 110 MB/s, the other 900 MB/s.
GPU 0 copies at 25 GB/s but GPU 1 only at 6.4 GB/s.
Two RX 580: 12 tokens/s at x16, 3.5 on a riser of x1
Two GB300 hosts: 3.67 GB/s over sockets, 316 over RDMA
From the memory of the other socket 37 GB/s, from their own 55.7
CrystalDiskMark shows a drop to 101 MB/s, down from over 12 GB/s.
Reads one at a time: 189 MB/s from CPUs of node 0, 93 from node 1, where the drive is
netperf reaches 84.5 Gb/s, iperf3 6.5
Only 100 of 200 Gb/s over a bond, with one or two threads
With MTU 1500 I get 2.3 Gb/s, with MTU 9000 9.8 Gb/s.
all_reduce on an A100 node: 75 GB/s where NVLink is advertised with 600
Uploads stay at 15 MB/s, the line was tested to have 300
""".splitlines()


def verdict(text: str, folder: Path) -> str:
    """The verdict on a text as a user would paste it."""
    path = folder / "question.txt"
    path.write_text(text + "\n")
    return verdict_of(api.check([path]))


@pytest.mark.parametrize("text", HEALTHY)
def test_what_is_less_by_design_is_not_called_slow(text: str, tmp_path: Path):
    assert verdict(text, tmp_path) in ("ok", "unknown")


@pytest.mark.parametrize("text", SLOW)
def test_what_no_design_explains_is_still_slow(text: str, tmp_path: Path):
    assert verdict(text, tmp_path) == "slow"


def test_a_nominal_rate_is_of_the_run_above_it_and_of_no_other(tmp_path: Path):
    text = "Run 1 (1 GPU)\n24.3 GiB/s\nRun 2 (4 GPUs)\n53.0 GiB/s\n91 % of the 58 GB/s theoretical aggregate\n"
    assert verdict(text, tmp_path) == "ok"
