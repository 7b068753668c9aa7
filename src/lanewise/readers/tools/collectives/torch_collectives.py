"""Collectives that torch.distributed timed: all_reduce_bench.py of ML engineering, older and newer, and DeepSpeed.

Sources of what is read: the tools' own sources (github.com/stas00/ml-engineering, network/benchmarks;
github.com/deepspeedai/DeepSpeedExamples, benchmarks/communication). GBps is 1e9 bytes a second, Gbps 1e9 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanewise import late_re as re
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import WHOLE, count, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "torch.distributed"
_LAUNCH = "torch"
_TABLE = re.compile(r"average bandwidth of (\w+) over (\d+) ranks")
_CELLS = re.compile(r"\|\s*(\d+)\s*([KMG])i?B\s*\|\s*([\d.]+)\s*GBps\s*\|\s*([\d.]+)\s*GBps\s*\|")
_ONE = re.compile(r"average bandwidth of (\w+) with a ([\d.]+)GB payload \(\d+ trials, (\d+) ranks\)")
_BUS = re.compile(r"\bbusbw: ([\d.]+) GBps")
_DEEPSPEED = re.compile(r"---- Performance of (\w+) on (\d+) devices ----")
_DEEPSPEED_UNIT = re.compile(r"Size \(Bytes\).*\bBusBW \((Gbps|GBps)\)")
_DEEPSPEED_ROW = re.compile(r"\b(\d+)x(\d+)\s+[\d.]+(?: ?[mu]?s)?\s+([\d.]+)\s+([\d.]+)\s*$")
_VERSION = re.compile(r"\bnccl=\((\d+), (\d+), (\d+)\)")
_BYTES = {"K": 2**10, "M": 2**20, "G": 2**30}


@dataclass
class _Heading:
    """What stands above figures: the operation, its ranks, the unit, and of one payload its size."""

    collective: str = ""
    ranks: int = 0
    unit: str = "GB/s"
    size: int = 0


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold bus bandwidths of one of these tools."""
    return any(_TABLE.search(line) or _ONE.search(line) or _DEEPSPEED.search(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The bus bandwidth of each size; FormatError where a heading has no figures below it."""
    heading, version = _Heading(), ""
    rows: list[Observation] = []
    for number, line in enumerate(lines, 1):
        at = Location(file, number)
        if (stated := _VERSION.search(line)) is not None:
            version = ".".join(stated.groups())
        for pattern in (_TABLE, _DEEPSPEED):
            if (match := pattern.search(line)) is not None:
                heading = _Heading(match[1], count(match[2], at))
        if (match := _ONE.search(line)) is not None:
            heading = _Heading(match[1], count(match[3], at), size=round(figure(match[2], at) * 1e9))
        if (match := _DEEPSPEED_UNIT.search(line)) is not None:
            heading.unit = {"Gbps": "Gb/s", "GBps": "GB/s"}[match[1]]
        if heading.collective:
            rows += _figures(heading, line, version, at)
            check_rows(rows, at)
    if not rows:
        raise FormatError(f"{TOOL}: a heading without figures", location=Location(file, len(lines)), hint=WHOLE)
    return ImportedResults(TOOL, tuple(rows))


def _figures(heading: _Heading, line: str, version: str, at: Location) -> list[Observation]:
    if (match := _CELLS.search(line)) is not None:
        size, bus = count(match[1], at) * _BYTES[match[2]], match[3]
    elif heading.size and (match := _BUS.search(line)) is not None:
        size, bus = heading.size, match[1]
    elif (match := _DEEPSPEED_ROW.search(line)) is not None:
        size, bus = count(match[1], at) * count(match[2], at), match[4]
    else:
        return []
    value = figure(bus, at) / (8 if heading.unit == "Gb/s" else 1)
    kind = ToolValue("", "", "bus_bandwidth", path="collective")
    how = {"engine": "NCCL", "library": f"NCCL {version}" if version else "", "launch": _LAUNCH}
    return [observation(TOOL, heading.collective, kind, value, how, {"bytes": size, "ranks": heading.ranks})]
