"""Outputs of tools as other versions and other options of the same tool print them.

Each function returns the text as it is where it is none of that tool. What was looked up stands at each; the others are
written from what the tools are known to print.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import count

from lanewise.readers.tool_results import MIB


# nvbandwidth: output.cpp, common.h and memcpy.cpp of v0.2, v0.4, v0.6 and v0.8 at github.com/NVIDIA/nvbandwidth.
def nvbandwidth_before_0_6(text: str) -> str:
    """Without PCI addresses and the blank before a row's number, columns of ten, no SUM lines (0.2)."""
    if "nvbandwidth" not in text:
        return text
    text = re.sub(r"^SUM \w+ [\d.]+\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(Device \d+: .*?) \([0-9a-f:]+\)$", r"\1", text, flags=re.MULTILINE)
    return re.sub(r"^ (\d+  +[\d.N/A ]+)$", r"\1", text, flags=re.MULTILINE)


def nvbandwidth_verbose(text: str) -> str:
    """With -v: the samples of each copy above the matrix, least and most below it."""
    sample = "\tSample 0: Host 0 -> Device 1: 55.10 GB/s\n\tSample 1: Host 0 -> Device 1: 54.90 GB/s\n"
    text = re.sub(r"^(Running \w+\.\n)", rf"\1{sample}", text, flags=re.MULTILINE)
    below = r"\g<0>\nMIN \1 1.00\nMAX \1 99.00\nAVG \1 9.00"
    return re.sub(r"^SUM (\w+) [\d.]+$", below, text, flags=re.MULTILINE)


def nvbandwidth_json(text: str) -> str:
    """As JSON (-j, from 0.6 on); of tests of both ways the three matrices follow one another in one test."""
    cases: dict[str, dict[str, object]] = {}
    found = re.finditer(r"^Running (\w+)\.\n((?:(?!^Running ).*\n?)*)", text, flags=re.MULTILINE)
    for match in found:
        matrices = re.findall(r"\((?:GB/s|ns)\)\n[ \d]+\n((?: ?\d+  +[\d.N/A ]+\n)+)", match[2])
        rows = [line.split()[1:] for matrix in matrices for line in matrix.splitlines()]
        cells = [[cell if cell == "N/A" else f"{float(cell):g}" for cell in line] for line in rows]
        if not cells or match[1] in cases:
            return text
        cases[match[1]] = {"name": match[1], "status": "Passed", "bandwidth_matrix": cells}
    body = {"nvbandwidth": {"version": "v0.8", "testcases": [*cases.values()]}}
    return json.dumps(body, indent="\t") if cases else text


# nccl-tests: all_reduce.cu of v2.9.0, common.cu of v2.13, util.cu of v2.17 to v2.19 at github.com/NVIDIA/nccl-tests.
_NCCL_ROW = re.compile(
    r"^( *\d+ +\d+ +[a-z]\w* +\w+ +-?\d+)( +[\d.]+ +[\d.]+ +[\d.]+) +(\d+|N/A)( +[\d.]+ +[\d.]+ +[\d.]+) +(\d+|N/A) *$",
    re.MULTILINE,
)


_NCCL_HEAD = re.compile(r"^#? *size .*root.*#wrong", re.MULTILINE)


def nccl_log_between(text: str) -> str:
    """With NCCL_DEBUG=INFO: lines of the library between the rows."""
    info = "node1:5092:5110 [0] NCCL INFO comm 0x55d0 rank 0 nranks 4 cudaDev 0 busId 7000 - Init COMPLETE"
    return _NCCL_ROW.sub(lambda match: f"{match[0]}\n{info}", text)


def nccl_unchecked(text: str) -> str:
    """With -c 0: no comparison of the data."""
    return _NCCL_ROW.sub(r"\1\2    N/A\4    N/A", text)


def nccl_before_2_11(text: str) -> str:
    """No column root, the largest difference in place of the count of wrong values, bus numbers of two digits."""
    if not _NCCL_HEAD.search(text):
        return text
    text = _NCCL_ROW.sub(lambda match: f"{match[1].rsplit(maxsplit=1)[0]}{match[2]}  0e+00{match[4]}  0e+00", text)
    text = re.sub(r"^(#.*redop) +root(.*)$", r"\1  \2", text, flags=re.MULTILINE).replace("#wrong", " error")
    return re.sub(r"\[0000:([0-9a-f]{2}):00\]", r"[0x\1]", text)


def nccl_iterations(text: str) -> str:
    """The report of each iteration of 2.19: four columns behind each set, and a time behind each row."""
    if not _NCCL_HEAD.search(text):
        return text
    text = _NCCL_ROW.sub(r"\1\2 \3   10.00   12.00   11.90    1.25\4 \5   10.00   12.00   11.90    1.25", text)
    more = "  i_min    i_max    i_p99    i_cv%"
    return re.sub(r"^(#? *size .*?#wrong)(.*#wrong)", rf"\1{more}\2{more}", text, flags=re.MULTILINE)


def nccl_stamped(text: str) -> str:
    """With -T: the time of each row, a column more."""
    if not _NCCL_HEAD.search(text):
        return text
    text = _NCCL_ROW.sub(r"\g<0>  2026-11-02 10:00:00", text)
    return re.sub(r"^(#? *size .*#wrong.*#wrong)", r"\1            timestamp", text, flags=re.MULTILINE)


# p2pBandwidthLatencyTest: the samples of CUDA 8 and of 11 to 13 at github.com/NVIDIA/cuda-samples.
def p2p_reads(text: str) -> str:
    """With --p2p_read: the row's GPU reads from the column's, so that flows between GPUs turn round."""
    return text.replace("(P2P Writes)", "(P2P Reads)")


# bandwidthTest: bandwidthTest.cu of CUDA 5 to 12 (github.com/NVIDIA/cuda-samples), its printResultsCSV.
def bandwidth_test_csv(text: str) -> str:
    """With --csv, a line a result."""
    kinds = {"Host to Device": "H2D", "Device to Host": "D2H", "Device to Device": "D2D"}
    section = re.compile(
        r"^ (Host to Device|Device to Host|Device to Device) Bandwidth, 1 Device\(s\)\n (PINNED|PAGEABLE) Memory "
        r"Transfers\n +Transfer Size \(Bytes\)\tBandwidth\(GB/s\)\n((?:\s+\d+\s+[\d.]+\n)+)", re.MULTILINE,
    )  # fmt: skip

    def lines(match: re.Match[str]) -> str:
        memory = {"PINNED": "-Pinned", "PAGEABLE": "-Paged"}[match[2]] if match[1] != "Device to Device" else ""
        rows = re.findall(r"(\d+)\s+([\d.]+)", match[3])
        return "".join(
            f"bandwidthTest-{kinds[match[1]]}{memory}, Bandwidth = {rate} GB/s, Time = 0.00100 s, Size = {size} bytes, "
            "NumDevsUsed = 1\n" for size, rate in rows
        )  # fmt: skip

    return section.sub(lines, text)


def bandwidth_test_megabytes(text: str) -> str:
    """MB/s of 2^20 bytes, as before CUDA 10."""
    if "Bandwidth(GB/s)" not in text:
        return text
    text = text.replace("Bandwidth(GB/s)", "Bandwidth(MB/s)")
    return re.sub(r"^(\s+\d+\s+)([\d.]+)$", lambda m: f"{m[1]}{float(m[2]) * 1e9 / MIB:.4f}", text, flags=re.MULTILINE)


def bandwidth_test_other_device(text: str) -> str:
    """Of GPU 4."""
    return re.sub(r"^ Device 0:", " Device 4:", text, flags=re.MULTILINE) if "Bandwidth, 1 Device" in text else text


# perftest: perftest_parameters.h of v4.4 and 26.01 at github.com/linux-rdma/perftest.
_PERFTEST_ROW = re.compile(r"^( *\d+ +\d+ +)([\d.]+)( +)([\d.]+)(\s+)([\d.]+)[ \t]*$", re.MULTILINE)
_GBITS = "BW peak[Gb/sec]    BW average[Gb/sec]"


def perftest_bytes(unit: str) -> Callable[[str], str]:
    """MB/sec (MiB/sec since 2023) in place of Gb/sec."""

    def change(text: str) -> str:
        if _GBITS not in text:
            return text
        text = text.replace(_GBITS, f"BW peak[{unit}/sec]    BW average[{unit}/sec]")
        scale = 1e9 / 8 / MIB
        return _PERFTEST_ROW.sub(
            lambda m: f"{m[1]}{float(m[2]) * scale:.4f}{m[3]}{float(m[4]) * scale:.4f}{m[5]}{m[6]}", text
        )

    return change


def perftest_both_ports(text: str) -> str:
    """With --dualport --report-per-port: four columns more."""
    more = "   BW Port1[Gb/sec]   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]"
    if _GBITS not in text:
        return text
    return _PERFTEST_ROW.sub(r"\g<0>  1.00  0.001  2.00  0.002", text).replace("MsgRate[Mpps]", f"MsgRate[Mpps]{more}")


def perftest_cpu(text: str) -> str:
    """With --cpu_util: a column more."""
    if "MsgRate[Mpps]" not in text:
        return text
    return _PERFTEST_ROW.sub(r"\g<0>    3.14", text).replace("MsgRate[Mpps]", "MsgRate[Mpps]    CPU_Util[%]")


def perftest_before_2020(text: str) -> str:
    """No lines of relaxed ordering, ibv_wr and the method of exchange; the list of packets without a verb."""
    return re.sub(r"^ (?:PCIe relax order|ibv_wr\* API|Lock-free).*\n", "", text, flags=re.MULTILINE)


def perftest_json(text: str) -> str:
    """With --out_json, where one table has one row."""
    heads = re.findall(r"^ #bytes.*BW average\[Gb/sec\]", text, re.MULTILINE)
    found = _PERFTEST_ROW.findall(text)
    title = re.search(r"^ *(RDMA_Write|RDMA_Read|Send)( Bidirectional)? BW Test", text, re.MULTILINE)
    if len(heads) != 1 or len(found) != 1 or title is None or re.search(r"--use_cuda|numactl", text):
        return text
    fields = {key: re.search(rf"{key}\s*: (\S+)", text) for key in ("Device", "Number of qps", "TX depth")}
    info = {key.replace(" ", "_"): match[1] for key, match in fields.items() if match}
    figures: list[str] = [*found[0][0].split(), *found[0][1:]]
    size, iterations, peak, _, average, _, rate = figures
    results = {"MsgSize": int(size), "n_iterations": int(iterations), "BW_peak": float(peak)}
    results |= {"BW_average": float(average), "MsgRate": float(rate)}
    name = f"{title[1]}{(title[2] or '').replace(' ', '_')}_BW_Test"
    return json.dumps({"test_info": {"test": name, **info}, "results": results}, indent=1)


# fio: HOWTO ("Interpreting the output", kb_base, unit_base), num2str.c and stat.c at github.com/axboe/fio.
_FIO_RATE = re.compile(r"\b(BW|bw)=([\d.]+)MiB/s \([\d.]+[kMG]?B/s\)")


def fio_decimal(text: str) -> str:
    """With --kb_base=1000: decimal units first, binary ones in brackets."""
    return _FIO_RATE.sub(lambda m: f"{m[1]}={float(m[2]) * MIB / 1e6:.6g}MB/s ({m[2]}MiB/s)", text)


def fio_bits(text: str) -> str:
    """With --unit_base=1: bits."""
    return _FIO_RATE.sub(lambda m: f"{m[1]}={float(m[2]) * 8:.6g}Mibit/s ({float(m[2]) * 8.388608:.1f}Mbit/s)", text)


def fio_kibibytes(text: str) -> str:
    """KiB/s, as of slow drives."""
    return _FIO_RATE.sub(lambda m: f"{m[1]}={float(m[2]) * 1024:.2f}KiB/s ({float(m[2]) * 1048.576:.0f}kB/s)", text)


def fio_gibibytes(text: str) -> str:
    """GiB/s, as of many drives."""
    return _FIO_RATE.sub(lambda m: f"{m[1]}={float(m[2]) / 1024:.9f}GiB/s ({float(m[2]) / 953.67:.1f}GB/s)", text)


def fio_2(text: str) -> str:
    """The result lines of version 2: binary units without the i, IOPS behind the rate."""
    return re.sub(
        r"^  (read|write): IOPS=([\d.]+k?), BW=([\d.]+)([KMG])iB/s \([\d.]+[kMG]?B/s\) ?"
        r"\(([\d.]+)([KMG])iB/(\d+)msec\)",
        lambda m: f"  {m[1]:5}: io={m[5]}{m[6]}B, bw={m[3]}{m[4]}B/s, iops={m[2]}, runtime={m[7]}msec",
        text,
        flags=re.MULTILINE,
    )  # fmt: skip


# iperf: units.c (bits by 1000, bytes by 1024) and iperf_api.c at github.com/esnet/iperf; iperf 2's reports.
_IPERF = re.compile(r"(\d[\d.]*) ([KMG]?)bits/sec")
_BITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}


def iperf_bytes(text: str) -> str:
    """With -f M: MBytes of 2^20 a second."""
    return _IPERF.sub(lambda m: f"{float(m[1]) * _BITS[m[2]] / 8 / MIB:.9g} MBytes/sec", text)


def iperf_megabits(text: str) -> str:
    """With -f m."""
    return _IPERF.sub(lambda m: f"{float(m[1]) * _BITS[m[2]] / 1e6:.9g} Mbits/sec", text)


def iperf_stamped(text: str) -> str:
    """With --timestamps, a time before each line."""
    if "bits/sec" not in text:
        return text
    clock = count()
    return "\n".join(f"Mon Nov  2 10:00:{next(clock) % 60:02d} 2026 {line}" for line in text.split("\n"))


# OSU micro-benchmarks 5.6 to 7.4: osu_util.c (heads, -c, MPI-ROCM) at mvapich.cse.ohio-state.edu/benchmarks.
_OSU_ROW = r"^(\d+ +[\d.]+)$"


def osu_validated(text: str) -> str:
    """With -c: a column that says whether the data came over."""
    if "# OSU" not in text:
        return text
    text = re.sub(r"^(# Size +.*)$", r"\1        Validation", text, flags=re.MULTILINE)
    return re.sub(_OSU_ROW, r"\1                Pass", text, flags=re.MULTILINE)


def osu_rocm(text: str) -> str:
    """The head of a build for ROCm."""
    return text.replace("# OSU MPI-CUDA ", "# OSU MPI-ROCM ")


# STREAM 5.8 and 5.10: stream.c; sysbench 0.4 and 1.0: sb_memory.c; coreutils' dd.c.
def stream_5_8(text: str) -> str:
    """The head before 5.9."""
    return text.replace("Function    Best Rate MB/s  Avg time", "Function      Rate (MB/s)   Avg time")


def sysbench_0_4(text: str) -> str:
    """MiB called MB."""
    return re.sub(r"([\d.]+) MiB transferred \(([\d.]+) MiB/sec\)", r"\1 MB transferred (\2 MB/sec)", text)


def dd_before_8_24(text: str) -> str:
    """The size in one unit."""
    return re.sub(r"(\d+ bytes \([\d.]+ [kMG]?B), [\d.]+ [KMG]?iB\) copied", r"\1) copied", text)


def dd_seconds(text: str) -> str:
    """As coreutils before 6 wrote it."""
    return re.sub(r"(copied, [\d.e-]+) s,", r"\1 seconds,", text)


# ucx_perftest: perftest.c of 1.8 and 1.12 at github.com/openucx/ucx. TransferBench 1.4 to 1.6: its printf and borders.
def ucx_before_1_12(text: str) -> str:
    """The median called typical, rows without a thread."""
    text = text.replace("| 50.0%ile |", "| typical  |").replace("| # iterations |", "|# iterations  |")
    return re.sub(r"^\[thread 0\]( +\d+ )", r"          \1", text, flags=re.MULTILINE)


def transferbench_bars(text: str) -> str:
    """Bars and dashes in place of the lines of boxes."""
    return text.translate(str.maketrans("\u2502\u252c\u253c\u2534\u2500", "|++++"))


# nixlbench: utils.cpp of NIXL 0.2 and 0.3 at github.com/ai-dynamo/nixl, and logs in github.com/NVIDIA/cloudai.
def nixlbench_three_units(text: str) -> str:
    """Three columns of one rate behind the latency, as before 0.5."""
    if "Block Size (B)" not in text:
        return text
    text = re.sub(
        r"^Block Size \(B\) +Batch Size +B/W \(GB/Sec\) .*$",
        "Block Size (B)      Batch Size     Avg Lat. (us)  B/W (MiB/Sec)  B/W (GiB/Sec)  B/W (GB/Sec)", text,
        flags=re.MULTILINE,
    )  # fmt: skip
    return re.sub(
        r"^(\d+ +\d+ +)([\d.]+) +([\d.]+) .*$",
        lambda m: f"{m[1]}{m[3]}  {float(m[2]) * 1e9 / MIB:.6g}  {float(m[2]) * 1e9 / MIB / 1024:.6g}  {m[2]}",
        text,
        flags=re.MULTILINE,
    )  # fmt: skip


# What changes the text and no row.
VERSIONS: dict[str, Callable[[str], str]] = {
    function.__name__.replace("_", " "): function
    for function in (
        nvbandwidth_before_0_6, nvbandwidth_verbose, nvbandwidth_json, nccl_log_between, nccl_unchecked,
        nccl_before_2_11, nccl_iterations, nccl_stamped, bandwidth_test_csv, bandwidth_test_megabytes,
        perftest_both_ports, perftest_cpu, perftest_before_2020, perftest_json, fio_decimal, fio_bits, fio_kibibytes,
        fio_gibibytes, fio_2, iperf_bytes, iperf_megabits, iperf_stamped, osu_validated, osu_rocm, stream_5_8,
        sysbench_0_4, dd_before_8_24, dd_seconds, ucx_before_1_12, transferbench_bars, nixlbench_three_units,
    )
} | {"perftest MB": perftest_bytes("MB"), "perftest MiB": perftest_bytes("MiB")}  # fmt: skip
