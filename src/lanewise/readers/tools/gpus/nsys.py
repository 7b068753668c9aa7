"""Nsight Systems (`nsys stats`): copies between GPUs and host memory, of its traces and of its summaries.

Its ns are of the copy alone. MB are 1e6 bytes (a million floats are 4.000), KiB 2^10. A summary tells neither the
GPU nor the kind of host memory, and its copies may be of all sizes: the row is of their mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

TOOL = "nsys"
_WAYS = {"Host-to-Device": True, "HtoD": True, "Device-to-Host": False, "DtoH": False}
_COPY = re.compile(rf"\[CUDA memcpy ({'|'.join(_WAYS)})\]$")
_TRACE = re.compile(r"Start \(\w?s\) Duration \((\w?s)\).*\bBytes \(([KMG]i?B)\) Throughput \(.*\bName$")
_KIND = r"(Pageable|Pinned|Device|Managed|Unknown)"
_TRACED = re.compile(
    rf"\d\S{{0,24}} (\d\S{{0,24}}) (?:\S{{1,24}} ){{0,14}}?(\d\S{{0,24}}) \d\S{{0,24}} {_KIND} {_KIND}"
    r"(?: (\S.{0,60}?) \((\d{1,2})\))?(?: \d{1,6}){0,3} \[CUDA"
)
_TIMES = re.compile(r"Time ?\(%\) Total Time \((\w?s)\) (?:Count|Operations|Instances) .*Operation$")
_SIZES = re.compile(r"Total(?: \(([KMG]i?B)\))? (?:Count|Operations) .*Operation$")
_BY_SIZE = re.compile(r"\bby size in ([KMG]i?B)\b")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_BYTES = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
Copies = dict[tuple[str, str], list[tuple[float, float, int]]]


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold copies of such a table, and its heads."""
    plain = [_plain(line) for line in lines]
    heads = any(_TRACE.match(line) or _SIZES.match(line) for line in plain)
    return heads and any(_COPY.search(line) for line in plain)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The rate of the longest copies of a trace by GPU, direction and memory; of a summary, of all of a direction."""
    copies: Copies = defaultdict(list)
    titles: dict[str, str] = {}
    summary = _Summary()
    second = byte = ""
    for number, line in enumerate(map(_plain, lines), 1):
        if head := _TRACE.match(line):
            second, byte = head[1], head[2]
        elif _COPY.search(line) is None:
            summary.head(line)
        elif (row := _TRACED.match(line)) and second in _SECONDS and byte in _BYTES:
            at, gpu = Location(file, number), f"gpu{row[6] or 0}"
            way, memory = _WAYS[_COPY.findall(line)[0]], row[3] if row[4] == "Device" else row[4]
            if row[5]:
                titles.setdefault(gpu, row[5])
            flow = f"host0->{gpu}" if way else f"{gpu}->host0"
            size, time = _number(row[2], at) * _BYTES[byte], _number(row[1], at) * _SECONDS[second]
            copies[flow, memory.lower()].append((size, time, 1))
        else:
            summary.row(line, Location(file, number))
    for (flow, memory), found in (copies or summary.copies()).items():
        longest = max(size / count for size, _, count in found)
        copies[flow, memory] = [copy for copy in found if copy[0] / copy[2] >= 0.5 * longest]
    rows = [row for (flow, memory), found in copies.items() for row in _rate(flow, memory, found)]
    check_rows(rows, Location(file, 1))
    return ImportedResults(TOOL, tuple(rows), posted=PostedFacts(titles))


class _Summary:
    """The tables by time and by size, which are read together."""

    def __init__(self) -> None:
        self._time = self._size = 0.0
        self._unit = ""
        self._of: dict[tuple[str, bool], tuple[float, int]] = {}

    def head(self, line: str) -> None:
        """Takes a line that may be the title or the heads of a table."""
        if title := _BY_SIZE.search(line):
            self._unit = title[1]
        elif heads := _TIMES.match(line):
            self._time, self._size = _SECONDS.get(heads[1], 0.0), 0.0
        elif heads := _SIZES.match(line):
            self._time, self._size = 0.0, _BYTES.get(heads[1] or self._unit, 0.0)

    def row(self, line: str, at: Location) -> None:
        """Takes a copy's line of the table at hand."""
        flow, words = _flow(_WAYS[_COPY.findall(line)[0]]), line.split()
        if self._time and len(words) > 3:
            self._of[flow, False] = _number(words[1], at) * self._time, int(_number(words[2], at))
        elif self._size and len(words) > 2:
            self._of[flow, True] = _number(words[0], at) * self._size, int(_number(words[1], at))

    def copies(self) -> Copies:
        """What both tables say of as many copies."""
        found: Copies = {}
        for flow in (_flow(True), _flow(False)):
            time, size = self._of.get((flow, False), (0.0, 0)), self._of.get((flow, True), (0.0, 0))
            if time[1] == size[1] and size[1]:
                found[flow, ""] = [(size[0], time[0], size[1])]
        return found


def _rate(flow: str, memory: str, copies: Sequence[tuple[float, float, int]]) -> Iterator[Observation]:
    """The row of those copies; none where they took no time."""
    size, time, count = (sum(of) for of in zip(*copies, strict=True))
    if size and time:
        path = "host to device" if flow.startswith("host") else "device to host"
        known = memory if memory in ("pageable", "pinned", "managed") else ""
        how = {"host memory": known, "engine": "copy engine"}
        note = "" if known else "pageable host memory or pinned, the profile does not say"
        value = ToolValue(flow, flow, unit="GB/s", path=path, note=note)
        yield observation(TOOL, TOOL, value, size / time / 1e9, how, {"bytes": int(size / count)})


def _flow(to_gpu: bool) -> str:
    return "host0->gpu0" if to_gpu else "gpu0->host0"


def _number(word: str, at: Location) -> float:
    return figure(word.replace(",", ""), at)


def _plain(line: str) -> str:
    """The words of a line without the bars of a table."""
    return " ".join(line.replace("|", " ").split())
