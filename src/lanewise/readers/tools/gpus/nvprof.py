"""nvprof --print-gpu-trace: the copies between a GPU and host memory, by direction and kind of host memory.

Its GB are 2^30 bytes: 1.0000GB in 209.30 ms are shown as 4.7779GB/s (numba/numba#4336).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, observation
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

_COPY = re.compile(
    r"\s*\d[\d.]{0,14}[mun]?s\s{1,8}(?P<time>\d[\d.]{0,14})(?P<second>[mun]?s) .{0,120}? (?P<size>\d[\d.]{0,14})"
    r"(?P<byte>[KMG]?B)\s{1,8}\d[\d.]{0,14}[KMG]?B/s(?:\s{1,8}(?P<from>Pageable|Pinned|Device)\s{1,8}"
    r"(?P<to>Pageable|Pinned|Device))?\s{1,8}(?P<name>\S.{0,60}?)(?: \((?P<index>\d{1,2})\))?(?:\s{1,12}\d{1,6}){2}"
    r"\s{1,8}\[CUDA memcpy (?P<way>HtoD|DtoH)(?: async)?\]"
)
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_BYTES = {"B": 1.0, "KB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold copies of such a trace."""
    return any("[CUDA memcpy " in line and _COPY.match(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The rate of the longest copies of each direction and kind of memory: all their bytes over all their time."""
    copies: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    devices: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = _COPY.match(line) if "[CUDA memcpy " in line else None
        if match is None:
            continue
        at, gpu = Location(file, number), f"gpu{match['index'] or 0}"
        devices.setdefault(gpu, match["name"])
        to_gpu = match["way"] == "HtoD"
        flow = f"host0->{gpu}" if to_gpu else f"{gpu}->host0"
        memory = (match["from"] if to_gpu else match["to"]) or ""
        time = figure(match["time"], at) * _SECONDS[match["second"]]
        copies[flow, memory.lower()].append((figure(match["size"], at) * _BYTES[match["byte"]], time))
    rows = [row for (flow, memory), of in copies.items() for row in _rate(flow, memory, of)]
    return ImportedResults("nvprof", tuple(rows), posted=PostedFacts(devices))


def _rate(flow: str, memory: str, copies: Sequence[tuple[float, float]]) -> list[Observation]:
    """The row of copies of at least half of the longest; none where they took no time."""
    longest = max(size for size, _ in copies)
    long = [copy for copy in copies if copy[0] >= 0.5 * longest]
    time = sum(each for _, each in long)
    if not time or not longest:
        return []
    path = "host to device" if flow.startswith("host") else "device to host"
    value = ToolValue(flow, flow, unit="GB/s", path=path)
    how = {"host memory": memory, "engine": "copy engine"}
    return [observation("nvprof", "nvprof", value, sum(size for size, _ in long) / time / 1e9, how,
                        {"bytes": int(longest)})]  # fmt: skip
