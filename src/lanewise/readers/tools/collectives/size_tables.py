"""Tables of a collective by message size that are none of nccl-tests': NCCL 1's own tests, NVSHMEM's, nccom-test, cuts.

What is read is the bus bandwidth below the head that says so (`busbw`), by the size in the first column. Its GB is 1e9
bytes. Source: outputs as posted, and the README of NCCL 1 (github.com/NVIDIA/nccl/tree/v1.3.4-1): `N` is a number of
elements of the type, the command says how many GPUs and which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.readers.tools.collectives.mscclpp import is_text as is_mscclpp
from lanewise.readers.tools.collectives.nccl_tests import UNNAMED
from lanewise.readers.tools.collectives.nccl_tests import is_text as is_nccl_tests
from lanewise.readers.tools.repeated_tables import labels_above, told_apart
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

TOOL = "a table of sizes"
_SIZES = {"size": 1.0, "bytes": 1.0, "n": 1.0, "size(b)": 1.0, "size(kb)": 1e3, "size(mb)": 1e6, "bytes(b)": 1.0}
_BUS = re.compile(r"(?:bus_?bw|bus_?bandwidth)(?:\(gb/s(?:ec)?\))?")
_WIDTHS = {"char": 1, "int8": 1, "uint8": 1, "half": 2, "bfloat16": 2, "int": 4, "float": 4, "double": 8, "int64": 8}
_NAMED = re.compile(
    r"\b(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|bcast|reduce)(?=_test|_perf|_latency|\b)", re.I
)
_NAMES = {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter", "bcast": "broadcast"}
# all_reduce_test SIZE [GPUS [DEVICE ...]], and the ranks that it lists.
_COMMAND = re.compile(r"_test\s+\d+\s+(\d{1,3})((?:\s+\d{1,3})*)\s*$")
_DEVICE = re.compile(r"Rank\s+\d+ uses device\s+(\d{1,3}) \[[^\]]*\] (\S.*)")


@dataclass
class _SizeTable:
    """The heads of a table with what is above it: the collective and its devices."""

    labels: Sequence[str]
    heads: Sequence[str]
    collective: str
    devices: Sequence[str]
    rows: list[Observation] = field(default_factory=list)

    def value(self) -> ToolValue:
        """What a number of the table is of: a ring over the devices that are named, or ranks that nobody lists."""
        if len(self.devices) < 2:
            return ToolValue(f"{self.collective} of its GPUs", "", "bus_bandwidth", path="collective")
        pairs = zip(self.devices, [*self.devices[1:], self.devices[0]], strict=True)
        ring = ", ".join(f"gpu{a}->gpu{b}" for a, b in pairs)
        return ToolValue(ring, ring, "bus_bandwidth", path="collective")

    def read(self, words: Sequence[str], at: Location) -> Iterator[Observation]:
        """The bus bandwidths of a line of figures, the second of them in place."""
        kind = words[self.heads.index("type")] if "type" in self.heads else ""
        width = _WIDTHS.get(kind, 1) if self.heads[0] == "n" else 1
        size = figure(words[0], at) * _SIZES[self.heads[0]] * width
        settings = {"bytes": int(size), **({"ranks": len(self.devices)} if len(self.devices) > 1 else {})}
        places = [place for place, head in enumerate(self.heads) if _BUS.fullmatch(head)]
        for place, way in zip(places, ("", " in place"), strict=False):
            yield observation(TOOL, self.collective + way, self.value(), figure(words[place], at), {}, settings)


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold such a table, and none of the tools that have a reader of their own."""
    return any(map(_heads, lines)) and not is_nccl_tests(lines) and not is_mscclpp(lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The bus bandwidth of each size of each table; lines that are no row of it end a table."""
    tables: list[_SizeTable] = []
    collective, devices = UNNAMED, list[str]()
    titles: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        at = Location(file, number)
        words = line.replace("|", " ").split()
        if heads := _heads(line):
            tables.append(_SizeTable(labels_above(lines, number - 1), heads, collective, devices))
        elif tables and len(words) == len(tables[-1].heads) and _is_number(words[0]):
            tables[-1].rows += tables[-1].read(words, at)
            check_rows(tables[-1].rows, at)
        elif named := _NAMED.search(line):
            word = named[1].lower()
            collective = _NAMES.get(word, word)
            command = _COMMAND.search(line)
            devices = (command[2].split() or list(map(str, range(int(command[1]))))) if command else devices
        if device := _DEVICE.search(line):
            titles[f"gpu{device[1]}"] = device[2]
    rows = told_apart([(table.labels, table.rows) for table in tables])
    check_rows(rows, Location(file, len(lines)))
    return ImportedResults(TOOL, tuple(rows), posted=PostedFacts(titles))


def _heads(line: str) -> list[str]:
    """The heads of such a table in lower case, one a column; empty for another line."""
    if "bus" not in line.lower():
        return []
    plain = line.replace("|", " ").replace("#wrong", "wrong").replace("#", " ").lower()
    words = " ".join(plain.split()).replace(" (", "(").split()
    known = words and words[0] in _SIZES and any(map(_BUS.fullmatch, words))
    return words if known else []


def _is_number(word: str) -> bool:
    return re.fullmatch(r"\d{1,15}(?:\.\d{1,9})?", word) is not None
