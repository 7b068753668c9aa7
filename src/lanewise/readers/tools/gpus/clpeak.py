"""clpeak: transfers between host memory and a device, and the bandwidth of its memory; GBPS is 1e9 bytes a second.

Of the memory's widths (float to float16) the best counts: the widest are slower on many healthy devices. Source: its
own sources (github.com/krrishnarraj/clpeak), of version 1 (OpenCL) and 2 (src/common/logger_text.cpp, one name a
backend: `enqueuewritebuffer`, `h2d_pinned`). What the text says of compression or zero-copy is not read.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, observation
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

_DEVICE = re.compile(r"\s{0,8}Device(?: \d{1,2})?: (\S.{0,100})")
_UNIT = r"(?: ?(?:GB/s|GBPS))?"
_RATE = re.compile(
    r"\s*(enqueue(Write|Read)Buffer(?:[ _]non-?blocking)?|(h2d|d2h)_(pinned|pageable))\s*: (\d[\d.]{0,12})"
    + _UNIT
    + r"(?:\s|$)",
    re.IGNORECASE,
)
_MEMORY = re.compile(r"[\s*#-]{0,12}global memory bandwidth \(GBPS\)", re.IGNORECASE)
_WIDTH = re.compile(r"\s*((?:float|half|double|char|int)\d{0,2})\s*: (\d[\d.]{0,12})" + _UNIT + r"\s*$")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold transfers or the memory of clpeak."""
    known = any(_RATE.match(line) for line in lines if "enqueue" in line.lower() or "2" in line)
    return known or any(_MEMORY.match(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Its copies, each device as a GPU by its place, and the memory; mapped buffers are left out."""
    rows: list[Observation] = []
    titles: dict[str, str] = {}
    best: dict[str, float] = {}
    in_memory = False
    for number, line in enumerate(lines, 1):
        gpu, at = f"gpu{max(0, len(titles) - 1)}", Location(file, number)
        if match := _DEVICE.match(line):
            titles[f"gpu{len(titles)}"] = match[1]
        elif _MEMORY.match(line):
            in_memory = True
        elif in_memory and (match := _WIDTH.match(line)):
            best[gpu] = max(best.get(gpu, 0.0), figure(match[2], at))
        elif match := _RATE.match(line):
            rows.append(_copy(match, gpu, at))
        in_memory = in_memory and bool(not line.strip() or _MEMORY.match(line) or _WIDTH.match(line))
    return ImportedResults("clpeak", (*rows, *_memory(best)), posted=PostedFacts(titles))


def _copy(match: re.Match[str], gpu: str, at: Location) -> Observation:
    to_device = "write" in match[1].lower() or "h2d" in match[1].lower()
    flow = f"host0->{gpu}" if to_device else f"{gpu}->host0"
    kind = ToolValue(flow, flow, path="host to device" if to_device else "device to host")
    # Its buffers in OpenCL are plain memory (src/transfer_bandwidth.cpp: aligned_alloc).
    memory = (match[4] or "pageable").lower()
    return observation("clpeak", match[1], kind, figure(match[5], at), {"host memory": memory}, {})


def _memory(best: dict[str, float]) -> list[Observation]:
    note = "the best of its widths; what is read counts"
    return [
        observation("clpeak", "global memory", ToolValue(f"{gpu}->{gpu}", "", path="GPU memory", note=note), rate,
                    {"engine": "SM"}, {}) for gpu, rate in best.items()
    ]  # fmt: skip
