"""mscclpp-test of MSCCL++: bus bandwidth of a collective by message size. Its GB is 1e9 bytes.

Source of what is read: the tool's own source (github.com/microsoft/mscclpp, test/mscclpp-test/common.cc). A row has one
set of figures, that in place or that out of place, below the heads of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lanewise import late_re as re
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import MAX_COLUMNS, WHOLE, count, figure
from lanewise.readers.tool_results import ImportedResults, check_rows, observation
from lanewise.readers.tools.collectives.nccl_tests import RANK, NcclJob, unlabelled
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

TOOL = "mscclpp-test"
_HEAD = re.compile(r"#?\s{0,40}size\s{1,40}count\s{1,40}time\s{1,40}algbw\s{1,40}busbw\b")
_NAMED = re.compile(r"\b(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|sendrecv)_test\d?_perf\b")
_NAMES = {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter"}
_ROW = re.compile(
    r"\s{0,40}\d{1,15}\s{1,40}\d{1,15}"
    r"(?:\s{1,60}\d[\d.]{0,11}\s{1,20}\d{1,9}\.\d\d\s{1,20}\d{1,9}\.\d\d\s{1,20}\S{1,10}){1,2}\s*$"
)
# Words of a row: size, count, and time, algorithm and bus bandwidth, wrong values of each set.
_SET = 4


@dataclass
class _Table:
    """What is above the rows: collective and ranks, where the heads of bus bandwidth end, and which way is first."""

    job: NcclJob = field(default_factory=NcclJob)
    ends: tuple[int, ...] = ()
    ways: tuple[str, str] = (" in place", "")

    def take(self, line: str, at: Location) -> None:
        """What a line says that is no row."""
        if named := _NAMED.search(line):
            name = named[1].replace("_", "")
            self.job.collective = _NAMES.get(name, name)
        if rank := RANK.search(line):
            self.job.ranks.append((rank[3], str(count(rank[4], at)), rank[5].strip()))
            self.job.processes.add((rank[3], rank[2]))
            if len(self.job.ranks) > 64 * MAX_COLUMNS:
                raise FormatError("more ranks than any machine has", location=at, hint=WHOLE)
        if "in-place" in line and "out-of-place" in line:
            first = line.index("out-of-place") < line.replace("out-of-place", "            ").index("in-place")
            self.ways = ("", " in place") if first else (" in place", "")
        if _HEAD.match(line):
            self.ends = tuple(head.end() for head in re.finditer(r"\bbusbw\b", line))

    def rows(self, line: str, at: Location) -> Iterator[Observation]:
        """The bus bandwidths of a row, each below the heads of its way."""
        words = list(re.finditer(r"\S+", line))
        settings = {"bytes": count(words[0][0], at), **self.job.settings}
        for place in range(4, len(words), _SET):
            end = words[place].end()
            nearest = min(range(len(self.ends)), key=lambda n: abs(self.ends[n] - end))
            name = self.job.collective + self.ways[nearest % 2]
            how = {"engine": "MSCCL++"}
            yield observation(TOOL, name, self.job.value(), figure(words[place][0], at), how, settings)


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a table of mscclpp-test."""
    return any(_HEAD.match(unlabelled(line)) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Bus bandwidth of each size, in place or out of place; FormatError with the line where there is no row."""
    rows: list[Observation] = []
    table = _Table()
    devices: dict[str, str] = {}
    for number, line in enumerate(map(unlabelled, lines), 1):
        at = Location(file, number)
        if table.ends and (_NAMED.search(line) or RANK.search(line)):
            table = _Table()
        if table.ends and _ROW.match(line):
            rows += table.rows(line, at)
            check_rows(rows, at)
        else:
            table.take(line, at)
            ranks = table.job.ranks
            devices |= {f"gpu{device}": name for host, device, name in ranks if host == ranks[0][0]}
    if not rows:
        raise FormatError("the table of mscclpp-test has no rows", location=Location(file, len(lines)), hint=WHOLE)
    return ImportedResults(TOOL, tuple(rows), posted=PostedFacts(devices))
