"""nccl-tests and rccl-tests: bus bandwidth of a collective by message size. Its GB is 1e9 bytes.

Source of what is read: the tools' own sources (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md). Bus bandwidth is the
algorithm's rate times a factor that makes it comparable with one link of a ring.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lanewise.errors import FormatError, Location
from lanewise.readers.texts import MAX_COLUMNS, WHOLE, count, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts, Statement

TOOL = "nccl-tests"
# The collective of a table without the line or command that names it.
UNNAMED = "collective"
# How near the quotient of two rates of 1.00 GB/s and more is to the factor.
_ROUNDING = 0.03
_HEAD = re.compile(r"#\s+size\s+count\s+type\b.*\bbusbw\b")
_NAMED = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|broadcast|reduce|sendrecv|alltoall|scatter|gather|hypercube)_perf\b"
)
_RANK = re.compile(r"#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+) device\s+(\d+) \[[^\]]*\] (\S.*)")
# "nccl-library=23102" in the head of nccl-tests from 2.14 on, "NCCL version 2.27.7+cuda12.9" with NCCL_DEBUG=VERSION.
_VERSION = re.compile(r"\bnccl-library=(\d{5,6})\b|\bNCCL version (\d+\.\d+\.\d+)")
_DATA = re.compile(r"\s*\d+\s+\d+\s+\w+\s")
# A whole row, for excerpts without the heads: size, count, type, operation, root, and the two sets of four columns.
_ROW = re.compile(
    r"\s*\d{1,15}\s+\d{1,15}\s+(?:u?int(?:8|32|64)|half|float|double|bfloat16|fp8\w{0,5}|f8\w{0,5})\s+\w{3,8}\s+-?\d{1,5}"
    r"(?:\s+\d[\d.]{0,11}\s+\d+\.\d\d\s+\d+\.\d\d\s+[\d.e+N/A-]{1,10}){1,2}\s*$"
)
_HEADS = ("size", "count", "type", "redop", "root", *("time", "algbw", "busbw", "wrong") * 2)
# What launchers put before each line of a rank: "0:" (srun --label), "[0]" or "[1,0]<stdout>:" (mpirun --tag-output).
_LABEL = re.compile(r"^\s*\d{1,5}:(?=\s*[#\d])|\[\d{1,5}(?:,\d{1,5})?\](?:<std(?:out|err)>:)?(?=\s+\d)")


@dataclass
class _NcclJob:
    """The header above a table: which collective, and the ranks' hosts, devices and names."""

    collective: str = UNNAMED
    ranks: list[tuple[str, str, str]] = field(default_factory=list)
    version: str = ""

    @property
    def how(self) -> dict[str, str]:
        """What carried the data, and the version of the library where the text says it."""
        return {"engine": "NCCL"} | ({"library": f"NCCL {self.version}"} if self.version else {})

    @property
    def hosts(self) -> int:
        """How many hosts the ranks are on; 1 where no rank is listed."""
        return max(1, len({host for host, _, _ in self.ranks}))

    def value(self) -> ToolValue:
        """What a number of the table is of: a ring over the devices of one host, or ranks on several."""
        devices = [f"gpu{device}" for _, device, _ in self.ranks]
        if self.hosts > 1 or len(devices) < 2:
            many = f"{len(devices)} GPUs on {self.hosts} hosts" if len(devices) > 1 else "its GPUs"
            return ToolValue(f"{self.collective} of {many}", "", "bus_bandwidth", path="collective")
        ring = ", ".join(f"{a}->{b}" for a, b in zip(devices, [*devices[1:], devices[0]], strict=True))
        return ToolValue(ring, ring, "bus_bandwidth", path="collective")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a table of nccl-tests."""
    return any(_HEAD.match(text := _unlabelled(line).strip()) or _ROW.match(text) for line in lines)


def _unlabelled(line: str) -> str:
    """A line without the labels of ranks that a launcher puts before it, or between two writes to it."""
    if line.lstrip()[:1] not in "[0123456789":
        return line
    return _LABEL.sub(" ", line)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Out-of-place and in-place bus bandwidth of each size; FormatError with the line of a row that is cut short."""
    rows: list[Observation] = []
    lines = [_unlabelled(line) for line in lines]
    # An excerpt without heads: its rows are whole, or they are none.
    heads = [] if any(_HEAD.match(line.strip()) for line in lines) else list(_HEADS)
    excerpt = bool(heads)
    devices: dict[str, str] = {}
    corrupt: list[Statement] = []
    job = _NcclJob()
    for number, line in enumerate(lines, 1):
        rank, named, at = _RANK.search(line), _NAMED.search(line), Location(file, number)
        if heads and (named or rank):
            job, heads = _NcclJob(version=job.version), []
        if (stated := _VERSION.search(line)) is not None:
            job.version = stated[2] or _dotted(int(stated[1]))
        if named:
            job.collective = named[1]
        if rank:
            job.ranks.append((rank[2], str(count(rank[3], at)), rank[4].strip()))
            if len(job.ranks) > 64 * MAX_COLUMNS:
                raise FormatError("more ranks than any machine has", location=at, hint=WHOLE)
        if _HEAD.match(line.strip()):
            heads = line.replace("#wrong", "wrong").replace("#", " ").split()
            if job.collective == UNNAMED:
                job.collective = _by_factor(job, heads, lines[number:])
            devices |= {f"gpu{device}": name for host, device, name in job.ranks if host == job.ranks[0][0]}
        elif heads and (_ROW if excerpt else _DATA).match(line):
            rows += _row(job, heads, line.split(), at)
            corrupt += _wrong_values(job, heads, line.split(), at)
            check_rows(rows, at)
    if not rows:
        raise FormatError("the table of nccl-tests has no rows", location=Location(file, len(lines)), hint=WHOLE)
    return ImportedResults(TOOL, tuple(rows), posted=PostedFacts(devices, tuple(corrupt)))


def _dotted(code: int) -> str:
    """NCCL_VERSION_CODE as people write it: 23102 is 2.31.2 (nccl.h, from 2.9 on)."""
    return f"{code // 10_000}.{code // 100 % 100}.{code % 100}"


def _row(job: _NcclJob, heads: Sequence[str], words: Sequence[str], at: Location) -> Iterator[Observation]:
    """The two bus bandwidths of a line. Words that a message of NCCL appended are left out."""
    if len(words) == len(_HEADS) - 4 and tuple(heads) == _HEADS:
        heads = heads[: len(words)]  # an excerpt of one of the two sets of columns
    if len(words) < len(heads):
        raise FormatError(f"{len(words)} words below {len(heads)} heads", location=at, hint=WHOLE)
    places = [place for place, head in enumerate(heads) if head == "busbw"]
    settings = {"bytes": count(words[0], at), "hosts": job.hosts}
    if job.ranks:
        settings["ranks"] = len(job.ranks)
    for place, way in zip(places, ("", " in place"), strict=False):
        value = figure(words[place], at)
        yield observation(TOOL, job.collective + way, job.value(), value, job.how, settings)


def _wrong_values(job: _NcclJob, heads: Sequence[str], words: Sequence[str], at: Location) -> Iterator[Statement]:
    """What the tool's own comparison of the data says of a line, where it is not 0; "N/A" is without a comparison."""
    for place, way in zip([i for i, head in enumerate(heads) if head == "wrong"], ("", " in place"), strict=False):
        if re.fullmatch(r"[\d.e+]{1,16}", words[place]) and words[place].strip("0.") != "":
            value = f"{words[place]} wrong values in {job.collective}{way} of {count(words[0], at):,} B"
            yield Statement("wrong values", value, str(at))


def _by_factor(job: _NcclJob, heads: Sequence[str], lines: Sequence[str]) -> str:
    """Which of the two collectives that reduce on every rank it is, by the factor of the first large bus bandwidth."""
    ranks = len(job.ranks)
    for line in lines:
        columns = dict(zip(heads, line.split(), strict=False))
        if ranks < 2 or _HEAD.match(line.strip()) or _RANK.search(line):
            break
        if not _DATA.match(line) or columns.get("root") != "-1" or columns.get("redop", "none") == "none":
            continue
        try:
            rate, bus = float(columns["algbw"]), float(columns["busbw"])
        except (KeyError, ValueError):
            continue
        factors = {"all_reduce": 2 * (ranks - 1) / ranks, "reduce_scatter": (ranks - 1) / ranks}
        for name, factor in factors.items():
            if rate >= 1 and abs(bus / rate / factor - 1) < _ROUNDING:
                return name
    return UNNAMED
