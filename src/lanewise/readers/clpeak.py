"""clpeak's test of transfers between host memory and an OpenCL device; GBPS is 1e9 bytes a second.

Source: github.com/krrishnarraj/clpeak, its own sources.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, observation
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

_DEVICE = re.compile(r"\s{1,8}Device: (\S.{0,100})")
_RATE = re.compile(r"\s*(enqueue(Write|Read)Buffer(?: non-blocking)?)\s*: (\d[\d.]{0,12})$")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold transfers of clpeak."""
    return any("enqueue" in line and _RATE.match(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Its writes and reads of buffers, each device as a GPU by its place; mapped buffers are left out."""
    rows: list[Observation] = []
    titles: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if match := _DEVICE.match(line):
            titles[f"gpu{len(titles)}"] = match[1]
        elif match := _RATE.match(line):
            gpu = f"gpu{max(0, len(titles) - 1)}"
            to_device = match[2] == "Write"
            flow = f"host0->{gpu}" if to_device else f"{gpu}->host0"
            value = ToolValue(flow, flow, path="host to device" if to_device else "device to host")
            rows.append(observation("clpeak", match[1], value, figure(match[3], Location(file, number)), {}, {}))
    return ImportedResults("clpeak", tuple(rows), posted=PostedFacts(titles))
