"""p2pBandwidthLatencyTest's text, of CUDA 6 to 13. Its GB is 1e9 bytes.

Source of what is read: the sample's own sources (github.com/NVIDIA/cuda-samples). Row to column is written by the row's
GPU; `P2P Reads`, and early versions, whose headings name neither, read from the column. Bidirectional numbers are
the sum of both ways. Numbers of one GPU with itself count every byte twice (read and write); here once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from lanewise.errors import FormatError, Location
from lanewise.readers.form import ToolResults, ToolValue, observation
from lanewise.readers.texts import WHOLE, TextMatrix, matrix
from lanewise.results.observation import Observation

TOOL = "p2pBandwidthLatencyTest"
_ACCESS = re.compile(r"Device=(\d+) (CAN|CANNOT) Access Peer Device=(\d+)")
_CONNECTED = re.compile(r"P2P Connectivity Matrix")
_SPEED = re.compile(r"(Unidirectional|Bidirectional) P2P=(Disabled|Enabled) Bandwidth.*Matrix \(GB/s\)$")
_LATENCY = re.compile(r"P2P=(Disabled|Enabled) Latency.*Matrix \(us\)$")
_EARLY = re.compile(r"(?:Unidirectional P2P=Enabled Bandwidth|P2P=Enabled Latency) Matrix")
_DEVICE = re.compile(r"Device: (\d+), (.+?), pciBusID")
_SCENARIO = re.compile(r"(?:(?:Unidirectional|Bidirectional) )?P2P=[^M]*")
_CUT = re.compile(r"(?:(?:Uni|Bi)directional )?P2P=")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold output of p2pBandwidthLatencyTest."""
    kinds = (_SPEED, _LATENCY, _ACCESS)
    return any(kind.match(line.strip()) for line in lines for kind in kinds)


def read_text(lines: list[str], file: str) -> ToolResults:
    """Every matrix and who can access whom; FormatError with the line where a matrix is cut short."""
    peers = {(f"gpu{m[1]}", f"gpu{m[3]}"): m[2] == "CAN" for line in lines if (m := _ACCESS.search(line))}
    for at, line in enumerate(lines):
        if _CONNECTED.search(line):
            peers.update(_connected(matrix(lines, at + 1, file)))
    reader = _Reader(peers, _engine(lines), not any(_EARLY.match(line.strip()) for line in lines))
    rows: list[Observation] = []
    last = max((at for at, line in enumerate(lines) if line.strip()), default=0)
    for at, line in enumerate(text.strip() for text in lines):
        if _SPEED.match(line):
            rows += reader.speed(line, matrix(lines, at + 1, file))
        elif _LATENCY.match(line):
            timed = matrix(lines, at + 1, file)
            rows += reader.latency(line, timed)
            if _next_word(lines, timed.end) == "CPU":
                rows += reader.launch(line, matrix(lines, timed.end, file))
        elif at == last and _CUT.match(line):
            raise FormatError("the text breaks off in a heading", location=Location(file, at + 1), hint=WHOLE)
    return ToolResults(TOOL, tuple(rows), peers, _notes(lines, file))


def _connected(matrix: TextMatrix) -> dict[tuple[str, str], bool]:
    return {
        (f"gpu{row}", f"gpu{column}"): value == 1
        for row, values in enumerate(matrix.cells)
        for column, value in enumerate(values)
        if row != column
    }


def _engine(lines: Sequence[str]) -> str:
    """The sample copies by copy engine unless asked otherwise; only the command line shows that."""
    return "SM" if any("--sm_copy" in line and TOOL in line for line in lines) else "copy engine"


def _next_word(lines: Sequence[str], at: int) -> str:
    return next((line.split()[0] for line in lines[at : at + 3] if line.strip()), "")


def _notes(lines: Sequence[str], file: str) -> tuple[str, ...]:
    kinds = {match[2] for line in lines if (match := _DEVICE.match(line.strip()))}
    if len(kinds) > 1:
        return (f"{file}: gpuN is CUDA's device N, which with several kinds of GPU need not be in PCI order",)
    return ()


class _Reader:
    """Turns matrices into observations, knowing who are peers and which way this version of the sample copies."""

    def __init__(self, peers: Mapping[tuple[str, str], bool], engine: str, writes: bool) -> None:
        self.peers = peers
        self.engine = engine
        self.writes = writes

    def speed(self, title: str, matrix: TextMatrix) -> Iterator[Observation]:
        both = "Bidirectional" in title
        make = self._both if both else self._one
        return self._rows(title, matrix, lambda row, column: make(title, row, column))

    def latency(self, title: str, matrix: TextMatrix) -> Iterator[Observation]:
        return self._rows(title, matrix, lambda row, column: self._small(title, row, column, "latency"))

    def launch(self, title: str, matrix: TextMatrix) -> Iterator[Observation]:
        """What the CPU takes to ask for a copy, which the sample prints as a second matrix."""
        return self._rows(title, matrix, lambda row, column: self._small(title, row, column, "launch_latency"))

    def _rows(self, title: str, matrix: TextMatrix, cell: Callable[[int, int], ToolValue]) -> Iterator[Observation]:
        scenario = _SCENARIO.findall(title)[0].strip()
        for row, values in enumerate(matrix.cells):
            for column, value in enumerate(values):
                tool_value = cell(row, column)
                halved = row == column and tool_value.unit == "GB/s" and value is not None
                how = {"engine": self.engine, "p2p": self._p2p(title, row, column)}
                yield observation(TOOL, scenario, tool_value, value / 2 if halved and value else value, how, {})

    def _p2p(self, title: str, row: int, column: int) -> str:
        if row == column:
            return ""
        reached = self.peers.get((f"gpu{row}", f"gpu{column}"), True)
        return "on" if "P2P=Enabled" in title and reached else "off"

    def _path(self, title: str, row: int, column: int) -> tuple[str, str]:
        """The kind of path, and what to know of it."""
        if row == column:
            return "GPU memory", "payload counted once, where the tool counts the read and the write"
        if self._p2p(title, row, column) == "on":
            return "peer", ""
        return "peer, staged", "the pair cannot access each other" if "P2P=Enabled" in title else ""

    def _one(self, title: str, row: int, column: int) -> ToolValue:
        path, note = self._path(title, row, column)
        reads = "P2P Reads" in title or not self.writes
        flow = f"gpu{column}->gpu{row}" if reads else f"gpu{row}->gpu{column}"
        flows = "" if row == column else f"{flow} read" if reads else flow
        return ToolValue(flow, flows, path=path, note=note)

    def _both(self, title: str, row: int, column: int) -> ToolValue:
        path, note = self._path(title, row, column)
        if row == column:
            return ToolValue(f"gpu{row}->gpu{row}", "", "total", path=path, note=f"two copies at once; {note}")
        flows = f"gpu{row}->gpu{column}, gpu{column}->gpu{row}"
        return ToolValue(flows, flows, "total", path=path, note="; ".join(filter(None, ["the sum of both ways", note])))

    def _small(self, title: str, row: int, column: int, metric: str) -> ToolValue:
        tool_value = self._one(title, row, column)
        note = "" if row == column else tool_value.note
        return ToolValue(tool_value.flow, tool_value.flows, metric, "us", tool_value.path, note)
