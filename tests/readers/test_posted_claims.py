"""What sentences around a tool's output say of it: an expectation, the line, the GPU, the drive."""

from __future__ import annotations

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api
from lanewise.readers.kinds import read_results
from lanewise.readers.words.gpus import sentences

IPERF = """[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  27.4 GBytes  23.5 Gbits/sec    0             sender
[  5]   0.00-10.00  sec  27.4 GBytes  23.5 Gbits/sec                  receiver
"""
FIO = """Run status group 0 (all jobs):
   READ: bw=1650MiB/s (1730MB/s), 1650MiB/s-1650MiB/s (1730MB/s-1730MB/s), io=10.0GiB, run=6206-6206msec
"""
NCCL = """
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1     1000    1.05    1.05      0     1000    1.05    1.05      0
  1073741824     268435456     float     sum      -1    53500   20.07   20.07      0    53490   20.07   20.07      0
"""
BANDWIDTH = """ Host to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)	Bandwidth(GB/s)
   32000000			6.3
"""
SLOW = {
    "a GPU": ("I have an RTX 4090, but host to device is very slow.\n\nQuick Mode\n\n", BANDWIDTH),
    "a GPU and an expected rate": ("My card in this box: expected 12 GB/s to the GPU.\n\nQuick Mode\n\n", BANDWIDTH),
    "a line": ("Our two servers have cards of 100 Gb/s.\n\n", IPERF),
    "an expected rate": ("I expected about 95 Gb/s but iperf3 shows much less:\n", IPERF),
    "an expected read": ("My drive should read 7000 MB/s, why so slow?\n", FIO),
    "a collective": ("all_reduce is only 20 GB/s instead of the 350 we expect.\n", NCCL),
}
UNKNOWN = {
    "two expectations": ("Some people expected 95 Gb/s and others should get 40 Gb/s here.\n", IPERF),
    "of another kind": ("I expected the disk to write 900 MB/s while this runs.\n", IPERF),
    "no sentence": ("# expected 95 Gb/s\n", IPERF),
}


@pytest.mark.parametrize(("sentence", "output"), SLOW.values(), ids=SLOW)
def test_a_sentence_beside_an_output_judges_it(sentence, output, tmp_path):
    path = tmp_path / "post.txt"
    path.write_text(sentence + output)
    checkup = api.check([path])
    assert verdict_of(checkup) == "slow"
    assert first_causes(checkup)


@pytest.mark.parametrize(("sentence", "output"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_of_the_output_judges_nothing(sentence, output, tmp_path):
    path = tmp_path / "post.txt"
    path.write_text(sentence + output)
    assert verdict_of(api.check([path])) == "unknown"


def test_only_the_best_row_of_a_table_is_expected_to_reach_it():
    rows = read_results("all_reduce is only 20 GB/s instead of the 350 we expect.\n" + NCCL, "f").observations
    assert {row.settings["bytes"] for row in rows if row.how.get("expectation")} == {1073741824}


def test_a_list_of_a_tool_counts_more_than_a_sentence():
    text = "I thought that this was an RTX 4090 card.\nGPU 0: NVIDIA A10 (UUID: GPU-1)\n" + BANDWIDTH
    assert read_results(text, "f").posted.title("gpu0") == "NVIDIA A10"


@pytest.mark.parametrize(
    "line",
    ["$ ./run on the gpu of this host", "| a row of a table |", "[rank 0] this is a log line here", "x", "int a = b;"],
)
def test_lines_that_are_no_sentences(line):
    assert sentences([line, "this one is a sentence"]) == ["", "this one is a sentence"]
