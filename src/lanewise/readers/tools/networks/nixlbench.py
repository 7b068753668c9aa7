"""nixlbench: transfers of NIXL by block and batch size. Its GB is 1e9 bytes, its B/W is of all threads together.

Source of what is read: the tool's own sources (github.com/ai-dynamo/nixl, benchmark/nixlbench).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lanewise import late_re as re
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import WHOLE, count, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "nixlbench"
_HEAD = re.compile(r"\s*Block Size \(B\)\s+(?:Batch Size|Avg Lat)")
_OPTION = re.compile(r"\(--(\w+)=[^)]*\)\s*: *(\S*)")
# A column of words ends with its unit; one has none.
_COLUMN = re.compile(r"Batch Size|[A-Z][^()]{0,24}\([^()]{1,12}\)")
_STORAGE = ("GDS", "GDS_MT", "POSIX", "HF3FS", "OBJ", "GUSLI")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a table of nixlbench."""
    return any(_HEAD.search(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Rate and mean latency of each block and batch size; FormatError with the line of a row that is cut short."""
    options: dict[str, str] = {}
    heads: list[str] = []
    rows: list[Observation] = []
    for number, line in enumerate(lines, 1):
        if match := _OPTION.search(line):
            options[match[1]] = match[2]
            heads = []
        elif _HEAD.match(line):
            heads = [match[0].strip() for match in _COLUMN.finditer(line)]
        elif heads and re.match(r"\s*\d+\s+\d[\d.]*\s", line):
            rows += _row(options, heads, line.split(), Location(file, number))
            check_rows(rows, Location(file, number))
        elif line.strip(" -*="):
            heads = []  # the table ends
    if not rows:
        raise FormatError("the table of nixlbench has no rows", location=Location(file, len(lines)), hint=WHOLE)
    told = any("seg_type" in line for line in lines)
    notes = () if told else (f"{file}: nixlbench's memory is not stated; taken for the host's, as it is unless asked",)
    return ImportedResults(TOOL, tuple(rows), notes=notes)


def _row(options: Mapping[str, str], heads: Sequence[str], words: Sequence[str], at: Location) -> list[Observation]:
    if len(words) != len(heads):
        raise FormatError(f"{len(words)} figures below {len(heads)} heads", location=at, hint=WHOLE)
    cells = dict(zip(heads, words, strict=True))
    settings = {"bytes": count(cells["Block Size (B)"], at)}
    settings |= {"batch": count(cells["Batch Size"], at)} if "Batch Size" in cells else {}
    threads = options.get("num_threads", "")
    if threads.isascii() and threads.isdigit() and len(threads) < 9:
        settings["threads"] = int(threads)
    backend, read = options.get("backend", ""), options.get("op_type", "WRITE") == "READ"
    storage = backend in _STORAGE
    ends = {"VRAM": "gpu0", "DRAM": "host0"}
    near = ends.get(options.get("initiator_seg_type", "DRAM"), "host0")
    far = "storage" if storage else "host1"
    flow = f"{far}->{near}" if read else f"{near}->{far}"
    path = "storage" if storage else "network"
    how = {"engine": backend, "mode": "cuFile" if backend.startswith("GDS") else ""}
    card = options.get("device_list", "all")
    how |= {"device": card} if path == "network" and "," not in card and card != "all" else {}
    target = options.get("target_seg_type", "")
    scenario = " ".join(filter(None, (options.get("op_type", "").lower(), target and f"target {target}")))
    rows = []
    for head, metric, unit in (("B/W (GB/Sec)", "goodput", "GB/s"), ("Avg Lat. (us)", "latency_mean", "us")):
        if head in cells:
            kind = ToolValue(flow, flow, metric, unit, path)
            rows.append(observation(TOOL, scenario or TOOL, kind, figure(cells[head], at), how, settings))
    return rows
