"""Tables of collectives by size, several of one collective in a text, all pairs at once, memory of a GPU."""

from __future__ import annotations

import pytest

from lanewise.errors import FormatError
from lanewise.readers.kinds import read_posted, read_results

HEADS = "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
RANKS = "".join(f"#  Rank  {rank} Pid  77 on node0 device  {rank} [0x0{rank}] NVIDIA A10G\n" for rank in range(4))


def _nccl(busbw: float) -> str:
    rates = f"{busbw / 1.5:.2f}  {busbw:.2f}"
    return f"# nThread 1 nGpus 4\n{RANKS}{HEADS}  33554432  8388608  float  sum  -1  14207  {rates}  0\n"


OLD = (
    "all_reduce_test 1000 2 0 7\n"
    "   N    type      op     time  algbw  busbw\n"
    " 1000    float     sum    0.886  11.28  11.28\n"
)
NCCOM = (
    "nccom-test -r 2 allr\n"
    "     size(B)    count(elems)     type    time(us)    algbw(GB/s)    busbw(GB/s)\n"
    "    33554432        33554432    uint8         768          40.69          40.69\n"
)
CUT = "all_gather_perf\nsize\ttype\tbusbw\talgo\tproto\n(B)\t\t(GB/s)\n2097152\tfloat\t127.5\tRING\tLL\n"


@pytest.mark.parametrize(
    ("text", "flow", "size", "rate"),
    [(OLD, "gpu0->gpu7, gpu7->gpu0", 4000, 11.28), (NCCOM, "collective of its GPUs", 33554432, 40.69),
     (CUT, "all_gather of its GPUs", 2097152, 127.5),
     ("| Size (MB) | BusBW (GB/s) |\n|---|---|\n| 64 | 12.5 |\n", "collective of its GPUs", 64_000_000, 12.5)],
)  # fmt: skip
def test_a_table_whose_head_says_size_and_bus_bandwidth_is_read(text, flow, size, rate):
    (row,) = read_results(text, "f.txt").observations
    assert (row.flow, row.metric, row.settings["bytes"]) == (flow, "bus_bandwidth", size)
    assert row.value == pytest.approx(rate * 1e9)


def test_lines_that_are_no_row_of_such_a_table_are_none():
    text = NCCOM + "Avg bus bandwidth: 40.69GB/s\n see table 3 for a longer list\n"
    assert len(read_results(text, "f.txt").observations) == 1
    with pytest.raises(FormatError):
        read_results("size and busbw of all cards were fine\n", "f.txt")


def test_two_tables_of_one_collective_are_named_by_what_is_above_each():
    text = f"## v2.18\nall_reduce_perf -g 4\n{_nccl(3.1)}\n## v2.20\nall_reduce_perf -g 4\n{_nccl(1.5)}"
    names = [row.scenario for row in read_results(text, "f.txt").observations]
    assert names == ["all_reduce (all_reduce_perf -g 4)", "all_reduce (v2.20)"]
    (alone,) = read_results(f"all_reduce_perf\n{_nccl(3.1)}", "f.txt").observations
    assert alone.scenario == "all_reduce"


A2A = (
    "Summary: [268435456 bytes per Transfer] [GFX:2] [1 Read(s) 1 Write(s)]\n=====\n"
    "SRC\\DST  GPU 00     GPU 01        STotal      Actual\n"
    "GPU 00      N/A     50.732       50.732       50.7\nGPU 01   51.083        N/A       51.083       51.0\n"
)


def test_all_pairs_of_transferbench_ran_at_once():
    first, second = read_results(A2A, "f.txt").observations
    assert (first.flow, first.value, first.how["flows"]) == ("gpu0->gpu1", 50.732e9, "gpu0->gpu1, gpu1->gpu0")
    assert (second.value, second.settings["bytes"], second.how["engine"]) == (51.083e9, 268435456, "SM")
    (cut,) = read_results(A2A[: A2A.rindex("GPU 01")], "f.txt").observations
    assert (cut.flow, cut.how["flows"]) == ("gpu0->gpu1", "gpu0->gpu1, gpu1->gpu0")
    with pytest.raises(FormatError, match="cells for 2 columns") as caught:
        read_results(A2A[: A2A.index("50.732") - 5], "f.txt")
    assert caught.value.location is not None
    assert caught.value.location.line == 4


BABEL = "Using CUDA device: GH200 120GB (CuDevice(0))\nFunction    MBytes/sec  Min (sec)   Max         Average\n"


def test_babelstream_counts_the_payload_of_a_copy_once():
    result = read_results(f"{BABEL}Copy        2.0e6  0.0001     0.3     0.005\nDot 1.8e6 0.1 0.2 0.3\n", "f.txt")
    (row,) = result.observations
    assert (row.flow, row.path, row.value) == ("gpu0->gpu0", "GPU memory", 1e12)
    assert result.posted.title("gpu0") == "GH200 120GB"
    host = "Function    MBytes/sec  Min (sec)   Max\nCopy        200000.0  0.0001     0.3     0.005\n"
    assert [row.flow for row in read_results(host, "f.txt").observations] == ["host0->host0"]


def test_a_matrix_quoted_by_a_page_may_have_a_heading_dashes_and_a_fence():
    cells = "   D\\D   0    1\n     0  \u2014  112.3\n     1  112.4  \u2014\n"
    text = f"### Bidirectional P2P=Enabled Matrix (GB/s)\n\n```\n{cells}```\n"
    rows = read_results(text, "f.txt").observations
    assert [row.value for row in rows if row.flow == "gpu0->gpu1, gpu1->gpu0"] == [112.3e9]
    assert [row.value for row in rows if row.path == "GPU memory"] == [None, None]


def test_bandwidth_test_without_its_kind_of_memory_and_a_link_that_trained_down():
    text = "Host to Device Bandwidth, 1 Device(s)\nTransfer Size (Bytes)        Bandwidth (GB/s)\n33554432    2.3\n"
    (row,) = read_results(text, "f.txt").observations
    assert (row.value, "host memory" in row.how) == (2.3e9, False)
    link = "Supported Link Width: x16, ...\nLnkSta: Speed 8GT/s (Gen3), Width x8 (Down-trained)\n"
    said = [statement.value for statement in read_posted(link, "f.txt").posted.statements]
    assert said == ["a device x8 of x16"]
