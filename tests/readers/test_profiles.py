"""Copies in the tables of Nsight Systems, those of the ROCm Validation Suite, and DeepEP's tests."""

from __future__ import annotations

import pytest

from lanewise.errors import FormatError
from lanewise.readers.kinds import read_results

TRACE_HEAD = (
    "   Start (ns)    Duration (ns)  CorrId  GrdX  BlkX  Bytes (MB)  Throughput (MB/s)  SrcMemKd  DstMemKd"
    "            Device             Ctx  GreenCtx  Strm  Name\n ------  -----\n"
)
DEVICE = "    NVIDIA GeForce RTX 3060 (1)    1               7  "
TRACE = (
    TRACE_HEAD
    + f" 1,000      100,000,000    107     800.000   8,000.000  Pageable  Device{DEVICE}[CUDA memcpy Host-to-Device]\n"
    + f" 2,000      1,000          108       0.004       4.000  Pageable  Device{DEVICE}[CUDA memcpy Host-to-Device]\n"
    + f" 3,000      50,000,000     109     500.000  10,000.000  Device  Pinned{DEVICE}[CUDA memcpy Device-to-Host]\n"
    + f" 4,000      50,000,000     110   1,600.000 341,449.000  Device  {DEVICE}[CUDA memset]\n"
)
SUMMARY = (
    "CUDA Memory Operation Statistics (by time):\n\n"
    " Time(%)  Total Time (ns)  Operations   Average   Minimum  Maximum      Operation     \n"
    " -------  ---------------  ----------  ---------  -------  -------  ------------------\n"
    "    51.8         52,450,950           8  6556368.8  6206432  6960601  [CUDA memcpy HtoD]\n"
    "    48.2         48,880,683           8  6110085.4  5347401  7179223  [CUDA memcpy DtoH]\n\n"
    "CUDA Memory Operation Statistics (by size in KiB):\n\n"
    "   Total     Operations   Average    Minimum    Maximum       Operation     \n"
    " ----------  ----------  ---------  ---------  ---------  ------------------\n"
    " 524288.000           8  65536.000  65536.000  65536.000  [CUDA memcpy HtoD]\n"
    " 262144.000           4  65536.000  65536.000  65536.000  [CUDA memcpy DtoH]\n"
)


def test_the_longest_copies_of_a_trace_of_nsys_are_rows_of_their_gpu_and_memory():
    results = read_results(TRACE, "f")
    assert [(row.flow, row.how["host memory"], row.value) for row in results.observations] == [
        ("host0->gpu1", "pageable", pytest.approx(8e9)), ("gpu1->host0", "pinned", pytest.approx(10e9)),
    ]  # fmt: skip
    assert results.observations[0].settings == {"bytes": 800_000_000}
    assert results.posted.title("gpu1") == "NVIDIA GeForce RTX 3060"


def test_a_trace_without_its_devices_is_of_the_first():
    text = TRACE.replace(DEVICE, "  ")
    assert [row.flow for row in read_results(text, "f").observations] == ["host0->gpu0", "gpu0->host0"]


def test_a_summary_is_read_where_both_tables_are_of_as_many_copies():
    (row,) = read_results(SUMMARY, "f").observations
    assert (row.flow, row.settings) == ("host0->gpu0", {"bytes": 65536 * 1024})
    assert row.value == pytest.approx(524288 * 1024 / 52.450950e-3)
    assert "host memory" not in row.how
    assert "does not say" in row.note


def test_a_summary_in_bars_has_its_unit_in_the_heads():
    text = (
        "| Time (%) | Total Time (ns) | Count | Avg (ns) | Operation |\n|---|---|---|---|---|\n"
        "| 65.7 | 2,000,000 | 7 | 1.0 | [CUDA memcpy Host-to-Device] |\n\n"
        "| Total (MB) | Count | Avg (MB) | Operation |\n|---|---|---|---|\n"
        "| 28.000 | 7 | 4.000 | [CUDA memcpy Host-to-Device] |\n"
    )
    (row,) = read_results(text, "f").observations
    assert (row.value, row.settings) == (pytest.approx(14e9), {"bytes": 4_000_000})


def test_tables_of_nsys_without_sizes_or_with_wrong_figures_are_refused():
    with pytest.raises(FormatError):
        read_results(SUMMARY.partition("(by size")[0], "f")
    with pytest.raises(FormatError, match="no figure"):
        read_results(TRACE.replace("800.000 ", "8x0.000 "), "f")


RVS = (
    "[INFO  ] [1.2] [action_1] p2p-bandwidth  [1/2] 453 15450  bidirectional: false  6.500 GBps (*)\n"
    "[INFO  ] [1.3] [action_1] p2p-bandwidth  [1/2] 453 15450  bidirectional: false  6.900 GBps\n"
    "[RESULT] [1.4] [action_1] p2p-bandwidth  [1/2] 453 15450  bidirectional: false  7.056 GBps  duration: 0.78 sec\n"
    "[RESULT] [1.5] [action_1] p2p-bandwidth  [2/2] 15450 453  bidirectional: true  12.081 GBps  duration: 0.49 sec\n"
    "[INFO  ] [1.6] [action_1] p2p-bandwidth  [2/2] 15450 453  bidirectional: true  0.000 GBps\n"
    "[RESULT] [1.6] [action_1] pcie-bandwidth  [ 1/ 2] 1 453  h2d: true  d2h: false  12.233 GBps  duration: 0.49 sec\n"
    "[RESULT] [1.7] [action_1] pcie-bandwidth  [ 2/ 2] 0 453  h2d: true  d2h: true  20.1 GBps  duration: 0.49 sec\n"
    "[RESULT] [1.8] [action_1] pcie-bandwidth  [ 2/ 2] 0 15450  h2d: false  d2h: false  20.1 GBps  duration: 1 sec\n"
)


def test_the_last_figure_of_each_copy_of_rvs_is_its_row():
    results = read_results(RVS, "f")
    assert [(row.flow, row.metric, row.value) for row in results.observations] == [
        ("gpu0->gpu1", "goodput", pytest.approx(7.056e9)), ("gpu1->gpu0, gpu0->gpu1", "total", pytest.approx(12.081e9)),
        ("host0:1->gpu0", "goodput", pytest.approx(12.233e9)),
        ("host0->gpu0, gpu0->host0", "total", pytest.approx(20.1e9)),
    ]  # fmt: skip
    assert "453, 15450" in results.notes[0]


def test_a_bandwidth_matrix_without_the_word_is_one():
    matrix = "   D\\D     0      1\n     0 1581.6  241.3\n     1  241.3 1582.3\n"
    text = f"Unidirectional P2P=Enabled Bandwidth (GB/s)\n{matrix}"
    rows = read_results(text, "f").observations
    assert [row.flow for row in rows] == ["gpu0->gpu0", "gpu0->gpu1", "gpu1->gpu0", "gpu1->gpu1"]
    assert rows[1].scenario == "Unidirectional P2P=Enabled Bandwidth"


BEST = (
    "[tuning] SMs 24, NVL chunk 20, RDMA chunk 28: 24.19 GB/s (RDMA), 79.12 GB/s (NVL)\n"
    "[tuning] Best dispatch (FP8): SMs 24, NVL chunk 20, RDMA chunk 32: 25.80 GB/s (RDMA), 84.39 GB/s (NVL)\n"
    "[1,0]<stdout>:[tuning] Best combine: SMs 24, NVL chunk 40, RDMA chunk 4, transmit: 6881.00 us, notify: 160.81 us, "
    "BW: 30.80 GB/s (RDMA), 61.85 GB/s (NVL)\n"
)


def test_what_deepep_calls_its_best_is_read_and_the_fastest_without():
    rows = read_results(BEST, "f").observations
    assert [(row.scenario, row.flow, row.path, row.value) for row in rows] == [
        ("DeepEP dispatch FP8", "gpu0->host1", "network", pytest.approx(25.8e9)),
        ("DeepEP combine", "gpu0->host1", "network", pytest.approx(30.8e9)),
    ]
    (row,) = read_results(BEST.splitlines()[0], "f").observations
    assert (row.scenario, row.value) == ("DeepEP kernel", pytest.approx(24.19e9))
    within = "[tuning] Best dispatch (BF16): SMs 24, NVL chunk 16, 160.46 GB/s (NVL), t: 99 us\n"
    (row,) = read_results(within, "f").observations
    assert (row.flow, row.path, row.how["p2p"]) == ("gpu0->gpu1", "peer", "on")
