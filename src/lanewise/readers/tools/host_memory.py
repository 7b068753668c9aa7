"""Rates of a host's memory: STREAM, Intel's Memory Latency Checker, sysbench, mbw, lmbench's bw_mem, likwid-bench.

Sources: stream.c (MB is 1e6 bytes), MLC's own heads ("1 MB/sec = 1,000,000 Bytes/sec"; rows are the nodes whose CPUs
read, columns those whose memory is read), sysbench's sb_memory.c (MiB, called MB up to 0.4), mbw.c (MiB), lmbench's
lib_timing.c (MB of 1e6 bytes), likwid-bench's manual (MByte of 1e6 bytes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure, grouped_figure
from lanewise.readers.tool_results import MIB, ImportedResults, ToolValue, check_rows, observation
from lanewise.readers.tools.commands import cpu_node, memory_node
from lanewise.results.observation import Observation

# Also as a row of a table that a page or a report made of it: 'Copy | 73,876.7 |', '| triad | 2493 MB/s |'.
_STREAM = re.compile(
    r"\s*\|? ?(Copy|Scale|Add|Triad)\s*[:|]{1,2}\s{0,20}(\d[\d,.]{0,15})\s{0,80}(?:MB/s)?\s{0,80}(?:\||\s\d|$)",
    re.IGNORECASE,
)
_STREAM_HEAD = re.compile(r"(?:Best )?Rate \(?MB/s\)?|\bSTREAM\b|Bandwidth\b.{0,120}\bEfficiency", re.IGNORECASE)
_MLC = re.compile(r"Memory Latency Checker|\bmlc\b", re.IGNORECASE)
_MLC_LATENCY = re.compile(r"Measuring idle latencies", re.IGNORECASE)
_MLC_HEAD = re.compile(r"\s*Numa node((?:\s+\d{1,3})+)\s*$", re.IGNORECASE)
_MLC_ROW = re.compile(r"\s*(\d{1,3})((?:\s+(?:\d[\d.]{0,12}|-))+)\s*$")
_MLC_PEAK = re.compile(
    r"\s*(ALL Reads|[1-3]:1 Reads-Writes|Stream-triad like)\s*:\s*(\d[\d.]{0,12})\s*$", re.IGNORECASE
)
_SYSBENCH = re.compile(r"[\d.]{1,16} Mi?B transferred \((\d[\d.]{0,15}) Mi?B/sec\)")
_SYSBENCH_OPTION = re.compile(r"--memory-(block-size|oper|access-mode)=(\w{1,12})")
_SYSBENCH_BLOCK = re.compile(r"\s*(?:block size|Memory block size): (\d{1,9})(Ki?B?|Mi?B?|Gi?B?)", re.IGNORECASE)
_SYSBENCH_OPER = re.compile(r"\s*(?:operation|Memory operations type): (read|write)")
_MBW = re.compile(r"AVG\s+Method: (\w{1,12})\s+Elapsed: [\d.]{1,12}\s+MiB: [\d.]{1,12}\s+Copy: (\d[\d.]{0,12}) MiB/s")
_BW_MEM = re.compile(r"\bbw_mem (?:-\w \d{1,4} )*\d{1,6}[kmg]? (\w{1,6})\b", re.IGNORECASE)
_BW_MEM_ROW = re.compile(r"(\d{1,9}\.\d{2}) (\d[\d.]{0,12})\s*$")
_LIKWID = re.compile(r"MByte/s:\s+(\d[\d.]{0,12})\s*$")
_LIKWID_TEST = re.compile(r"likwid-bench .{0,40}-t (\w{1,40})")
_POWERS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_LONGEST_LABEL = 60
# STREAM prints two dozen lines between its command and its rates.
_COMMAND_ABOVE = 40
_NUMACTL = re.compile(r"\bnumactl(?: -\S{1,30}(?: \d{1,3}(?= ))?){1,4}")


@dataclass(frozen=True, slots=True)
class _Rate:
    """A rate in B/s of one kernel of a tool, by whose CPUs of which memory."""

    tool: str
    kernel: str
    value: float
    flow: str = "host0->host0"
    size: int = 0
    latency: bool = False


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold rates of one of these tools."""
    stream = any(map(_STREAM.match, lines)) and any(map(_STREAM_HEAD.search, lines))
    mlc = any(map(_MLC.search, lines)) and any(_MLC_HEAD.match(line) or _MLC_PEAK.match(line) for line in lines)
    plain = any(_SYSBENCH.search(line) or _MBW.search(line) or _LIKWID.match(line) for line in lines)
    lmbench = any(map(_BW_MEM.search, lines)) and any(map(_BW_MEM_ROW.match, lines))
    return stream or mlc or plain or lmbench


def read_text(lines: list[str], file: str) -> ImportedResults:
    """A row for each rate, runs of one kernel named by the line above them; FormatError for a figure that is none."""
    rates = [*_streams(lines, file), *_matrices(lines, file), *_others(lines, file)]
    rates.sort(key=lambda rate: rate[0])
    rates = [(number, _bound(rate, lines, number)) for number, rate in rates]
    kinds = [(rate.tool, rate.kernel, rate.flow, rate.size) for _, rate in rates]
    seen = Counter(kinds)
    rows = []
    for (number, rate), kind in zip(rates, kinds, strict=True):
        name = _label(lines, number) if seen[kind] > 1 else ""
        rows.append(_row(rate, name))
    check_rows(rows, Location(file, len(lines)))
    return ImportedResults(", ".join(dict.fromkeys(row.how["tool"] for row in rows)), tuple(rows))


def _streams(lines: Sequence[str], file: str) -> Iterator[tuple[int, _Rate]]:
    if not any(map(_STREAM_HEAD.search, lines)):
        return
    for number, line in enumerate(lines, 1):
        if match := _STREAM.match(line):
            rate = grouped_figure(match[2], Location(file, number)) * 1e6
            yield number, _Rate("STREAM", match[1].capitalize(), rate)


def _matrices(lines: Sequence[str], file: str) -> Iterator[tuple[int, _Rate]]:
    """MLC's matrices of rates or idle latencies between nodes, and its peak rates by mix of reads and writes."""
    if not any(map(_MLC.search, lines)):
        return
    columns: list[str] = []
    latency = False
    for number, line in enumerate(lines, 1):
        at = Location(file, number)
        if "Measuring" in line:
            latency = _MLC_LATENCY.search(line) is not None
        if match := _MLC_HEAD.match(line):
            columns = match[1].split()
        elif (match := _MLC_PEAK.match(line)) is not None:
            yield number, _Rate("MLC", match[1], figure(match[2], at) * 1e6)
        elif columns and (match := _MLC_ROW.match(line)) and len(match[2].split()) == len(columns):
            for memory, word in zip(columns, match[2].split(), strict=True):
                if word != "-":
                    value = figure(word, at) * (1e-9 if latency else 1e6)
                    kernel = "latency" if latency else "reads"
                    yield number, _Rate("MLC", kernel, value, f"host0:{memory}->host0:{match[1]}", latency=latency)
        elif line.strip():
            columns = []


def _others(lines: Sequence[str], file: str) -> Iterator[tuple[int, _Rate]]:
    """sysbench, mbw, bw_mem and likwid-bench, whose kernel and block stand in the lines above or in the command."""
    size, lmbench, likwid = 0, "", ""
    kernel: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        at = Location(file, number)
        for option, value in _SYSBENCH_OPTION.findall(line):
            size = _size(value) if option == "block-size" else size
            kernel |= {option: value} if option != "block-size" else {}
        if match := _SYSBENCH_BLOCK.match(line):
            size = _size(match[1] + match[2])
        if match := _SYSBENCH_OPER.match(line):
            kernel["oper"] = match[1]
        if match := _BW_MEM.search(line):
            lmbench = match[1]
        if match := _LIKWID_TEST.search(line):
            likwid = match[1]
        if match := _SYSBENCH.search(line):
            yield number, _Rate("sysbench", " ".join(kernel.values()), figure(match[1], at) * MIB, size=size)
        elif match := _MBW.search(line):
            yield number, _Rate("mbw", match[1], figure(match[2], at) * MIB)
        elif lmbench and (match := _BW_MEM_ROW.match(line)):
            bytes_ = int(float(match[1]) * 1e6)
            yield number, _Rate("lmbench", lmbench, figure(match[2], at) * 1e6, size=bytes_)
        elif match := _LIKWID.match(line):
            yield number, _Rate("likwid-bench", likwid, figure(match[1], at) * 1e6)


def _size(text: str) -> int:
    match = re.match(r"(\d{1,9})([KMG]?)", text, re.IGNORECASE)
    return int(match[1]) * _POWERS.get(match[2].upper(), 1) if match else 0


def _bound(rate: _Rate, lines: Sequence[str], number: int) -> _Rate:
    """A rate with the NUMA nodes that the numactl command above it chose; MLC says its nodes itself."""
    at = next((at for at in range(number - 1, max(-1, number - _COMMAND_ABOVE), -1) if "numactl -" in lines[at]), None)
    if at is None or rate.tool == "MLC":
        return rate
    memory, threads = memory_node([lines[at]]), cpu_node([lines[at]])
    return replace(rate, flow=f"host0:{memory}->host0:{threads}") if memory and threads else rate


def _label(lines: Sequence[str], number: int) -> str:
    """The nearest line above a rate that ends with a colon or is a command: what a text calls the run."""
    for at in range(number - 2, max(-1, number - 12), -1):
        if match := _NUMACTL.search(lines[at]):
            return match[0]
        line = lines[at].strip(" `#*>")
        if line.endswith(":") or re.search(r"[$#] ?\S|numactl|OMP_", lines[at]):
            return line.strip("$# :")[-_LONGEST_LABEL:]
    return f"line {number}"


def _row(rate: _Rate, name: str) -> Observation:
    scenario = " ".join(filter(None, (rate.tool, rate.kernel, name)))
    metric, unit = ("latency", "ns") if rate.latency else ("goodput", "GB/s")
    kind = ToolValue(rate.flow, rate.flow, metric, unit, "host memory")
    value = rate.value * 1e9 if rate.latency else rate.value / 1e9
    settings = {"bytes": rate.size} if rate.size else {}
    return observation(rate.tool, scenario, kind, value, {"pattern": rate.kernel}, settings)
