"""nvbandwidth's text and JSON, versions 0.4 to 0.8. Its GB is 1e9 bytes; SUM lines are no aggregate and are left out.

Source of what is read: the tool's own sources (output, testcases, memcpy) at github.com/NVIDIA/nvbandwidth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lanewise.errors import FormatError, Location
from lanewise.readers.form import ToolResults, observation
from lanewise.readers.nvbandwidth_cases import cell_of, engine_of, is_square
from lanewise.readers.texts import WHOLE, matrix
from lanewise.results.observation import Observation

Rows = Sequence[Sequence[float | None]]
_VERSION = re.compile(r"nvbandwidth Version:\s*v?([\d.]+)")
_RUNNING = re.compile(r"Running (\w+)\.?$")
_TITLE = re.compile(
    r"(?:memcpy|memory latency|Device to Device (?:Bandwidth|Latency)).*\((?:GB/s|ns)\)$|memcpy local .*\(GB/s\)$"
)
_PART = re.compile(r"\b(Read[12]|Write[12]|Total) bandwidth")
_SUM = re.compile(r"SUM (\w+) [\d.]+$")
_PART_OF_SUM = re.compile(r"_(read[12]|write[12]|total)$")
_UNTOLD = {"memcpy CE CPU(row) -> GPU(column)": "host_to_device_memcpy_ce",
           "memcpy CE CPU(row) <- GPU(column)": "device_to_host_memcpy_ce"}  # fmt: skip


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold output of nvbandwidth."""
    kinds = (_VERSION, _TITLE, _SUM)
    return any(kind.match(line.strip()) for line in lines for kind in kinds)


def read_text(lines: list[str], file: str) -> ToolResults:
    """Every matrix of the text; FormatError with the line where one is cut short or its case is not told."""
    version = next((found[1] for line in lines if (found := _VERSION.search(line))), "")
    tool = f"nvbandwidth {version}".strip()
    rows: list[Observation] = []
    peers: dict[tuple[str, str], bool] = {}
    notes: list[str] = []
    case = ""
    for at, line in enumerate(lines):
        running = _RUNNING.match(line.strip())
        if running:
            case = running[1]
            why = _no_matrix(lines[at + 1 :])
            if case.startswith("multinode") or why:
                notes.append(f"{file}: {case} is not read: {why or 'it runs on several nodes'}")
        elif _TITLE.match(line.strip()) and not case.startswith("multinode"):
            shown, part, cells = _matrix_below(lines, at, case, file)
            rows += _observations(tool, shown, part, cells, notes, file)
            _note_peers(shown, cells, peers)
    if not rows and not peers and not notes:
        hint = "paste the matrices: SUM lines add up copies that ran one after another, and tell nothing of a path"
        raise FormatError("no matrix of nvbandwidth", location=Location(file, len(lines)), hint=hint)
    return ToolResults(tool, tuple(rows), peers, tuple(notes))


def _matrix_below(lines: list[str], at: int, running: str, file: str) -> tuple[str, str, Rows]:
    """The matrix below the title in line `at`: of which case, which part of it, and its cells."""
    title = lines[at].strip()
    case = running or _summed(lines[at + 1 :]) or _UNTOLD.get(title.split(" bandwidth")[0], "")
    if not case:
        hint = "keep the line 'Running ...' above it, or the line 'SUM ...' below it"
        raise FormatError(f"which case is '{title}'?", location=Location(file, at + 1), hint=hint)
    part = _PART.search(title)
    return case, part[1] if part else "", matrix(lines, at + 1, file, None if is_square(case) else 1).cells


def _no_matrix(below: Sequence[str]) -> str:
    """What stands below `Running ...` where no matrix comes before the next case; nothing if one comes."""
    text = ""
    for line in below:
        if _TITLE.match(line.strip()):
            return ""
        if _RUNNING.match(line.strip()):
            break
        text = text or line.strip()
    return text or "the text ends there"


def _summed(below: Sequence[str]) -> str:
    """The case that the SUM line below a matrix names; none if another matrix comes first."""
    for line in below:
        match = _SUM.match(line.strip())
        if match:
            return _PART_OF_SUM.sub("", match[1])
        if _TITLE.match(line.strip()):
            break
    return ""


def is_json(data: Any) -> bool:
    """Whether a JSON object is nvbandwidth's."""
    return isinstance(data, dict) and isinstance(data.get("nvbandwidth"), dict)


def read_json(data: Mapping[str, Any], file: str) -> ToolResults:
    """Every matrix of what `nvbandwidth --json` prints; FormatError names the case that is not as it should be."""
    body = data["nvbandwidth"]
    tool = f"nvbandwidth {str(body.get('version', '')).lstrip('v')}".strip()
    rows: list[Observation] = []
    peers: dict[tuple[str, str], bool] = {}
    notes = [f"{file}: nvbandwidth says: {body[key]}" for key in ("error", "warning") if body.get(key)]
    cases = body.get("testcases")
    if not isinstance(cases, list):
        raise FormatError(
            "nvbandwidth's JSON without testcases", location=Location(file), hint="; ".join(notes) or WHOLE
        )
    for case in cases:
        name = str(case.get("name", "")) if isinstance(case, dict) else ""
        if not name or "bandwidth_matrix" not in case:
            why = case.get("error", case.get("status", "no status")) if name else "it has no name"
            notes.append(f"{file}: {name or 'a case'} has no result: {why}")
            continue
        for part, cells in _parts(name, case["bandwidth_matrix"], file):
            rows += _observations(tool, name, part, cells, notes, file)
            _note_peers(name, cells, peers)
    return ToolResults(tool, tuple(rows), peers, tuple(notes))


def _parts(case: str, data: Any, file: str) -> Iterator[tuple[str, Rows]]:
    """The matrices of one case: those of both ways and their sum stand one below the other since version 0.6."""
    try:
        cells = [[None if cell == "N/A" else float(cell) for cell in row] for row in data]
        columns = len(cells[0])
    except (TypeError, ValueError, IndexError):
        raise FormatError(f"the matrix of {case} is not one of numbers", location=Location(file), hint=WHOLE) from None
    expected = columns if is_square(case) else 1
    several = len(cells) == 3 * expected and "bidirectional" in case
    if any(len(row) != columns for row in cells) or (len(cells) != expected and not several):
        cause = f"the matrix of {case} has {len(cells)} rows for {columns} columns"
        raise FormatError(cause, location=Location(file), hint=WHOLE)
    word = "Read" if "_read_" in case else "Write"
    parts = (f"{word}1", f"{word}2", "Total") if several else ("",)
    for number, part in enumerate(parts):
        yield part, cells[number * expected : (number + 1) * expected]


def _observations(tool: str, case: str, part: str, cells: Rows, notes: list[str], file: str) -> Iterator[Observation]:
    columns = len(cells[0])
    if cell_of(case, part, 0, 0, columns) is None:
        notes.append(f"{file}: {case} is not read")
        return
    peers = case.startswith(("device_to_device", "all_to_one", "one_to_all"))
    how = {"engine": engine_of(case), "p2p": "on" if peers else ""}
    scenario = f"{case} {part}".strip()
    for row, values in enumerate(cells):
        for column, value in enumerate(values):
            tool_value = cell_of(case, part, row, column, columns)
            # Early versions print 0.00 for a GPU with itself; pairs without a number are told by `peers`.
            missing = is_square(case) and (row == column or value is None)
            if tool_value is not None and not missing:
                yield observation(tool, scenario, tool_value, value, how, {})


def _note_peers(case: str, cells: Rows, peers: dict[tuple[str, str], bool]) -> None:
    """Pairs without a number are those for which CUDA refuses peer access."""
    if is_square(case) and len(cells) == len(cells[0]):
        for row, values in enumerate(cells):
            for column, value in enumerate(values):
                if row != column:
                    peers[(f"gpu{row}", f"gpu{column}")] = value is not None
