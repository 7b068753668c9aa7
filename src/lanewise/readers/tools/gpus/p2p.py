"""p2pBandwidthLatencyTest's text, of CUDA 6 to 13. Its GB is 1e9 bytes.

Source of what is read: the sample's own sources (github.com/NVIDIA/cuda-samples). Row to column is written by the row's
GPU; `P2P Reads`, and early versions, whose headings name neither, read from the column. Bidirectional numbers are
the sum of both ways. Numbers of one GPU with itself count every byte twice (read and write); here once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lanewise import late_re as re
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import WHOLE, Cells, cells_of, cut_note, matrix
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

TOOL = "p2pBandwidthLatencyTest"
_ACCESS = re.compile(r"Device=(\d{1,6}) (CAN|CANNOT) Access Peer Device=(\d{1,6})")
_CONNECTED = re.compile(r"P2P Connectivity Matrix")
# Pages that quote the tool make a heading of the title, and shorten it.
_SPEED = re.compile(
    r"(Unidirectional|Bidirectional) P2P=(Disabled|Enabled)(?:(?: Bandwidth.*)? Matrix| Bandwidth) \(GB/s\)$"
)
# Pages word the title anew: the same words in another order, without the unit, with a remark behind it.
_WORDED = re.compile(
    r"(?=.*\b(?P<ways>Uni|Bi)directional\b)(?=.*\bP2P=(?P<p2p>Enabled|Disabled)\b)(?=.*\bBandwidth\b)"
    r"(?!.*(?:us|\u00b5s)\)).{0,160}\bMatrix\b"
)
_HEADS = re.compile(r"\s*(?:D\\D\s+|\|[^|\d]{0,20}\|\s*(?:GPU ?)?)0\b")
_LATENCY = re.compile(r"P2P=(Disabled|Enabled) Latency.*Matrix \((?:us|\u00b5s)\)$")
_EARLY = re.compile(r"(?:Unidirectional P2P=Enabled Bandwidth|P2P=Enabled Latency) Matrix")
_DEVICE = re.compile(r"Device: (\d+), (.+?), pciBusID")
_SCENARIO = re.compile(r"(?:(?:Unidirectional|Bidirectional) )?P2P=.{0,200}?(?= Matrix| \(GB)")
_LONGEST = 80
_CUT = re.compile(r"(?:(?:Uni|Bi)directional )?P2P=")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold output of p2pBandwidthLatencyTest."""
    kinds = (_SPEED, _LATENCY, _ACCESS)
    plain = [_plain(line) for line in lines]
    worded = (_as_the_tool(line, plain[at + 1 : at + 3]) for at, line in enumerate(plain) if _WORDED.match(line))
    return any(kind.match(line) for line in plain for kind in kinds) or any(map(_SPEED.match, worded))


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Every matrix and who can access whom; FormatError with the line where one within the text is cut short."""
    peers = {(f"gpu{m[1]}", f"gpu{m[3]}"): m[2] == "CAN" for line in lines if (m := _ACCESS.search(line))}
    for at, line in enumerate(lines):
        if _CONNECTED.search(line):
            pairs = cells_of(matrix(lines, at + 1, file)[0])
            peers |= {(f"gpu{row}", f"gpu{column}"): value == 1 for row, column, value in pairs if row != column}
    # The sample copies by copy engine without --sm_copy, which only the command line shows.
    engine = "SM" if any("--sm_copy" in line and TOOL in line for line in lines) else "copy engine"
    sample = _P2pSample(peers, engine, not any(_EARLY.match(line.strip()) for line in lines))
    rows: list[Observation] = []
    notes: list[str] = []
    last = max((at for at, line in enumerate(lines) if line.strip()), default=0)
    for at, line in enumerate(map(_plain, lines)):
        line = _as_the_tool(line, lines[at + 1 : at + 3])
        if _SPEED.match(line):
            cells = matrix(lines, at + 1, file)[0]
            rows += sample.rows(line, cells, "goodput")
            notes += cut_note(cells, file)
            check_rows(rows, Location(file, at + 1))
        elif _LATENCY.match(line):
            latencies, end = matrix(lines, at + 1, file)
            rows += sample.rows(line, latencies, "latency")
            notes += cut_note(latencies, file)
            following = " ".join(lines[end : end + 3]).split()
            if following[:1] == ["CPU"]:
                # A second matrix: what the CPU takes to ask for a copy.
                rows += sample.rows(line, matrix(lines, end, file)[0], "launch_latency")
            check_rows(rows, Location(file, at + 1))
        elif at == last and _CUT.match(line):
            if not rows:
                raise FormatError("the text breaks off in a heading", location=Location(file, at + 1), hint=WHOLE)
            notes.append(f"{file}: the text breaks off in a heading")
    posted = PostedFacts(device_names(lines))
    return ImportedResults(TOOL, tuple(rows), peers, (*_notes(lines, file), *notes), posted=posted)


def device_names(lines: Sequence[str]) -> dict[str, str]:
    """The GPUs' names as the header of NVIDIA's samples lists them, `Device: 0, Tesla T4, pciBusID: 5`."""
    devices = [match for line in lines if (match := _DEVICE.match(line.strip()))]
    return {f"gpu{int(match[1])}": match[2] for match in devices if len(match[1]) <= 6}


def _plain(line: str) -> str:
    """A line without the marks of a heading or of bold text."""
    return line.strip().strip("#*` ")


def _as_the_tool(line: str, following: Sequence[str]) -> str:
    """A title that a page worded anew as the tool's own, if the heads of a matrix follow; any other line as it is."""
    worded = _WORDED.match(line)
    if _SPEED.match(line) or worded is None or not any(_HEADS.match(each) for each in following):
        return line
    return f"{worded['ways']}directional P2P={worded['p2p']} Bandwidth Matrix (GB/s)"


def _notes(lines: Sequence[str], file: str) -> tuple[str, ...]:
    kinds = {match[2] for line in lines if (match := _DEVICE.match(line.strip()))}
    if len(kinds) > 1:
        return (f"{file}: gpuN is CUDA's device N, which with several kinds of GPU need not be in PCI order",)
    return ()


@dataclass(frozen=True, slots=True)
class _P2pSample:
    """Who can access whom, the engine of the copies, and whether a row's GPU writes to the column or reads from it."""

    peers: Mapping[tuple[str, str], bool]
    engine: str
    writes: bool

    def rows(self, title: str, cells: Cells, metric: str) -> Iterator[Observation]:
        """The observations of one matrix."""
        named = _SCENARIO.search(title)
        scenario = (named[0] if named else title[:_LONGEST]).strip()
        for row, column, value in cells_of(cells):
            reached = "P2P=Enabled" in title and self.peers.get((f"gpu{row}", f"gpu{column}"), True)
            how = {"engine": self.engine, "p2p": "" if row == column else "on" if reached else "off"}
            if row == column and metric == "goodput" and value is not None:
                value /= 2
            yield observation(TOOL, scenario, self._cell(title, metric, row, column, reached), value, how, {})

    def _cell(self, title: str, metric: str, row: int, column: int, reached: bool) -> ToolValue:
        unit = "GB/s" if metric == "goodput" else "us"
        both = metric == "goodput" and "Bidirectional" in title
        metric = "total" if both else metric
        if row == column:
            note = "payload counted once, where the tool counts the read and the write" if unit == "GB/s" else ""
            note = f"two copies at once; {note}" if both else note
            return ToolValue(f"gpu{row}->gpu{row}", "", metric, unit, "GPU memory", note)
        forward, back = f"gpu{row}->gpu{column}", f"gpu{column}->gpu{row}"
        reads = "P2P Reads" in title or not self.writes
        flow = f"{forward}, {back}" if both else back if reads else forward
        flows = f"{flow} read" if reads and not both else flow
        notes = ["the sum of both ways"] if both else []
        notes += ["the pair cannot access each other"] if "P2P=Enabled" in title and not reached else []
        return ToolValue(flow, flows, metric, unit, "peer" if reached else "peer, staged", "; ".join(notes))
