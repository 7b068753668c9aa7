"""oneCCL's benchmark: the time of a collective by message size.

Source: its own source (oneapi-src/oneCCL, examples/benchmark): `#bytes`, times in us, `t_avg` the mean of all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import count, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "oneCCL's benchmark"
_HEAD = re.compile(r"#bytes\s.*\bt_avg\[usec\]")
_NAMED = re.compile(r"# Benchmarking: (\w{4,20})")
_RANKS = re.compile(r"# #processes: (\d{1,6})\b")
_NAMES = {"allreduce": "all_reduce", "allgather": "all_gather", "allgatherv": "all_gather", "bcast": "broadcast"}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a table of oneCCL's benchmark."""
    return any(_HEAD.match(line.strip()) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The mean time of each size."""
    rows: list[Observation] = []
    heads: list[str] = []
    collective, ranks = "collective", 0
    for number, line in enumerate(lines, 1):
        words, at = line.split(), Location(file, number)
        if named := _NAMED.search(line):
            collective = _NAMES.get(named[1].lower(), named[1].lower())
        elif processes := _RANKS.search(line):
            ranks = int(processes[1])
        elif _HEAD.match(line.strip()):
            heads = words
        elif heads and len(words) == len(heads) and words[0].isdecimal():
            settings = {"bytes": count(words[0], at), **({"ranks": ranks} if ranks > 1 else {})}
            kind = ToolValue(f"{collective} of its ranks", "", "time", "us", path="collective")
            value = figure(words[heads.index("t_avg[usec]")], at)
            rows.append(observation(TOOL, collective, kind, value, {"engine": "oneCCL"}, settings))
            check_rows(rows, at)
        elif words and not line.lstrip().startswith("#"):
            heads = []
    return ImportedResults(TOOL, tuple(rows))
