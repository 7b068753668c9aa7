"""busGrind of CUDA's demo suite: copies between the host and each GPU, alone and all at once. Its GB is 1e9 bytes.

The row BiDir is the sum of both directions. Of the concurrent matrices each cell is one GPU while all of them copy;
the column Total is their sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import MAX_COLUMNS, WHOLE, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.readers.tools.gpus.p2p import device_names
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

TOOL = "busGrind"
_TITLE = re.compile(r"(Concurrent )?Host/Device Bandwidth Matrix \(GB/s\), memory=(Pinned|Unpinned|Pageable)")
_ROWS = {"D2H": "device to host", "H2D": "host to device", "BiDir": "both"}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a matrix of busGrind between host and GPUs."""
    return any(_TITLE.match(line.strip()) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Every matrix between host and GPUs; FormatError with the line where one is cut short."""
    rows: list[Observation] = []
    for at, line in enumerate(lines):
        if match := _TITLE.match(line.strip()):
            memory = "pinned" if match[2] == "Pinned" else "pageable"
            rows += _matrix(lines, at + 1, file, bool(match[1]), memory)
            check_rows(rows, Location(file, at + 1))
    return ImportedResults(TOOL, tuple(rows), posted=PostedFacts(device_names(lines)))


def _matrix(lines: Sequence[str], start: int, file: str, at_once: bool, memory: str) -> Iterator[Observation]:
    head = lines[start].split() if start < len(lines) else []
    gpus = [word for word in head[1:] if word.isascii() and word.isdigit() and len(word) <= 6]
    if head[:1] != ["Dir\\D"] or not gpus or len(gpus) > MAX_COLUMNS:
        raise FormatError("no matrix below its title", location=Location(file, start + 1), hint=WHOLE)
    number = start + 1
    while number < len(lines) and (words := lines[number].split()) and words[0] in _ROWS:
        if len(words) != len(head):
            cause = f"{len(words) - 1} cells for {len(head) - 1} columns"
            raise FormatError(cause, location=Location(file, number + 1), hint=WHOLE)
        for gpu, word in zip(gpus, words[1:], strict=False):
            value = figure(word, Location(file, number + 1))
            kind = _value(words[0], gpu, gpus if at_once else [gpu])
            how = {"engine": "copy engine", "host memory": memory}
            yield observation(TOOL, f"{'concurrent ' * at_once}{words[0]}", kind, value, how, {})
        number += 1
    if number == start + 1:
        raise FormatError("the matrix has no rows", location=Location(file, start + 1), hint=WHOLE)


def _value(row: str, gpu: str, together: Sequence[str]) -> ToolValue:
    """What a cell is of; of concurrent copies its own flows come first."""
    ways = {"H2D": ["host0->gpu{}"], "D2H": ["gpu{}->host0"], "BiDir": ["host0->gpu{}", "gpu{}->host0"]}[row]
    others = [other for other in together if other != gpu]
    flows = ", ".join(way.format(index) for index in (gpu, *others) for way in ways)
    flow = ", ".join(way.format(gpu) for way in ways)
    both = row == "BiDir"
    path = "host to device" if row != "D2H" else "device to host"
    note = "the sum of both ways" if both else ""
    # The sum over one GPU of many is no total of the scenario's flows.
    metric = "total" if both else "goodput"
    return ToolValue(flow, flows, metric, path="host to device, device to host" if both else path, note=note)
