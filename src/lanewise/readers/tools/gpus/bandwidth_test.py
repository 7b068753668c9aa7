"""The CUDA sample bandwidthTest: host to device, device to host, device to device.

Its GB is 1e9 bytes; older versions print MB/s with 2^20 bytes. Device to device counts every byte twice; here once.
Source: the sample's own sources (github.com/NVIDIA/cuda-samples).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise import late_re as re
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import WHOLE, count, figure
from lanewise.readers.tool_results import MIB, ImportedResults, ToolValue, check_rows, observation
from lanewise.readers.tools.commands import memory_node
from lanewise.readers.tools.repeated_tables import labels_above, told_apart
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

TOOL = "bandwidthTest"
_TITLE = re.compile(r"(Host to Device|Device to Host|Device to Device) Bandwidth, (\d+) Device\(s\)")
_DEVICE = re.compile(r"Device (\d{1,6}): (\S.*)?")
_START = re.compile(r"\[CUDA Bandwidth Test\] - Starting")
# NVIDIA's sample for OpenCL (oclBandwidthTest) says the memory in the title, and the device below "Running on...".
_MEMORY = re.compile(r"\b(PINNED|PAGEABLE|Paged|Pinned) Memory(?: Transfers|,)", re.IGNORECASE)
_RUNNING = re.compile(r"Running on\.\.\.$")
_NAME = re.compile(r"(?:NVIDIA|GeForce|Tesla|Quadro|TITAN|AMD|Radeon)\b.{0,60}$")
_UNIT = re.compile(r"Transfer Size \(Bytes\)\s+Bandwidth\s?\((GB/s|MB/s)\)")
_ROW = re.compile(r"(\d+)\s+(\d+(?:\.\d+)?)")
# With --csv, in quick, range and shmoo mode.
_CSV = re.compile(
    r"bandwidthTest-(H2D|D2H|D2D)(?:-(Pinned|Paged))?, Bandwidth = (\d[\d.]{0,15}) (GB|MB)/s, Time = [\d.]+ s, "
    r"Size = (\d{1,15}) bytes, NumDevsUsed = (\d{1,3})"
)
_WAYS = {"H2D": "Host to Device", "D2H": "Device to Host", "D2D": "Device to Device"}
_KINDS = {"pinned": "pinned", "pageable": "pageable", "paged": "pageable"}

# A command line that starts it, with what a shell or a page writes before it.
_COMMAND = re.compile(r"(?:^|[$#>]|numactl .*)\s*(?:\S*/)?bandwidthTest(?:\s+-|\s*$)")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold output of bandwidthTest."""
    return any(_TITLE.match(line.strip()) or _CSV.match(line.strip()) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Every row of every section; FormatError with the line of a section that has none."""
    rows: list[Observation] = []
    notes: list[str] = []
    # Of several runs in a text each is named by the line above it.
    runs: list[tuple[list[str], list[Observation]]] = [([], [])]
    gpu = next((match[1] for line in lines if (match := _DEVICE.match(line.strip()))), "0")
    node = ""
    last = max((at for at, line in enumerate(lines) if _ROW.fullmatch(line.strip())), default=0)
    for at, line in enumerate(lines):
        title, device = _TITLE.match(line.strip()), _DEVICE.match(line.strip())
        gpu = device[1] if device else gpu
        node = memory_node([line]) if "bandwidthTest" in line and _COMMAND.search(line) else node
        if _START.search(line):
            runs.append((labels_above(lines, at), []))
        before = len(rows)
        if csv := _CSV.match(line.strip()):
            rows += _of_csv(csv, f"gpu{gpu}", Location(file, at + 1))
        if title and title[2] != "1":
            notes.append(f"{file}: '{title[1]}' of {title[2]} devices is a sum of copies one after another; left out")
        elif title and rows and at >= last:
            notes.append(f"{file}: the text breaks off below '{title[1]} Bandwidth'")
        elif title:
            found = _section(lines, at, title[1], f"gpu{gpu}", file)
            rows += [replace(row, how={**row.how, "NUMA node": node}) if node else row for row in found]
            check_rows(rows, Location(file, at + 1))
        runs[-1][1].extend(rows[before:])
    titles = {f"gpu{match[1]}": match[2] for line in lines if (match := _DEVICE.match(line.strip())) and match[2]}
    titles = titles or _name_of_opencl(lines)
    measured = [run for run in runs if run[1]]
    named = told_apart(measured) if len(measured) > 1 else rows
    return ImportedResults(TOOL, tuple(named), notes=tuple(notes), posted=PostedFacts(titles))


def _section(lines: list[str], at: int, title: str, gpu: str, file: str) -> list[Observation]:
    said = _MEMORY.search(lines[at])
    memory, scale = _KINDS[said[1].lower()] if said else "", 0.0
    rows: list[Observation] = []
    for number in range(at + 1, len(lines)):
        line = lines[number]
        kind, unit, row = _MEMORY.search(line), _UNIT.search(line), _ROW.fullmatch(line.strip())
        if kind:
            memory = _KINDS[kind[1].lower()]
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


def _of_csv(match: re.Match[str], gpu: str, at: Location) -> list[Observation]:
    """The row of a line of --csv; none of several devices, whose copies ran one after another."""
    if match[6] != "1":
        return []
    cell = _cell(_WAYS[match[1]], gpu)
    within = cell.path == "GPU memory"
    value = figure(match[3], at) * (1e9 if match[4] == "GB" else MIB) / 1e9 / (2 if within else 1)
    how = {"engine": "copy engine", "host memory": "" if within else _KINDS[(match[2] or "pinned").lower()]}
    return [observation(TOOL, _WAYS[match[1]], cell, value, how, {"bytes": count(match[5], at)})]


def _name_of_opencl(lines: Sequence[str]) -> dict[str, str]:
    """The device that oclBandwidthTest names by a line alone."""
    start = next((at for at, line in enumerate(lines) if _RUNNING.match(line.strip())), len(lines))
    names = [match[0] for line in lines[start + 1 : start + 4] if (match := _NAME.match(line.strip()))]
    return {"gpu0": names[0]} if names else {}


def _cell(title: str, gpu: str) -> ToolValue:
    if title == "Host to Device":
        return ToolValue(f"host0->{gpu}", f"host0->{gpu}", path="host to device")
    if title == "Device to Host":
        return ToolValue(f"{gpu}->host0", f"{gpu}->host0", path="device to host")
    note = "payload counted once, where the tool counts the read and the write"
    return ToolValue(f"{gpu}->{gpu}", "", path="GPU memory", note=note)
