"""BabelStream: the memory of a GPU, or of the host, by kernels that copy, scale and add. Its MB is 1e6 bytes.

Source of what is read: the tool's own sources (github.com/UoB-HPC/BabelStream). Copy and Mul count what is read and
what is written; here the payload of a copy counts once, as in other tools. Sums of two arrays are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

TOOL = "BabelStream"
_HEAD = re.compile(r"Function\s+([MG]i?)Bytes/sec\s+Min \(sec\)")
_ROW = re.compile(r"(Copy|Mul|Add|Triad|Dot|Nstream)\s+(\d[\d.]{0,15}(?:e\+?\d{1,2})?)\s")
_DEVICE = re.compile(r"Using (?:CUDA|HIP|OpenCL|SYCL|Metal|alpaka|Kokkos|RAJA) device:? (\S.{0,80})")
_UNITS = {"M": 1e-3, "Mi": 2**20 / 1e9, "G": 1.0, "Gi": 2**30 / 1e9}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a table of BabelStream."""
    return any(_HEAD.match(line.strip()) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The copies within the device that is named, of the host where none is."""
    rows: list[Observation] = []
    titles: dict[str, str] = {}
    scale = 0.0
    for number, line in enumerate(lines, 1):
        if device := _DEVICE.search(line):
            titles[f"gpu{len(titles)}"] = re.sub(r"\s*\(\w*Device\(\d+\)\)$", "", device[1])
        elif head := _HEAD.match(line.strip()):
            scale = _UNITS[head[1]]
        elif scale and (match := _ROW.match(f"{line.strip()} ")) and match[1] in ("Copy", "Mul"):
            end = f"gpu{len(titles) - 1}" if titles else "host0"
            path = "GPU memory" if titles else "host memory"
            value = ToolValue(f"{end}->{end}", "", path=path, note="payload counted once, as in other tools")
            rate = figure(match[2], Location(file, number)) * scale / 2
            rows.append(observation(TOOL, match[1], value, rate, {"engine": "SM" if titles else "CPU"}, {}))
            check_rows(rows, Location(file, number))
    return ImportedResults(TOOL, tuple(rows), posted=PostedFacts(titles))
