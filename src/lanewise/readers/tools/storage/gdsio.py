"""gdsio's result lines, one for each run: storage to or from GPU or host memory. Its GiB is 2^30, its KiB 2^10 bytes.

The line names neither file nor GPU; the command line above it does (-f, -D, -d), if it was pasted as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import WHOLE, count, figure
from lanewise.readers.tool_results import GIB, ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "gdsio"
_START = re.compile(r"IoType:\s*(\w+)")
_LINE = re.compile(
    r"IoType:\s*(?P<io>\w+)\s+XferType:\s*(?P<transfer>\w+)\s+Threads:\s*(?P<threads>\d+)\s+"
    r"(?:IoDepth:\s*(?P<depth>\d+)\s+)?DataSetSize:\s*\S+\s+IOSize:\s*(?P<size>[\d-]+)\(KiB\)\s+"
    r"Throughput:\s*(?P<rate>\S+)\s*GiB/sec,\s*Avg_Latency:\s*(?P<latency>\S+)\s*usecs"
)
_COMMAND, _OPTION = re.compile(r"\bgdsio\b"), re.compile(r"\s-[fDdw]\b")
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


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Every result line, also where a forum broke it in two; FormatError with the line of one that is cut short."""
    rows: list[Observation] = []
    command = ""
    for at, line in enumerate(lines):
        start = _START.search(line)
        if not start:
            gdsio = _COMMAND.search(line)
            command = line if gdsio and _OPTION.search(line, gdsio.end()) else command
            continue
        whole = " ".join([line[start.start() :], *(text.strip() for text in lines[at + 1 : at + 4])])
        match = _LINE.match(whole)
        if match is None:
            raise FormatError("a result line of gdsio breaks off", location=Location(file, at + 1), hint=WHOLE)
        rows += _observations(match.groupdict(), *_target(command), Location(file, at + 1))
        check_rows(rows, Location(file, at + 1))
    claim = any(row.how.get("mode") == "cuFile" for row in rows)
    return ImportedResults(TOOL, tuple(rows), notes=(f"{file}: {_CLAIM}",) if claim else ())


def _target(command: str) -> tuple[str, str]:
    """The file or folder and the GPU that a command line names."""
    path = re.search(r"\s-[fD]\s*(\S+)", command)
    gpu = re.search(r"\s-d\s*(\d{1,6})", command)
    name = re.sub(r"[^\w.\-]", "_", path[1].rstrip("/").rsplit("/", 1)[-1]) if path else ""
    return name or "storage", f"gpu{gpu[1] if gpu else 0}"


def _observations(fields: dict[str, str | None], name: str, gpu: str, location: Location) -> list[Observation]:
    transfer, io = str(fields["transfer"]), str(fields["io"])
    memory = "host0" if transfer.startswith(("CPUONLY", "CPU_ONLY")) else gpu
    flow = f"{name}->{memory}" if "READ" in io else f"{memory}->{name}"
    settings = {"threads": count(str(fields["threads"]), location)}
    if "-" not in str(fields["size"]):
        settings["bytes"] = count(str(fields["size"]), location) * 1024
    if fields["depth"]:
        settings["depth"] = count(fields["depth"], location)
    how = {"mode": _MODES.get(transfer, transfer), "engine": f"gdsio {transfer}"}
    scenario = f"{io.lower()} {transfer}"
    rate = ToolValue(flow, flow, path="storage")
    wait = ToolValue(flow, flow, "latency_mean", "us", "storage")
    return [
        observation(TOOL, scenario, rate, figure(str(fields["rate"]), location) * GIB / 1e9, how, settings),
        observation(TOOL, scenario, wait, figure(str(fields["latency"]), location), how, settings),
    ]
