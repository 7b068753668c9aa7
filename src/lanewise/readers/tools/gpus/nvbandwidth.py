"""nvbandwidth's text and JSON, versions 0.4 to 0.8. Its GB is 1e9 bytes; SUM lines are no aggregate and are left out.

Source of what is read: the tool's own sources (output, testcases, memcpy) at github.com/NVIDIA/nvbandwidth.
What a cell is follows from the flows that its case starts there. The arrows in the headings say otherwise for peers:
`GPU(row) -> GPU(column)` of a read case moves data from the column to the row, and `GPU(row) <- GPU(column)` of a write
case from the row to the column. The GPUs of `multinode_` cases are the ranks of MPI, of all hosts together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lanewise import late_re as re
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import WHOLE, Cells, cells_of, check_columns, cut_note, figure, matrix
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.readers.tools.commands import memory_node
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts, Statement

_VERSION = re.compile(r"nvbandwidth Version:\s*v?([\d.]+)")
_RUNNING = re.compile(r"Running (\w+)\.?$")
_TITLE = re.compile(
    r"(?:memcpy|memory latency|Device to Device (?:Bandwidth|Latency)).*\((?:GB/s|ns)\)$|memcpy local .*\(GB/s\)$"
)
_PART = re.compile(r"\b(Read[12]|Write[12]|Total) bandwidth")
_SUM = re.compile(r"SUM (\w+) [\d.]+$")
_DEVICE = re.compile(r"Device (\d{1,6}): (\S.*?)(?: \([0-9a-fA-F:]+\))?$")
# Built for several nodes, it lists the GPU of each rank.
_RANK = re.compile(r"Process (\d{1,6}) \(([^)]{1,80})\): device (\d{1,6}): (\S.*?)(?: \([0-9a-fA-F:]+\))?$")
_FAILED = re.compile(r"\berror\b|_ERROR_|\bfail", re.IGNORECASE)
_PART_OF_SUM = re.compile(r"_(read[12]|write[12]|total)$")
_MULTINODE = "multinode_"
_UNTOLD = {"memcpy CE CPU(row) -> GPU(column)": "host_to_device_memcpy_ce",
           "memcpy CE CPU(row) <- GPU(column)": "device_to_host_memcpy_ce"}  # fmt: skip


@dataclass
class _Matrices:
    """What is read of one output: rows, who can access whom, and notes."""

    tool: str
    file: str
    rows: list[Observation] = field(default_factory=list)
    peers: dict[tuple[str, str], bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    failed: list[Statement] = field(default_factory=list)
    node: str = ""

    def add(self, case: str, part: str, cells: Cells) -> None:
        """Add the matrix of a case; pairs without a number are those for which CUDA refuses peer access."""
        columns = len(cells[0])
        peers = case.removeprefix(_MULTINODE).startswith(("device_to_device", "all_to_one", "one_to_all"))
        host = {"NUMA node": self.node} if "host" in case and self.node else {}
        how = host | {"engine": "SM" if case.endswith("_sm") else "copy engine", "p2p": "on" if peers else ""}
        if _cell(case, part, 0, 0, columns) is None:
            self.notes.append(f"{self.file}: {case} is not read")
        for row, column, value in cells_of(cells):
            tool_value = _cell(case, part, row, column, columns)
            # Early versions print 0.00 for a GPU with itself; pairs without a number are in `peers`.
            missing = _is_square(case) and (row == column or value is None)
            if tool_value is not None and not missing:
                self.rows.append(observation(self.tool, f"{case} {part}".strip(), tool_value, value, how, {}))
            if _is_square(case) and len(cells) == columns and row != column:
                self.peers[f"gpu{row}", f"gpu{column}"] = value is not None

    def without_result(self, case: str, why: str, at: Location) -> None:
        """Note a case that the tool gives no result of: one that failed is a finding, one that it waived is none."""
        if _FAILED.search(why) and "waived" not in why.casefold():
            self.failed.append(Statement("failed test", f"nvbandwidth, {case}: {why}"[:200], str(at)))
        else:
            self.notes.append(f"{self.file}: {case} is not read: {why}")

    def results(self) -> ImportedResults:
        """All of it."""
        posted = PostedFacts(self.titles, tuple(self.failed))
        return ImportedResults(self.tool, tuple(self.rows), self.peers, tuple(self.notes), posted=posted)


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold output of nvbandwidth."""
    kinds = (_VERSION, _TITLE, _SUM)
    return any(kind.match(line.strip()) for line in lines for kind in kinds)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Every matrix of the text; FormatError with the line where one within it is cut short or its case not named."""
    version = next((match[1] for line in lines if (match := _VERSION.search(line))), "")
    matrices = _Matrices(f"nvbandwidth {version}".strip(), file)
    matrices.titles = _names(lines)
    case = ""
    for at, line in enumerate(lines):
        if "numactl" in line:
            matrices.node = memory_node([line])
        running = _RUNNING.match(line.strip())
        if running:
            case = running[1]
            why = _no_matrix(lines, at + 1)
            if why or not _is_read(case):
                matrices.without_result(case, why or "it runs on several nodes", Location(file, at + 1))
        elif _TITLE.match(line.strip()) and _is_read(case):
            named, part, cells = _matrix_below(lines, at, case, file)
            matrices.add(named, part, cells)
            matrices.notes += cut_note(cells, file) if _is_square(named) else ()
            check_rows(matrices.rows, Location(file, at + 1))
    if not (matrices.rows or matrices.peers or matrices.notes or matrices.failed):
        hint = "paste the matrices: SUM lines add up copies that ran one after another, and tell nothing of a path"
        raise FormatError("no matrix of nvbandwidth", location=Location(file, len(lines)), hint=hint)
    if any(row.scenario.startswith(_MULTINODE) for row in matrices.rows):
        matrices.notes.append(f"{file}: gpuN of multinode cases is MPI's rank N, over all hosts")
    return matrices.results()


def _names(lines: Sequence[str]) -> dict[str, str]:
    """The names of the GPUs; those of ranks by the rank, of a rank with several GPUs by the device."""
    ranks = [match for line in lines if (match := _RANK.match(line.strip()))]
    several = len({match[1] for match in ranks}) < len({match.group(1, 3) for match in ranks})  # not of two runs
    devices = [match for line in lines if (match := _DEVICE.match(line.strip()))]
    return {f"gpu{match[3 if several else 1]}": match[4] for match in ranks} | {
        f"gpu{match[1]}": match[2] for match in devices
    }


def _is_read(case: str) -> bool:
    """Whether a case is read: all of a single node, of several the copies between the ranks' GPUs, a pair at a time."""
    return (
        not case.startswith(_MULTINODE)
        or re.fullmatch(r"device_to_device_memcpy_(?:read|write)_(?:ce|sm)", case.removeprefix(_MULTINODE)) is not None
    )


def _matrix_below(lines: list[str], at: int, running: str, file: str) -> tuple[str, str, Cells]:
    """The matrix below the title in line `at`: of which case, which part of it, and its cells."""
    title = lines[at].strip()
    case = running or _summed(lines, at + 1) or _UNTOLD.get(title.split(" bandwidth")[0], "")
    if not case:
        hint = "keep the line 'Running ...' above it, or the line 'SUM ...' below it"
        raise FormatError(f"which case is '{title}'?", location=Location(file, at + 1), hint=hint)
    part = _PART.search(title)
    return case, part[1] if part else "", matrix(lines, at + 1, file, None if _is_square(case) else 1)[0]


def _no_matrix(lines: Sequence[str], start: int) -> str:
    """The text below `Running ...` where no matrix comes before the next case; empty if one comes."""
    text = ""
    for line in (lines[at] for at in range(start, len(lines))):
        if _TITLE.match(line.strip()):
            return ""
        if _RUNNING.match(line.strip()):
            break
        text = text or line.strip()
    return text or "the text ends there"


def _summed(lines: Sequence[str], start: int) -> str:
    """The case that the SUM line below a matrix names; none if another matrix comes first."""
    for line in (lines[at] for at in range(start, len(lines))):
        match = _SUM.match(line.strip())
        if match:
            return _PART_OF_SUM.sub("", match[1])
        if _TITLE.match(line.strip()):
            break
    return ""


def is_json(data: Any) -> bool:
    """Whether a JSON object is nvbandwidth's."""
    return isinstance(data, dict) and isinstance(data.get("nvbandwidth"), dict)


def read_json(data: Mapping[str, Any], file: str) -> ImportedResults:
    """Every matrix of what `nvbandwidth --json` prints; FormatError names the case that is not as it should be."""
    body = data["nvbandwidth"]
    matrices = _Matrices(f"nvbandwidth {str(body.get('version', '')).lstrip('v')}".strip(), file)
    matrices.notes += [f"{file}: nvbandwidth says: {body[key]}" for key in ("error", "warning") if body.get(key)]
    cases = body.get("testcases")
    if not isinstance(cases, list):
        hint = "; ".join(matrices.notes) or WHOLE
        raise FormatError("nvbandwidth's JSON without testcases", location=Location(file), hint=hint)
    for case in cases:
        name = str(case.get("name", "")) if isinstance(case, dict) else ""
        if not name or "bandwidth_matrix" not in case:
            why = case.get("error", case.get("status", "no status")) if name else "it has no name"
            matrices.without_result(name or "a case", str(why), Location(file))
            continue
        for part, cells in _parts(name, case["bandwidth_matrix"], file):
            matrices.add(name, part, cells)
            check_rows(matrices.rows, Location(file))
    return matrices.results()


def _parts(case: str, data: Any, file: str) -> Iterator[tuple[str, Cells]]:
    """The matrices of one case: those of both directions and their sum follow one another since version 0.6."""
    try:
        cells = [[None if cell == "N/A" else figure(cell, Location(file)) for cell in row] for row in data]
        columns = len(cells[0])
    except (TypeError, FormatError, IndexError):
        raise FormatError(f"the matrix of {case} is not one of numbers", location=Location(file), hint=WHOLE) from None
    check_columns(columns, Location(file))
    expected = columns if _is_square(case) else 1
    several = len(cells) == 3 * expected and "bidirectional" in case
    if any(len(row) != columns for row in cells) or (len(cells) != expected and not several):
        cause = f"the matrix of {case} has {len(cells)} rows for {columns} columns"
        raise FormatError(cause, location=Location(file), hint=WHOLE)
    word = "Read" if "_read_" in case else "Write"
    parts = (f"{word}1", f"{word}2", "Total") if several else ("",)
    for number, part in enumerate(parts):
        yield part, cells[number * expected : (number + 1) * expected]


def _is_square(case: str) -> bool:
    """Whether the matrix of a case has a row for each GPU, not one alone."""
    return case.removeprefix(_MULTINODE).startswith("device_to_device")


def _cell(case: str, part: str, row: int, column: int, count: int) -> ToolValue | None:
    """What a cell is; `part` is Read1, Write2, Total or nothing, `count` the number of GPUs; None for another case."""
    kind = case.removeprefix(_MULTINODE).removesuffix("_ce").removesuffix("_sm")
    make = _KINDS.get(kind)
    return make(case, part, row, column, count) if make is not None else None


def _host(case: str, _part: str, _row: int, gpu: int, count: int) -> ToolValue:
    """Between host and one GPU, alone or with the opposite direction or all other GPUs; the first flow is measured."""
    up = case.startswith(("host_to_device", "host_to_all"))
    peers = [peer for peer in range(count) if peer != gpu] if "all" in case else []
    flows = []
    for index in (gpu, *peers):
        both = [f"host0->gpu{index}", f"gpu{index}->host0"]
        flows += (both if up else both[::-1])[: 2 if "bidirectional" in case else 1]
    split = case.endswith("_sm") and "_bidirectional" in case
    note = "half of what one kernel moved both ways" if split else ""
    return ToolValue(flows[0], ", ".join(flows), path="host to device" if up else "device to host", note=note)


def _peer(case: str, part: str, row: int, column: int, _count: int) -> ToolValue:
    """Between two GPUs: read cases pull into the row's GPU, write cases push out of it; second parts go back."""
    read = "_read_" in case
    forward, back = f"gpu{row}->gpu{column}", f"gpu{column}->gpu{row}"
    if "bidirectional" not in case:
        flow = back if read else forward
        return ToolValue(flow, _flows(read, flow), path="peer")
    if part == "Total" or (not part and case.endswith("_sm")):
        flows = _flows(read, forward, back)
        return ToolValue(f"{forward}, {back}", flows, "total", path="peer", note="the sum of both ways")
    # Parts with a 1 go from the column to the row in both; before there were parts, the row's own copy was measured.
    flow = back if part.endswith("1") or (read and not part) else forward
    return ToolValue(flow, _flows(read, flow, forward if flow == back else back), path="peer")


def _star(case: str, _part: str, _row: int, gpu: int, count: int) -> ToolValue:
    """Between one GPU and all others at once: into it or out of it, as the others' or its own engines do it."""
    read, out = "_read_" in case, case.startswith(("one_to_all_write", "all_to_one_read"))
    peers = [peer for peer in range(count) if peer != gpu]
    flows = [f"gpu{gpu}->gpu{peer}" if out else f"gpu{peer}->gpu{gpu}" for peer in peers]
    return ToolValue(", ".join(flows), _flows(read, *flows), "total", path="peer")


def _chase(case: str, _part: str, row: int, column: int, _count: int) -> ToolValue:
    """A kernel follows pointers: GPU of the column in host memory, or GPU of the row in memory of the column's."""
    if case.startswith("host"):
        flow, path, read = f"host0->gpu{column}", "host to device", False
    else:
        flow, path, read = f"gpu{column}->gpu{row}", "peer", True
    return ToolValue(flow, _flows(read, flow), "chase_latency", "ns", path)


def _local(_case: str, _part: str, _row: int, gpu: int, _count: int) -> ToolValue:
    return ToolValue(f"gpu{gpu}->gpu{gpu}", "", path="GPU memory", note="payload copied within the GPU, counted once")


def _flows(read: bool, *flows: str) -> str:
    return ", ".join(f"{flow} read" if read else flow for flow in flows)


_KINDS: dict[str, Callable[[str, str, int, int, int], ToolValue]] = {
    **{
        f"{way}{both}_memcpy": _host
        for way in ("host_to_device", "device_to_host", "host_to_all", "all_to_host")
        for both in ("", "_bidirectional")
    },
    **{f"device_to_device{both}_memcpy_{op}": _peer for both in ("", "_bidirectional") for op in ("read", "write")},
    **{f"{way}_{op}": _star for way in ("all_to_one", "one_to_all") for op in ("read", "write")},
    "host_device_latency": _chase,
    "device_to_device_latency": _chase,
    "device_local_copy": _local,
}
