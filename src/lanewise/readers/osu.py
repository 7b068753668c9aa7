"""OSU micro-benchmarks (osu_bw, osu_bibw, osu_latency) of host and GPU memory. Their MB is 1e6 bytes.

Source of what is read: the benchmarks' own heads (mvapich.cse.ohio-state.edu/benchmarks). D is a GPU, H host memory,
the sender's first. Two GPUs are taken for those of one host unless a command line names two hosts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lanewise.errors import Location
from lanewise.readers.texts import count, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "OSU micro-benchmarks"
_TITLE = re.compile(r"# OSU MPI(?:-\w{2,10})? ((?:Bi-Directional )?Bandwidth|Latency) Test(?: v([\w.]{1,12}))?")
_BUFFERS = re.compile(r"# Send Buffer on (HOST|DEVICE|MANAGED)\b.{0,20} Receive Buffer on (HOST|DEVICE|MANAGED)")
_ROW = re.compile(r"\s*(\d{1,15})\s+(\d[\d.]{0,15})\s*$")
_TWO_HOSTS = re.compile(
    r"(?:^|\s)(?:-N ?2|--nodes[= ]2|-(?:H|host|hosts) ?\w[\w.-]*(?::\d+)?,\w|--map-by (?:ppr:1:)?node)"
)
_METRICS = {  # metric, its unit, and that of the table in it
    "Bandwidth": ("goodput", "GB/s", 1e-3),
    "Bi-Directional Bandwidth": ("total", "GB/s", 1e-3),
    "Latency": ("latency_mean", "us", 1.0),
}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a table of osu_bw, osu_bibw or osu_latency."""
    return any(_TITLE.match(line.strip()) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Every row of every table; FormatError with the line of a figure that is none."""
    rows: list[Observation] = []
    table, ends = "", ("host0", "host1")
    hosts = any(_TWO_HOSTS.search(line) for line in lines if "osu_" in line)
    for number, line in enumerate(lines, 1):
        if match := _TITLE.match(line.strip()):
            table, ends = match[1], ("host0", "host1")
        elif match := _BUFFERS.match(line.strip()):
            ends = _ends(match[1] != "HOST", match[2] != "HOST", hosts)
        elif table and (match := _ROW.match(line)):
            at = Location(file, number)
            rows.append(_row(table, ends, count(match[1], at), figure(match[2], at)))
            check_rows(rows, at)
        elif not line.startswith("#"):
            table = ""
    return ImportedResults(TOOL, tuple(rows))


def _ends(sends: bool, receives: bool, hosts: bool) -> tuple[str, str]:
    """Names of sender and receiver; over a network the other host stands for its GPU too."""
    if hosts:
        return ("gpu0" if sends else "host0", "host1")
    if sends and receives:
        return ("gpu0", "gpu1")
    return ("gpu0", "host0") if sends else ("host0", "gpu0") if receives else ("host0", "host1")


def _row(table: str, ends: tuple[str, str], size: int, value: float) -> Observation:
    flow, back = "->".join(ends), "->".join(reversed(ends))
    metric, unit, scale = _METRICS[table]
    flow = f"{flow}, {back}" if metric == "total" else flow
    path = "network" if "host1" in ends else "peer" if "host0" not in ends else "host to device"
    path = "device to host" if ends == ("gpu0", "host0") else path
    how = {"p2p": "on" if path == "peer" else "", "pattern": "MPI"}
    return observation(
        TOOL, f"osu {table.lower()}", ToolValue(flow, flow, metric, unit, path), value * scale, how, {"bytes": size}
    )
