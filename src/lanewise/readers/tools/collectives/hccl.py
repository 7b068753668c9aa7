"""hccl_demo of Intel Gaudi: bus bandwidth ("NW Bandwidth") of a collective by message size. Its GB is 1e9 bytes.

Source: HabanaAI/hccl_demo (format_bw and describe_stat): the rate of the algorithm times the factor of the collective,
2 (n - 1) / n for all_reduce, as nccl-tests count; early versions print this one alone, in MB/s of 1e6.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import WHOLE, count, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "hccl_demo"
_TEST = re.compile(r"\[BENCHMARK\]\s{1,8}hccl(\w{4,20})\((?:[^)]{0,80}?\bdata_?size=(\d{1,15})\b)?", re.IGNORECASE)
_BYTES = re.compile(r"\bcount=(\d{1,15}), dtype=(\w{2,10})")
_RATE = re.compile(r"\[BENCHMARK\]\s{1,12}(?:NW )?Bandwidth\s{0,8}: (\d[\d.]{0,15}) ([GM])B/s")
_NAMES = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter", "broadcast": "broadcast",
    "alltoall": "alltoall", "reduce": "reduce",
}  # fmt: skip
_OF_TYPE = {"float": 4, "fp32": 4, "bfloat16": 2, "bf16": 2}
_UNITS = {"G": 1.0, "M": 1e-3}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a result of hccl_demo."""
    return any(_TEST.search(line) for line in lines) and any(_RATE.search(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The bus bandwidth of each test; FormatError with the line of a rate whose test is not named above."""
    rows: list[Observation] = []
    test: tuple[str, int] | None = None
    for number, line in enumerate(lines, 1):
        at = Location(file, number)
        if match := _TEST.search(line):
            name = match[1].lower()
            test = _NAMES.get(name, name), count(match[2], at) if match[2] else _size(line)
        elif match := _RATE.search(line):
            if test is None:
                raise FormatError("which collective is this of?", location=at, hint=WHOLE)
            kind = ToolValue(f"{test[0]} of its GPUs", "", "bus_bandwidth", path="collective")
            settings = {"bytes": test[1]} if test[1] else {}
            value = figure(match[1], at) * _UNITS[match[2]]
            rows.append(observation(TOOL, test[0], kind, value, {"engine": "HCCL"}, settings))
            check_rows(rows, at)
    return ImportedResults(TOOL, tuple(rows))


def _size(line: str) -> int:
    """The bytes of a message by its count of elements, 0 where neither is stated."""
    match = _BYTES.search(line)
    return int(match[1]) * _OF_TYPE.get(match[2].lower(), 0) if match else 0
