"""Tables of SHOC's ResultDatabase, which HIP's samples print too, and of RRZE's gpu-stream. Their GB is 1e9 bytes.

Sources: vetter/shoc (src/common/ResultDatabase.cpp: test, attributes, unit, median, mean, deviation, least, most),
ROCm/HIP (samples/1_Utils/hipBusBandwidth: `kB` is 1024 B; pinned, unpinned or registered memory; p2p_uni, p2p_bi),
RRZE-HPC/gpu-benches (gpu-stream/main.cu: streams of eight bytes an element; only rows of many threads fill a GPU).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

TOOL = "hipBusBandwidth"
STREAM = "gpu-stream"
_ROW = re.compile(
    r"\s*(?P<test>[A-Za-z][\w()]{2,40})\s+(?P<size>\+?\d{1,12} ?(?:By|kB|MB|B)?)\s+(?P<unit>[GM]B/s(?:ec)?)\s+"
    r"(?P<median>\d[\d.]{0,15}(?:e[+-]?\d{1,2})?)(?:\s+[\d.e+-]{1,20}){2,4}"
)
_TEST = re.compile(
    r"(?P<to>H2D_Bandwidth|DownloadSpeed)|(?P<back>D2H_Bandwidth|ReadbackSpeed)|(?P<both>Bidir_?Bandwidth)|"
    r"p2p_(?P<ways>uni|bi)_gpu(?P<src>\d{1,3})_gpu(?P<dst>\d{1,3})", re.IGNORECASE,
)  # fmt: skip
_MEMORY = {"pinned": "pinned", "unpinned": "pageable", "registered": "pinned"}
_POWERS = {"": 1, "B": 1, "By": 1, "kB": 1 << 10, "MB": 1 << 20}
_SCALES = {"G": 1.0, "M": 1e-3}
_DEVICE = re.compile(r"^Device:\s?(\S.{0,80}?)\s+Mem=[\d.]+GB")
_FOR = re.compile(r"^\s*for gpu#(\d{1,3}) (\S.{0,80})")
_NO_PEERS = re.compile(r"peer2peer not supported : (.{1,200})")
_STREAM_HEAD = re.compile(r"\s*block\w{0,20}\s.{0,120}\bthreads\b.{0,200}\|\s+(\S.*)")
_STREAM_ROW = re.compile(r"\s*\d{1,5}\s+\d{1,9}\s.*%\s*\|\s*GB/s:\s*([\d.\s]{1,200})$")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold rates of such a table."""
    hip = any("B/s" in line and (match := _ROW.match(line)) and _TEST.match(match["test"]) for line in lines)
    return hip or (any(_STREAM_HEAD.match(line) for line in lines) and any(_STREAM_ROW.match(line) for line in lines))


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The median of each size and direction, and the best of each kernel of gpu-stream."""
    titles: dict[str, str] = {}
    peers: dict[tuple[str, str], bool] = {}
    gpu = 0
    for line in lines:
        if match := _DEVICE.match(line):
            titles["gpu0"] = match[1]
        elif match := _FOR.match(line):
            gpu = int(match[1])
            titles[f"gpu{gpu}"] = match[2].strip()
        elif match := _NO_PEERS.search(line):
            peers |= {(f"gpu{gpu}", f"gpu{int(other)}"): False for other in re.findall(r"gpu#(\d{1,3})\b", match[1])}
    rows = [*_bus(lines, file, peers), *_streams(lines, file)]
    check_rows(rows, Location(file, len(lines)))
    tools = ", ".join(dict.fromkeys(row.how["tool"] for row in rows))
    return ImportedResults(tools, tuple(rows), peers, posted=PostedFacts(titles))


def _bus(lines: Sequence[str], file: str, peers: dict[tuple[str, str], bool]) -> Iterator[Observation]:
    for number, line in enumerate(lines, 1):
        match = _ROW.match(line)
        test = _TEST.match(match["test"]) if match else None
        if match is None or test is None:
            continue
        kind = _kind(test, peers)
        memory = next((_MEMORY[word] for word in match["test"].lower().split("_") if word in _MEMORY), "")
        memory = memory or ("pinned" if test[0].endswith("Speed") else "")  # SHOC's, unless told otherwise
        how = {"host memory": memory, "p2p": "" if not kind.path.startswith("peer") else _p2p(kind)}
        value = figure(match["median"], Location(file, number)) * _SCALES[match["unit"][0]]
        yield observation(TOOL, test[0], kind, value, how, {"bytes": _size(match["size"])})


def _kind(test: re.Match[str], peers: dict[tuple[str, str], bool]) -> ToolValue:
    """What a test of that name copies."""
    if test["ways"]:
        a, b = f"gpu{int(test['src'])}", f"gpu{int(test['dst'])}"
        path = "peer" if peers.get((a, b), True) else "peer, staged"
        both = test["ways"].lower() == "bi"
        flow = f"{a}->{b}, {b}->{a}" if both else f"{a}->{b}"
        return ToolValue(flow, flow, "total" if both else "goodput", path=path)
    if test["both"]:
        flow = "host0->gpu0, gpu0->host0"
        return ToolValue(flow, flow, "total", path="host to device, device to host")
    flow = "host0->gpu0" if test["to"] else "gpu0->host0"
    return ToolValue(flow, flow, path="host to device" if test["to"] else "device to host")


def _p2p(kind: ToolValue) -> str:
    return "off" if kind.path == "peer, staged" else "on"


def _size(text: str) -> int:
    """'+064By' and '1kB' in bytes; SHOC's plain numbers are kB where they have a unit."""
    match = re.fullmatch(r"\+?(\d+) ?([A-Za-z]*)", text)
    return max(1, int(match[1]) * _POWERS.get(match[2], 1)) if match else 1


def _streams(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """The best rate of each kernel over all numbers of threads."""
    best: dict[str, float] = {}
    kernels: list[str] = []
    for number, line in enumerate(lines, 1):
        if head := _STREAM_HEAD.match(line):
            kernels = head[1].split()
        elif kernels and (match := _STREAM_ROW.match(line)):
            for kernel, word in zip(kernels, match[1].split(), strict=False):
                best[kernel] = max(best.get(kernel, 0.0), figure(word, Location(file, number)))
    for kernel, rate in best.items():
        kind = ToolValue("gpu0->gpu0", "", path="GPU memory", note="the best of all numbers of threads")
        yield observation(STREAM, kernel, kind, rate, {"engine": "SM"}, {})
