"""dcgmproftester: what its load of PCIe moves a second (fields 1009 and 1010), the best line of each GPU and direction.

Source: github.com/NVIDIA/DCGM, dcgmproftester/PhysicalGpu.cpp. A line says what the GPU's workers generated before and
now (1e6 B/s, in parentheses those of this worker alone), then what DCGM's counter read: that is more, by the headers of
packets, and is 1e6 B/s too though the line says MiB. Behind it the link is named as it is under this load.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import count, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "dcgmproftester"
_LINE = re.compile(
    r"Worker (?P<gpu>\d{1,6}):\d{1,6}\[\d{4}\]: Pcie(?P<way>[RT]x)Bytes generated \S{1,16}/(?P<rate>\d[\d.e+]{0,15}) "
    r".{0,60}\bdcgm .{0,60}speed-of-light\), PCIE version/lanes: (?P<gen>[1-7])/(?P<lanes>\d{1,2})\b"
)


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold what dcgmproftester says of PCIe."""
    return any(_LINE.search(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The best rate of each GPU and direction: the first seconds are those in which the load begins."""
    best: dict[tuple[str, str], Observation] = {}
    for number, line in enumerate(lines, 1):
        if match := _LINE.search(line):
            at = Location(file, number)
            gpu = f"gpu{count(match['gpu'], at)}"
            # The GPU receives what the host sends.
            flow, path = (
                (f"host0->{gpu}", "host to device") if match["way"] == "Rx" else (f"{gpu}->host0", "device to host")
            )
            link = f"Gen{match['gen']} x{match['lanes']}"
            how = {"engine": "copy engine", "host memory": "pinned", "link under load": link}
            name = f"Pcie{match['way']}Bytes"
            row = observation(TOOL, name, ToolValue(flow, flow, path=path), figure(match["rate"], at) / 1e3, how, {})
            best[gpu, path] = max(best.get((gpu, path), row), row, key=lambda each: each.value or 0.0)
            check_rows([*best.values()], at)
    return ImportedResults(TOOL, tuple(best.values()))
