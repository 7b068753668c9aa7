"""Tools that say one copy of a GPU a line: OpenCL-Benchmark, gdrcopy, SuperBench, Level Zero's tests and CUDA samples.

Sources, the tools' own: ProjectPhysX/OpenCL-Benchmark (src/main.cpp: both ways is the mean of one, so it is left out),
NVIDIA/gdrcopy (tests/copybw.cpp: MB is 2^20 bytes; the CPU copies), microsoft/superbenchmark (gpu_copy: GB is 1e9
bytes; who copies is named; both ways is the sum), oneapi-src/level-zero-tests (ze_bandwidth, ze_peer: both ways is the
sum; GB is 1e9), NVIDIA/cuda-samples (simpleMultiCopy: pinned memory), NVIDIA-developer-blog/code-samples
(bandwidthtest.cu: its "Transfer size (MB)" is of 2^20 bytes), vetter/shoc (its driver's summary), ROCm/aomp
(test/omp_band, hip_band), GpuZelenograd/memtest_vulkan (src/main.rs: GB is 2^30 bytes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import GIB, MIB, ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

_RATE = r"(?P<rate>\d[\d.]{0,15})"
_SIZES = {"": 1, "B": 1, "K": 1 << 10, "KB": 1 << 10, "M": 1 << 20, "MB": 1 << 20, "GB": 1 << 30}
# What a tool calls the two directions, and copies or kernels within the GPU's memory.
_TO_GPU = re.compile(
    r"h2d|host(?: to |2|->)device|send|write|bspeed_download|cpu_to|to_device|HOST-TO|to$", re.IGNORECASE
)
_WITHIN = re.compile(r"gmem|coalesced|written|checked", re.IGNORECASE)
_PROGRAM = re.compile(r"\s*(?:\$ )?\./(?P<program>[\w.-]{1,40})\s*$")


@dataclass(frozen=True, slots=True)
class _LineTool:
    """A tool: the lines with a rate, those that say more of the rates below them, and what all of its copies share."""

    name: str
    line: re.Pattern[str]
    context: re.Pattern[str] | None = None
    memory: str = ""
    engine: str = ""
    unit: float = 1e9


def _tool(name: str, line: str, context: str = "", memory: str = "", engine: str = "", unit: float = 1e9) -> _LineTool:
    return _LineTool(name, re.compile(line), re.compile(context) if context else None, memory, engine, unit)


_TOOLS = (
    # Plain host memory, of which the driver says nothing.
    _tool("OpenCL-Benchmark",
          rf"\| (?:Memory|PCIe) +Bandwidth \( *(?P<way>coalesced read|coalesced +write|send|receive) *\) +{_RATE} GB/s",
          r"\| Device Name +\| (?P<title>\S.{0,60}?) +\|", memory="pageable"),
    _tool("gdrcopy", rf"^(?P<way>write|read) BW: {_RATE}MB/s",
          r"(?:writing|reading) test, size=(?P<size>\d{1,15})|GPU id:(?P<gpu>\d{1,3}); name: (?P<title>[^;]{1,60});|"
          r"selecting device (?P<selected>\d{1,3})", engine="CPU", unit=MIB),
    # copylat says how long each copy takes: its large ones are rates.
    _tool("gdrcopy", r"^gdr_copy_(?P<way>to|from)_mapping\s+(?P<size>\d{7,15})\s+(?P<us>\d[\d.]{0,12})\s*$",
          r"GPU id:(?P<gpu>\d{1,3}); name: (?P<title>[^;]{1,60});|selecting device (?P<selected>\d{1,3})",
          engine="CPU"),
    _tool("SuperBench gpu_copy",
          r"\b(?:(?P<way>cpu_to)_gpu(?P<gpu>\d{1,3})|gpu(?P<from>\d{1,3})_to_cpu|"
          r"cpu_and_gpu(?P<both>\d{1,3})|gpu(?P<also>\d{1,3})_and_cpu|"
          r"gpu(?P<src>\d{1,3})_(?:to|(?P<ways>and))_gpu(?P<dst>\d{1,3})(?:_(?P<pull>read|write))?)"
          r"_by_(?P<by>sm|dma)(?:_under_numa(?P<node>\d{1,3}))?"
          rf"(?:_bw)?(?::\d+)?[\s:,]+{_RATE}",
          memory="pinned"),
    _tool("simpleMultiCopy", rf"Memcpy (?P<way>host to device|device to host)\s*: [\d.]+ ms \({_RATE} GB/s\)",
          memory="pinned"),
    _tool("bandwidthtest.cu", rf"(?P<way>Host to Device|Device to Host) bandwidth \(GB/s\): {_RATE}",
          r"(?P<memory>Pageable|Pinned) transfers|Transfer size \(MB\): (?P<mib>\d{1,6})|"
          r"^Device: (?P<title>\S.{0,60})"),
    _tool("SHOC", rf"result for (?P<way>bspeed_download|bspeed_readback|gmem_(?:read|write)bw): +{_RATE} GB/s",
          r"^Device 0: '(?P<title>[^']{1,60})'", memory="pinned"),
    _tool("aomp's tests", rf"^\s*{_RATE} GBytes/sec",
          r"Time [\d.]+ for copy (?P<way>host to device|device to host)|info: copy (?P<info>Host2Device|Device2Host)|"
          r"for copy to device (?P<size>\d{1,15}) bytes"),
    _tool("ze_bandwidth", rf"\[Device +(?P<gpu>\d{{1,3}}) +(?P<size>\d{{1,15}})\]: +BW = +{_RATE} GBPS",
          r"^(?P<way>HOST-TO-DEVICE|DEVICE-TO-HOST|BIDIRECTIONAL) ", memory="pinned", engine="copy engine"),
    _tool("ze_peer", rf"BW \[GBPS\]: +(?P<count>\d{{1,6}}) +(?P<scale>[KM]?B): +{_RATE}",
          r"Bandwidth (?P<pull>Read|Write) : Device\( (?P<src>\d{1,3}) \)(?P<arrow><-|->|<->)"
          r"Device\( (?P<dst>\d{1,3}) \)"),
    _tool("memtest_vulkan", rf"(?P<way>written|checked): *[\d.]+GB *{_RATE}GB/sec",
          r"test of \d+: Bus=\S+ DevId=\S+ +\d+GB (?P<title>\S.{0,60})", unit=GIB),
)  # fmt: skip


def is_text(lines: Sequence[str]) -> bool:
    """Whether a line holds a rate of one of these tools."""
    return any(
        tool.line.search(line) for line in lines if "B" in line or "_by_" in line or "gdr_" in line for tool in _TOOLS
    )


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The best rate of each copy and size: tools and users repeat a test; FormatError with the line of no figure."""
    best: dict[tuple[object, ...], Observation] = {}
    titles: dict[str, str] = {}
    for tool in _TOOLS:
        for row in _rows(tool, lines, file, titles):
            key = (row.scenario, row.flow, row.metric, *row.how.items(), *row.settings.items())
            if key not in best or (row.value or 0.0) > (best[key].value or 0.0):
                best[key] = row
        check_rows(list(best.values()), Location(file, len(lines)))
    tools = ", ".join(dict.fromkeys(row.how["tool"] for row in best.values()))
    return ImportedResults(tools, tuple(best.values()), posted=PostedFacts(titles))


def _rows(tool: _LineTool, lines: Sequence[str], file: str, titles: dict[str, str]) -> Iterator[Observation]:
    """The rates of one tool, each with what the lines above it say."""
    known: dict[str, str] = {}
    program, found = "", False
    named: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if match := _PROGRAM.match(line):
            program = match["program"]
        if tool.context is not None and (match := tool.context.search(line)):
            says = {key: value for key, value in match.groupdict().items() if value is not None}
            if "title" in says:
                named[f"gpu{int(says.pop('gpu', '0'))}"] = says.pop("title").strip()
            if "selected" in says:
                says["gpu"] = says.pop("selected")
            if "info" in says:
                says["way"] = says.pop("info")
            if "way" in says:
                known.pop("size", None)  # of the copy before
            known |= says
        for match in tool.line.finditer(line):
            says = known | {key: value for key, value in match.groupdict().items() if value is not None}
            row = _row(tool, says, program, Location(file, number))
            if row is not None:
                found = True
                yield row
    if found:
        titles |= named


def _row(tool: _LineTool, says: Mapping[str, str], program: str, at: Location) -> Observation | None:
    """The rate of a line; None where nothing says what moved."""
    kind = _peers(says) if "src" in says else _host_copy(tool, says)
    if kind is None:
        return None
    within = kind.path == "GPU memory"
    engine = {"sm": "SM", "dma": "copy engine"}.get(says.get("by", ""), tool.engine)
    how = {"engine": engine, "p2p": "on" if kind.path == "peer" else ""}
    if not within and kind.path != "peer":
        how |= {"host memory": says.get("memory", tool.memory).lower()}
    settings = {}
    if size := _size(says):
        settings["bytes"] = size
    name = program if tool.name.startswith("aomp") and program else tool.name
    scenario = f"{name}, {says['way'].replace('  ', ' ')}" if within and "way" in says else name
    rate = figure(says["rate"], at) * tool.unit / 1e9 if "rate" in says else _rate_of_time(size, figure(says["us"], at))
    return observation(tool.name, scenario, kind, rate, how, settings)


def _rate_of_time(size: int, microseconds: float) -> float | None:
    """The rate in GB/s of a copy that took so long; None for no time at all."""
    return size / microseconds / 1e3 if microseconds else None


def _host_copy(tool: _LineTool, says: Mapping[str, str]) -> ToolValue | None:
    """A copy between host memory and a GPU, or of kernels within its memory."""
    gpu = f"gpu{next((int(says[key]) for key in ('gpu', 'from', 'both', 'also') if key in says), 0)}"
    host = f"host0:{says['node']}" if "node" in says else "host0"
    way = says.get("way", "gpu_to_cpu" if "from" in says else "BIDIRECTIONAL" if {"both", "also"} & set(says) else "")
    if not way:
        return None
    if _WITHIN.match(way):
        return ToolValue(f"{gpu}->{gpu}", "", path="GPU memory")
    to, back = f"{host}->{gpu}", f"{gpu}->{host}"
    if way == "BIDIRECTIONAL":
        return ToolValue(f"{to}, {back}", f"{to}, {back}", "total", path="host to device, device to host")
    flow = to if _TO_GPU.match(way) else back
    return ToolValue(flow, flow, path="host to device" if flow == to else "device to host")


def _peers(says: Mapping[str, str]) -> ToolValue:
    """A copy between two GPUs: the first writes to the second or, where it pulls, reads from it."""
    a, b = f"gpu{int(says['src'])}", f"gpu{int(says['dst'])}"
    if a == b:
        note = "payload counted once, in contrast to what the memory moves"
        return ToolValue(f"{a}->{a}", "", path="GPU memory", note=note)
    if says.get("arrow") == "<->" or "ways" in says:
        return ToolValue(f"{a}->{b}, {b}->{a}", f"{a}->{b}, {b}->{a}", "total", path="peer")
    flow = f"{b}->{a}" if says.get("arrow") == "<-" else f"{a}->{b}"
    reads = says.get("pull", "").lower() == "read"
    return ToolValue(flow, f"{flow} read" if reads else flow, path="peer")


def _size(says: Mapping[str, str]) -> int:
    """The bytes of a copy; 0 where no line says it."""
    if "mib" in says:
        return int(says["mib"]) << 20
    if "count" in says:
        return int(says["count"]) * _SIZES[says["scale"]]
    return int(says.get("size", "0"))
