"""gdsio's result lines, one for each run: storage to or from GPU or host memory. Its GiB is 2^30, its KiB 2^10 bytes.

The line names neither file nor GPU; the command line above it does (-f, -D, -d), if it was pasted as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lanewise.errors import FormatError, Location
from lanewise.readers.texts import WHOLE
from lanewise.readers.tool_results import GIB, ToolResults, ToolValue, observation
from lanewise.results.observation import Observation

TOOL = "gdsio"
_START = re.compile(r"IoType:\s*(\w+)")
_LINE = re.compile(
    r"IoType:\s*(?P<io>\w+)\s+XferType:\s*(?P<transfer>\w+)\s+Threads:\s*(?P<threads>\d+)\s+"
    r"(?:IoDepth:\s*(?P<depth>\d+)\s+)?DataSetSize:\s*\S+\s+IOSize:\s*(?P<size>[\d-]+)\(KiB\)\s+"
    r"Throughput:\s*(?P<rate>[\d.]+)\s*GiB/sec,\s*Avg_Latency:\s*(?P<latency>[\d.]+)\s*usecs"
)
# What gdsio's types of transfer do: straight to the GPU, to host memory, or through host memory to the GPU.
_MODES = {
    "GPUD": "cuFile", "GPU_DIRECT": "cuFile", "GPU_DIRECT_ASYNC": "cuFile", "GPUD_ASYNC": "cuFile", "ASYNC": "cuFile",
    "GPU_BATCH": "cuFile", "GPU_BATCH_STREAM": "cuFile", "CPUONLY": "direct", "CPU_ONLY": "direct",
    "CPU_GPU": "bounce", "CPU_ASYNC_GPU": "bounce", "CPU_CACHED_GPU": "cached",
}  # fmt: skip
_CLAIM = "gdsio prints GPUD also where cuFile fell back to its compat mode; /proc/driver/nvidia-fs/stats tells"


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a result of gdsio."""
    return any(_START.search(line) for line in lines)


def read_text(lines: list[str], file: str) -> ToolResults:
    """Every result line, also where a forum broke it in two; FormatError with the line of one that is cut short."""
    rows: list[Observation] = []
    for at, line in enumerate(lines):
        start = _START.search(line)
        if not start:
            continue
        whole = " ".join([line[start.start() :], *(text.strip() for text in lines[at + 1 : at + 4])])
        match = _LINE.match(whole)
        if match is None:
            raise FormatError("a result line of gdsio breaks off", location=Location(file, at + 1), hint=WHOLE)
        name, gpu = _command_line(lines[:at])
        rows += _observations(match.groupdict(), name, gpu)
    claim = any(row.how.get("mode") == "cuFile" for row in rows)
    return ToolResults(TOOL, tuple(rows), notes=(f"{file}: {_CLAIM}",) if claim else ())


def _command_line(before: Sequence[str]) -> tuple[str, str]:
    """The file or folder and the GPU that the last command line names."""
    command = next((line for line in reversed(before) if re.search(r"\bgdsio\b.*\s-[fDdw]\b", line)), "")
    path = re.search(r"\s-[fD]\s*(\S+)", command)
    gpu = re.search(r"\s-d\s*(\d+)", command)
    name = re.sub(r"[^\w.\-]", "_", path[1].rstrip("/").rsplit("/", 1)[-1]) if path else ""
    return name or "storage", f"gpu{gpu[1] if gpu else 0}"


def _observations(fields: dict[str, str | None], name: str, gpu: str) -> list[Observation]:
    transfer, io = str(fields["transfer"]), str(fields["io"])
    memory = "host0" if transfer.startswith(("CPUONLY", "CPU_ONLY")) else gpu
    flow = f"{name}->{memory}" if "READ" in io else f"{memory}->{name}"
    settings = {"threads": int(fields["threads"] or 0)}
    if str(fields["size"]).isdigit():
        settings["bytes"] = int(str(fields["size"])) * 1024
    if fields["depth"]:
        settings["depth"] = int(fields["depth"])
    how = {"mode": _MODES.get(transfer, transfer), "engine": f"gdsio {transfer}"}
    scenario = f"{io.lower()} {transfer}"
    rate = ToolValue(flow, flow, path="storage")
    wait = ToolValue(flow, flow, "latency_mean", "us", "storage")
    return [
        observation(TOOL, scenario, rate, float(str(fields["rate"])) * GIB / 1e9, how, settings),
        observation(TOOL, scenario, wait, float(str(fields["latency"])), how, settings),
    ]
