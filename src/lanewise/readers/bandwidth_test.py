"""The CUDA sample bandwidthTest: host to device, device to host, device to device.

Its GB is 1e9 bytes; older versions print MB/s with 2^20 bytes. Device to device counts every byte twice; here once.
Source: the sample's own sources (github.com/NVIDIA/cuda-samples).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lanewise.errors import FormatError, Location
from lanewise.readers.texts import WHOLE, count, figure
from lanewise.readers.tool_results import MIB, ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

TOOL = "bandwidthTest"
_TITLE = re.compile(r"(Host to Device|Device to Host|Device to Device) Bandwidth, (\d+) Device\(s\)")
_DEVICE = re.compile(r"Device (\d{1,6}): (\S.*)?")
_MEMORY = re.compile(r"(PINNED|PAGEABLE) Memory Transfers")
_UNIT = re.compile(r"Transfer Size \(Bytes\)\s+Bandwidth\s?\((GB/s|MB/s)\)")
_ROW = re.compile(r"(\d+)\s+(\d+(?:\.\d+)?)")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold output of bandwidthTest."""
    return any(_TITLE.match(line.strip()) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Every row of every section; FormatError with the line of a section that has none."""
    rows: list[Observation] = []
    notes: list[str] = []
    gpu = next((match[1] for line in lines if (match := _DEVICE.match(line.strip()))), "0")
    for at, line in enumerate(lines):
        title = _TITLE.match(line.strip())
        if title and title[2] != "1":
            notes.append(f"{file}: '{title[1]}' of {title[2]} devices is a sum of copies one after another; left out")
        elif title:
            rows += _section(lines, at, title[1], f"gpu{gpu}", file)
            check_rows(rows, Location(file, at + 1))
    titles = {f"gpu{match[1]}": match[2] for line in lines if (match := _DEVICE.match(line.strip())) and match[2]}
    return ImportedResults(TOOL, tuple(rows), notes=tuple(notes), posted=PostedFacts(titles))


def _section(lines: list[str], at: int, title: str, gpu: str, file: str) -> list[Observation]:
    memory, scale = "", 0.0
    rows: list[Observation] = []
    for number in range(at + 1, len(lines)):
        line = lines[number]
        kind, unit, row = _MEMORY.search(line), _UNIT.search(line), _ROW.fullmatch(line.strip())
        if kind:
            memory = kind[1].lower()
        elif unit:
            scale = 1e9 if unit[1] == "GB/s" else MIB
        elif row and scale:
            cell = _cell(title, gpu)
            location = Location(file, number + 1)
            value = figure(row[2], location) * scale / 1e9 / (2 if cell.path == "GPU memory" else 1)
            how = {"engine": "copy engine", "host memory": memory if cell.path != "GPU memory" else ""}
            rows.append(observation(TOOL, title, cell, value, how, {"bytes": count(row[1], location)}))
        elif rows or _TITLE.search(line):
            break
    if not rows:
        raise FormatError(f"no figures below '{title} Bandwidth'", location=Location(file, at + 1), hint=WHOLE)
    return rows


def _cell(title: str, gpu: str) -> ToolValue:
    if title == "Host to Device":
        return ToolValue(f"host0->{gpu}", f"host0->{gpu}", path="host to device")
    if title == "Device to Host":
        return ToolValue(f"{gpu}->host0", f"{gpu}->host0", path="device to host")
    note = "payload counted once, where the tool counts the read and the write"
    return ToolValue(f"{gpu}->{gpu}", "", path="GPU memory", note=note)
