"""nccl-tests and rccl-tests: bus bandwidth of a collective by message size. Its GB is 1e9 bytes.

Source of what is read: the tools' own sources (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md). Bus bandwidth is the
algorithm's rate times a factor that makes it comparable with one link of a ring.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from lanewise import late_re as re
from lanewise.collectives.model import Launch
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import MAX_COLUMNS, WHOLE, count, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.readers.tools.repeated_tables import labels_above, told_apart
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts, Statement

TOOL = "nccl-tests"
# The collective of a table without the line or command that names it.
UNNAMED = "collective"
# Bus bandwidth over algorithm bandwidth, as multiples of (n - 1) / n.
_FACTORS = {"all_reduce": 2.0, "reduce_scatter": 1.0, "all_gather": 1.0, "alltoall": 1.0}
# How near the quotient of two rates of 1.00 GB/s and more is to the factor.
_ROUNDING = 0.03
_HEAD = re.compile(r"#?\s*size\s+count\s+type\b.*\bbusbw\b")
# The label of the rank, the host or the pod that srun, pdsh, torchrun or a container engine writes before a line.
_LABEL = re.compile(
    r"\s{0,8}(?:\[(?:rank|default)?\d{1,5}\]|[\w.-]{1,64} ?)[:|] ?(?=\s*(?:#|Rank\s+\d|size\s|\d+\s+\d+\s+[a-z]))"
)
_NAMED = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|broadcast|reduce|sendrecv|alltoall|scatter|gather|hypercube)_perf\b"
)
RANK = re.compile(
    r"(?:^|#)\s*Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+(\d+) on\s+(\S+) device\s+(\d+) \[[^\]]*\] (\S.*)"
)
# Collectives as sentences and logs of jobs name them.
_IN_WORDS = re.compile(
    r"\b(?:all[ _-]?(?:gather|reduce|to[ _-]?all)|reduce[ _-]?scatter|broadcast|send[ _-]?recv)\b", re.I
)
_COLD = re.compile(r"\bwarmup iters: 0\b")
_PROCESS = re.compile(r"\bnThread\s+(\d{1,4})\s+nGpus\s+(\d{1,4})\b")
# "nccl-library=23102" in the head of nccl-tests from 2.14 on, "NCCL version 2.27.7+cuda12.9" with NCCL_DEBUG=VERSION.
_VERSION = re.compile(r"\bnccl-library=(\d{5,6})\b|\bNCCL version (\d+\.\d+\.\d+)")
# What the tools print when a call fails: host: Test NCCL failure common.cu:1005 'unhandled system error'.
_FAILURE = re.compile(r"\bTest (?:CUDA|NCCL|HIP) failure \S{1,80}:\d{1,6} '(.{1,160}?)'?\s*$")
_DATA = re.compile(r"\s*\d+\s+\d+\s+[a-z]\w*\s")
# A whole row, for excerpts without the heads: size, count, type, operation, root, and the two sets of four columns.
_ROW = re.compile(
    r"\s*\d{1,15}\s+\d{1,15}\s+(?:u?int(?:8|32|64)|half|float|double|bfloat16|fp8\w{0,5}|f8\w{0,5})\s+\w{3,8}\s+-?\d{1,5}"
    r"(?:\s+\d[\d.]{0,11}\s+\d+\.\d\d\s+\d+\.\d\d\s+[\d.e+N/A-]{1,10}){1,2}\s*$"
)
_HEADS = ("size", "count", "type", "redop", "root", *("time", "algbw", "busbw", "wrong") * 2)
_HANGS = f"{WHOLE}; if it printed no more it hangs: CUDA_LAUNCH_BLOCKING=1 with several GPUs in one process does that"
# What mpirun writes between two writes of a line.
_BETWEEN = re.compile(r"\[\d{1,5}(?:,\d{1,5})?\](?:<std(?:out|err)>:)?(?=\s+\d)")


@dataclass
class NcclJob:
    """The header above a table: which collective, and the ranks' hosts, devices, names and processes.

    `count` of ranks where none is listed and the factor of the bus bandwidth tells it; `lowest` and `highest`: the
    numbers of the first and last rank, where people leave out those between ("...") or a terminal lost the first.
    """

    collective: str = UNNAMED
    ranks: list[tuple[str, str, str]] = field(default_factory=list)
    processes: set[tuple[str, str]] = field(default_factory=set)
    version: str = ""
    launch: str = ""
    count: int = 0
    lowest: int = 64 * MAX_COLUMNS
    highest: int = 0

    @property
    def how(self) -> dict[str, str]:
        """What carried the data, and the version of the library and who issued the calls where the text says it."""
        launch = self.launch
        if not launch and len(self.ranks) > 1:
            launch = Launch.NCCL_TESTS if len(self.processes) == len(self.ranks) else Launch.ONE_PROCESS
        library = f"NCCL {self.version}" if self.version else ""
        return {"engine": "NCCL", "library": library, "launch": str(launch)}

    @property
    def settings(self) -> dict[str, int]:
        """How many hosts and ranks it ran on, as far as the text says it."""
        if self.count:
            return {"ranks": self.count}
        return {"hosts": self.hosts} | ({"ranks": self.number} if self.ranks else {})

    @property
    def number(self) -> int:
        """How many ranks there are, listed or left out."""
        partial = self._of_several_hosts or (self.ranks and self.lowest > 0)
        return max(len(self.ranks), self.highest + 1 if partial else 0)

    @property
    def _of_several_hosts(self) -> bool:
        return len({host for host, _, _ in self.ranks}) > 1

    @property
    def hosts(self) -> int:
        """How many hosts the ranks are on; 1 where no rank is listed. Where some are left out, by a host's GPUs."""
        hosts = Counter(host for host, _, _ in self.ranks)
        listed = max(1, len(hosts))
        each = max((*hosts.values(), *(int(device) + 1 for _, device, _ in self.ranks)), default=1)
        left_out = self.number > len(self.ranks) and self.number % each == 0
        return max(listed, self.number // each) if left_out else listed

    def add_rank(self, rank: re.Match[str], at: Location) -> None:
        """Adds a rank as a line of the header has it (`RANK`); FormatError where they are too many."""
        self.ranks.append((rank[3], str(count(rank[4], at)), rank[5].strip()))
        self.processes.add((rank[3], rank[2]))
        self.highest = max(self.highest, min(count(rank[1], at), 64 * MAX_COLUMNS))
        self.lowest = min(self.lowest, count(rank[1], at))
        if len(self.ranks) > 64 * MAX_COLUMNS:
            raise FormatError("more ranks than any machine has", location=at, hint=WHOLE)

    def value(self) -> ToolValue:
        """What a number of the table is of: a ring over the devices of one host, or ranks on several."""
        devices = [f"gpu{device}" for _, device, _ in self.ranks]
        if self.hosts > 1 or len(devices) < 2:
            many = f"{self.number} GPUs on {self.hosts} hosts" if len(devices) > 1 else "its GPUs"
            return ToolValue(f"{self.collective} of {many}", "", "bus_bandwidth", path="collective")
        if self.number > len(devices):
            devices = [f"gpu{number}" for number in range(self.number)]
        ring = ", ".join(f"{a}->{b}" for a, b in zip(devices, [*devices[1:], devices[0]], strict=True))
        return ToolValue(ring, ring, "bus_bandwidth", path="collective")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a table of nccl-tests, or say which of its calls failed."""
    return any(
        _HEAD.match(text := unlabelled(line).strip()) or _ROW.match(text) or _FAILURE.search(text) for line in lines
    )


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Out-of-place and in-place bus bandwidth of each size; FormatError with the line of a row that is cut short."""
    lines = [unlabelled(line) for line in lines]
    text = _TablesOfText(lines, file)
    notes: list[str] = []
    last = max((number for number, line in enumerate(lines, 1) if line.strip()), default=0)
    for number, line in enumerate(lines, 1):
        text.read_header(number)
        is_head = _HEAD.match(line.strip()) is not None
        if is_head or text.begins_without_heads(number):
            text.begin_table(number, is_head=is_head)
        if is_head or not text.is_row(line):
            continue
        if text.tables[0][1] and number == last and len(line.split()) < len(text.heads):
            notes.append(f"{file}: the text breaks off in line {number}, a row of {line.split()[0]} B")
            break
        text.read_row(number)
    rows = told_apart(text.tables)
    check_rows(rows, Location(file, len(lines)))
    failures = [*_failures(lines, file)]
    if not rows and not failures:
        raise FormatError("the table of nccl-tests has no rows", location=Location(file, len(lines)), hint=_HANGS)
    posted = PostedFacts(text.devices, (*text.corrupt, *failures, *text.cold))
    return ImportedResults(TOOL, tuple(rows), notes=tuple(notes), posted=posted)


@dataclass
class _TablesOfText:
    """The `tables` of a text so far, each with the labels above it, and the job and `heads` that its next row is of.

    An excerpt without heads has whole rows or none.
    """

    lines: Sequence[str]
    file: str
    job: NcclJob = field(default_factory=NcclJob)
    heads: Sequence[str] = ()
    tables: list[tuple[list[str], list[Observation]]] = field(default_factory=list)
    devices: dict[str, str] = field(default_factory=dict)
    corrupt: list[Statement] = field(default_factory=list)
    cold: list[Statement] = field(default_factory=list)
    excerpt: bool = field(init=False)

    def __post_init__(self) -> None:
        self.excerpt = not any(_HEAD.match(line.strip()) for line in self.lines)

    def read_header(self, number: int) -> None:
        """What line `number` (from 1) says of the job; behind a table it is another one with the same library."""
        line, at = self.lines[number - 1], Location(self.file, number)
        rank, named = RANK.search(line), _NAMED.search(line)
        if self.heads and (named or rank):
            self.job, self.heads = NcclJob(version=self.job.version, launch=self.job.launch), ()
        if (stated := _VERSION.search(line)) is not None:
            self.job.version = stated[2] or _dotted(int(stated[1]))
        if (process := _PROCESS.search(line)) is not None:
            self.job.launch = Launch.ONE_PROCESS if int(process[1]) * int(process[2]) > 1 else Launch.NCCL_TESTS
            self.cold += [Statement("warm-up", "none", str(at))] if _COLD.search(line) else []
        if named:
            self.job.collective = named[1]
        if rank:
            self.job.add_rank(rank, at)

    def begins_without_heads(self, number: int) -> bool:
        """Whether line `number` begins a table without heads: words above it, a size as small as the first."""
        if not self.excerpt or not _ROW.match(self.lines[number - 1]):
            return False
        if not self.heads:
            return True
        above = next((line for line in reversed(self.lines[: number - 1]) if line.strip()), "")
        size, rows = int(self.lines[number - 1].split()[0]), self.tables[-1][1]
        return not _ROW.match(above) and bool(rows) and size <= rows[0].settings["bytes"]

    def begin_table(self, number: int, *, is_head: bool) -> None:
        """A table begins with line `number`, its heads or its first row."""
        line, job = self.lines[number - 1], self.job
        self.heads = line.replace("#wrong", "wrong").replace("#", " ").split() if is_head else _HEADS
        _complete(job, self.heads, self.lines[number - (not is_head) :])
        job.collective = _said(self.lines[:number]) if job.collective == UNNAMED else job.collective
        self.devices |= {f"gpu{device}": name for host, device, name in job.ranks if host == job.ranks[0][0]}
        self.tables.append((labels_above(self.lines, number - 1), []))

    def is_row(self, line: str) -> bool:
        """Whether a line is a row of the table that has begun."""
        return bool(self.heads) and (_ROW if self.excerpt else _DATA).match(line) is not None

    def read_row(self, number: int) -> None:
        """Adds the row in line `number`; FormatError if it is cut short."""
        words, at = self.lines[number - 1].split(), Location(self.file, number)
        rows = self.tables[-1][1]
        rows.extend(_row(self.job, self.heads, words, at))
        self.corrupt += _wrong_values(self.job, self.heads, words, at)
        check_rows(rows, at)


def _failures(lines: Sequence[str], file: str) -> Iterator[Statement]:
    """The first call that failed: what follows on it and on other ranks is the same failure."""
    for number, line in enumerate(lines, 1):
        if match := _FAILURE.search(line):
            yield Statement("failed test", f"{TOOL}: {match[1]}", f"{file}:{number}")
            return


def _dotted(code: int) -> str:
    """NCCL_VERSION_CODE as people write it: 23102 is 2.31.2 (nccl.h, from 2.9 on)."""
    return f"{code // 10_000}.{code // 100 % 100}.{code % 100}"


def _row(job: NcclJob, heads: Sequence[str], words: Sequence[str], at: Location) -> Iterator[Observation]:
    """The two bus bandwidths of a line. Words that a message of NCCL appended are left out."""
    sets = [place for place, head in enumerate(heads) if head == "time"]
    if len(sets) > 1 and len(words) == sets[1]:
        heads = heads[: len(words)]  # an excerpt of one of the two sets of columns
    if len(words) < len(heads):
        raise FormatError(f"{len(words)} words below {len(heads)} heads", location=at, hint=WHOLE)
    places = [place for place, head in enumerate(heads) if head == "busbw"]
    settings = {"bytes": count(words[0], at), **job.settings}
    for place, way in zip(places, ("", " in place"), strict=False):
        value = figure(words[place], at)
        yield observation(TOOL, job.collective + way, job.value(), value, job.how, settings)


def _wrong_values(job: NcclJob, heads: Sequence[str], words: Sequence[str], at: Location) -> Iterator[Statement]:
    """What the tool's own comparison of the data says of a line, where it is not 0; "N/A" is without a comparison."""
    places = [place for place, head in enumerate(heads[: len(words)]) if head == "wrong"]  # an excerpt has one of them
    for place, way in zip(places, ("", " in place"), strict=False):
        if re.fullmatch(r"[\d.e+]{1,16}", words[place]) and words[place].strip("0.") != "":
            value = f"{words[place]} wrong values in {job.collective}{way} of {count(words[0], at):,} B"
            yield Statement("wrong values", value, str(at))


def unlabelled(line: str) -> str:
    """A line without the label that a launcher puts before it, or between two writes to it."""
    line = _LABEL.sub("", line, count=1) if _LABEL.match(line) else line
    return _BETWEEN.sub(" ", line) if line.lstrip()[:1] in "[0123456789" else line


def _complete(job: NcclJob, heads: Sequence[str], lines: Sequence[str]) -> None:
    """The collective and the count of ranks, where the header has none, by the factor of the largest bus bandwidth."""
    ratio, tolerance, reduces = 0.0, 1.0, False
    for line in lines:
        columns = dict(zip(heads, line.split(), strict=False))
        if _HEAD.match(line.strip()) or RANK.search(line.strip()) or _NAMED.search(line):
            break
        with suppress(KeyError, ValueError):
            rate, bus = float(columns["algbw"]), float(columns["busbw"])
            if _DATA.match(line) and rate >= 1 and 0.01 / rate < tolerance:
                ratio, tolerance = bus / rate, 0.01 / rate
                # Before 2.11 only tests with a root have that column.
                reduces = columns.get("root", "-1") == "-1" and columns.get("redop", "none") != "none"
    if not ratio:
        return
    if job.collective == UNNAMED and reduces and len(job.ranks) != 1:
        count = job.number if job.ranks else 0
        factors = {"all_reduce": 2 * (count - 1) / count, "reduce_scatter": (count - 1) / count} if count else {}
        near = [name for name, factor in factors.items() if abs(ratio / factor - 1) < _ROUNDING]
        job.collective = next(iter(near), UNNAMED) if count else "all_reduce" if ratio >= 1 else "reduce_scatter"
    if not job.ranks and job.collective in _FACTORS:
        job.count = _ranks_of(ratio / _FACTORS[job.collective], 2 * tolerance)


def _said(lines: Sequence[str]) -> str:
    """The only collective without a reduction that the words above a table name; those with one its factor tells."""
    names = {re.sub(r"[ _-]", "", match[0].lower()) for line in lines for match in _IN_WORDS.finditer(line)}
    return {"allgather": "all_gather", "alltoall": "alltoall"}.get(names.pop(), UNNAMED) if len(names) == 1 else UNNAMED


def _ranks_of(ratio: float, tolerance: float) -> int:
    """The ranks n of which (n - 1) / n is the ratio; 0 where several are as near."""
    fitting = [n for n in range(2, 65) if abs(ratio / ((n - 1) / n) - 1) < tolerance]
    return fitting[0] if len(fitting) == 1 else 0
