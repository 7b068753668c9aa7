"""What benchmarks of file systems and object storage print: elbencho's table of results, IOR's maxima, MinIO's warp,
Dbench's summary.

Sources: elbencho's help (rates up to when the first thread and when the last one finished; MiB is 2^20 bytes), IOR's
user guide (Max Write and Max Read in MiB/s of 2^20 bytes, over all its iterations), warp's README (averages over all
hosts and requests; MB of older versions is 1e6 bytes), Dbench's docker-entrypoint.sh (fio; 4 KiB for IOPS, 128 KiB for
BW, 1 MiB for sequential, requests in flight by its copies; MiB/s as fio gives it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import MIB, ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

_PHASE = re.compile(r"\s*(READ|WRITE|RWMIX\d{0,3})\s{2,20}\w")
_RATE = re.compile(r"\s*Throughput MiB/s\s*:\s*(?:\d[\d.]{0,12}\s+)?(?:### )?(\d[\d.]{0,12})\s*$")
_ANY_RATE = re.compile(r"(?:READ|WRITE)?\s*Throughput MiB/s\s*:\s*\d")
_COMMAND = re.compile(r"(?:^|[\s$#/`])elbencho (.{1,400})")
_OPTION = re.compile(r"(?:^|\s)(-b|--block|-t|--threads|--iodepth|--direct|--rand)(?:[ =](\d{1,9}[kKmMgG]?))?(?=\s|$)")
_PATH = re.compile(r"(?:^|\s)((?:/[\w.{}-]+){1,12}/?)(?=\s|$)")
_IOR = re.compile(r"Max (Write|Read):\s{1,12}(\d[\d.]{0,14}) MiB/sec")
_IOR_SIZE = re.compile(r"xfersize\s*[=:]\s*(\d[\d.]{0,9}) ?(bytes|[KMG]iB)")
_WARP = re.compile(r"~? ?Operation: (GET|PUT)\b(?:.*?Concurrency: (\d{1,6}))?")
_WARP_RATE = re.compile(r"\s*\* Average: (\d[\d.]{0,12}) ?(M|G)(i?)B/s")
_WARP_SIZE = re.compile(r"\bwarp (?:get|put|mixed) .{0,200}?-obj\.size[ =](\d{1,6})([KMG]?)i?B?", re.IGNORECASE)
_DBENCH = re.compile(
    r"(Random|Sequential) Read/Write(?: IOPS: \S{1,12}/\S{1,12}?\. BW)?: "
    r"([\d.]{1,12})([KMG])iB/s / ([\d.]{1,12})([KMG])iB/s"
)
_DBENCH_IOPS = re.compile(r"Random Read/Write IOPS: (\d[\d.]{0,9})(k?)/(\d[\d.]{0,9}?)(k?)\. BW")
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SETTINGS = {"-b": "bytes", "--block": "bytes", "-t": "threads", "--threads": "threads", "--iodepth": "depth"}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold rates of elbencho, IOR, warp or Dbench."""
    warp = any(_WARP.match(line.strip()) for line in lines) and any(map(_WARP_RATE.match, lines))
    return warp or any(
        _ANY_RATE.match(line.strip()) or _IOR.match(line.strip()) or _DBENCH.match(line.strip()) for line in lines
    )


def read_text(lines: list[str], file: str) -> ImportedResults:
    """A row for each phase; FormatError with the line of a figure that is none."""
    rows = (*_elbencho(lines, file), *_ior(lines, file), *_warp(lines, file), *_dbench(lines, file))
    check_rows(rows, Location(file, len(lines)))
    return ImportedResults(", ".join(dict.fromkeys(row.how["tool"] for row in rows)), rows)


def _elbencho(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """The rates over a whole phase, with the settings of the command above them."""
    phase, end = "", "storage"
    settings: dict[str, int] = {}
    how: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if match := _COMMAND.search(line):
            settings, how, end = _of_command(match[1])
        if match := _PHASE.match(line):
            phase = match[1]
        if phase in ("READ", "WRITE") and (match := _RATE.search(line)):
            flow = f"{end}->host0" if phase == "READ" else f"host0->{end}"
            rate = figure(match[1], Location(file, number)) * MIB / 1e9
            yield observation("elbencho", "elbencho", ToolValue(flow, flow, path="storage"), rate, how, settings)


def _of_command(text: str) -> tuple[dict[str, int], dict[str, str], str]:
    """Size, threads and depth of a command, whether it passes the page cache by, and the name of what it measures."""
    settings: dict[str, int] = {"depth": 1, "threads": 1}
    how = {"mode": "direct" if "--direct" in text else "cached", "pattern": "random" if "--rand" in text else ""}
    for option, value in _OPTION.findall(text):
        if (key := _SETTINGS.get(option)) and value:
            settings[key] = int(value.rstrip("kKmMgG")) * _SIZES.get(
                value[-1].upper() if value[-1].isalpha() else "", 1
            )
    paths = _PATH.findall(text)
    name = re.sub(r"[^\w.-]", "_", PurePosixPath(paths[-1]).name) if paths else ""
    if paths:
        how["folder"] = str(PurePosixPath(paths[-1]).parent)
    return settings, how, name or "storage"


def _ior(lines: Sequence[str], file: str) -> Iterator[Observation]:
    size = 0
    for number, line in enumerate(lines, 1):
        if match := _IOR_SIZE.search(line):
            size = int(float(match[1]) * _SIZES[match[2][0].upper() if match[2] != "bytes" else ""])
        if match := _IOR.match(line.strip()):
            flow = "storage->host0" if match[1] == "Read" else "host0->storage"
            rate = figure(match[2], Location(file, number)) * MIB / 1e9
            settings = {"bytes": size} if size else {}
            yield observation("IOR", "IOR", ToolValue(flow, flow, path="storage"), rate, {}, settings)


def _warp(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """The average of each kind of request to an object storage."""
    operation, size = "", 0
    settings: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if match := _WARP_SIZE.search(line):
            size = int(match[1]) * _SIZES[match[2].upper()]
        if match := _WARP.match(line.strip()):
            operation = match[1]
            settings = {"depth": int(match[2])} if match[2] else {}
        elif operation and (match := _WARP_RATE.match(line)):
            flow = "s3->host0" if operation == "GET" else "host0->s3"
            unit = (MIB if match[3] else 1e6) * (1 if match[2] == "M" else 1024 if match[3] else 1000)
            rate = figure(match[1], Location(file, number)) * unit / 1e9
            moved = {"bytes": size} if size else {}
            yield observation("warp", "warp", ToolValue(flow, flow, path="storage"), rate, {}, {**settings, **moved})
            operation = ""


def _dbench(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """Random and sequential rates of a volume, read and written, and its random requests a second as rates."""
    for number, line in enumerate(lines, 1):
        at = Location(file, number)
        if match := _DBENCH_IOPS.match(line.strip()):
            for flow, value, thousands in (
                ("volume->host0", *match.group(1, 2)),
                ("host0->volume", *match.group(3, 4)),
            ):
                rate = figure(value, at) * (1000 if thousands else 1) * 4096 / 1e9
                yield _of_volume(flow, rate, "random", 4096)
        if match := _DBENCH.match(line.strip()):
            size = 128 << 10 if match[1] == "Random" else 1 << 20
            for flow, value, unit in (("volume->host0", *match.group(2, 3)), ("host0->volume", *match.group(4, 5))):
                rate = figure(value, at) * _SIZES[unit] / 1e9
                yield _of_volume(flow, rate, match[1].lower(), size)


def _of_volume(flow: str, rate: float, pattern: str, size: int) -> Observation:
    kind = ToolValue(flow, flow, path="storage")
    return observation("Dbench", "Dbench", kind, rate, {"pattern": pattern}, {"bytes": size})
