"""fio's normal output, of versions 2 and 3: rate, I/Os per second and completion latencies of each job or group.

Version 3 gives binary units (MiB/s) and decimal ones in brackets; the MB/s of version 2 are 2^20 bytes. The file is
named by a command line or the list of disks alone. Source: fio's HOWTO, "Interpreting the output".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.readers.tools.commands import options_of, scaled
from lanewise.results.observation import Observation

_JOB = re.compile(
    r"(\S[^:]{0,80}): \(g=\d{1,6}\): rw=(\w{1,20}), bs=(?:\(R\) )?(\d{1,12})(?:\.0)?(B|KiB|MiB|[KkMm]?)B?-"
    r".{0,200}?ioengine=(\w{1,40}), iodepth=(\d{1,6})"
)
_RESULT = re.compile(r"(\S[^:]{0,80}): \(groupid=\d+, jobs=(\d{1,6})\): err=")
_SPEED = r"(\d[\d.]{0,12})([KMGT]?)(i?)(B|bit)/s(?: \(\d[\d.]{0,12}[KMGT]?(i?)(?:B|bit)/s\))?"
_RATE = re.compile(rf"\s*(read|write)\s*: .{{0,60}}?\b(?:BW|bw)={_SPEED}")
# The summary of a group, which is often all that is posted.
_GROUP = re.compile(rf"\s*(READ|WRITE): .{{0,40}}?(?:bw|aggrb)={_SPEED}")
_NO_NAME = re.compile(r"\W*$|\s*(?:READ|WRITE): |Run status group|Disk stats")
_IOPS = re.compile(r"(?:IOPS|iops)=(\d[\d.]{0,12})([kM]?)")
_UNIT = re.compile(r"\s*clat percentiles \((nsec|usec|msec)\)")
_PERCENTILE = re.compile(r"(?<![\d.])(50|99|99\.9)(?:\.00|0)?th=\[\s{0,12}(\d{1,12})\]")
_FILE = re.compile(r"filename[= ](?:/\S*/)?([\w.-]{1,60})")
_DISK = re.compile(r"\s*(\w{2,20}): ios=\d")
_VERSION = re.compile(r"\s*fio-\d[\w.-]{0,30}\s*$")
# Rates of each half second of a job.
_SAMPLES = re.compile(
    r"\s*bw \(.{3,12}\): .{0,60}avg=\s{0,12}(\d{1,12}(?:\.\d{1,6})?), stdev=\s{0,12}(\d{1,12}(?:\.\d{1,6})?), "
    r"samples=(\d{1,9})"
)
# How near samples are to each other that no drive but a limiter gives: those of drives differ by per cents.
_STEADY, _LEAST_SAMPLES = 0.002, 4
# How many reads, writes, trims and syncs a job issued.
_ISSUED = re.compile(r"\s*issued rwts?\s?: total=(\d{1,12}),(\d{1,12}),\d{1,12},(\d{1,12})")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SIZES = {"B": 1, "": 1, "K": 1 << 10, "M": 1 << 20}
_TIMES = {"nsec": 1e-3, "usec": 1.0, "msec": 1e3}
_METRICS = {"50": "latency_p50", "99": "latency_p99", "99.9": "latency_p99.9"}


@dataclass(slots=True)
class _TextJob:
    """A job as fio announces it: size of an I/O, depth, engine; and how many jobs a result is of."""

    name: str
    size: int = 0
    depth: int = 1
    how: dict[str, str] = field(default_factory=dict)
    threads: int = 1


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold results of fio as it prints them."""
    results = any("(groupid=" in line and _RESULT.search(line) for line in lines)
    rates = len(_announced(lines)) == 1 and any(map(_RATE.match, lines))
    return results or rates or any("bw=" in line and _GROUP.match(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Every job or group with a result; FormatError with the line of a figure that is none."""
    jobs: dict[str, _TextJob] = {}
    rows: list[Observation] = []
    device, mode = _device(lines), _mode(lines)
    tool = next((line.strip().replace("-", " ", 1) for line in lines if _VERSION.match(line)), "fio")
    # Excerpts often lack the line that a result begins with; of a single job it is not needed.
    announced = _announced(lines)
    alone = next(iter(announced)) if len(announced) == 1 else ""
    job, flow, scale = _TextJob(""), "", 1.0
    for number, line in enumerate(lines, 1):
        at = Location(file, number)
        if match := _JOB.match(line.strip()):
            size = int(match[3]) * _SIZES[(match[4] or "").upper()[:1]]
            jobs.setdefault(
                match[1], _TextJob(match[1], size, int(match[6]), {"engine": match[5], "pattern": match[2]})
            )
            job = jobs[alone] if alone else job
        elif match := _RESULT.match(line.strip()):
            job = jobs.get(match[1], _TextJob(match[1]))
            job.threads, flow = int(match[2]), ""
        elif job.name and (match := _RATE.match(line)):
            name = device or re.sub(r"[^\w.\-]", "_", job.name)
            flow = f"{name}->host0" if match[1] == "read" else f"host0->{name}"
            rows += _rates(tool, job, flow, line, match, at, mode)
        elif match := _UNIT.match(line):
            scale = _TIMES[match[1]]
        elif flow and "th=[" in line:
            for match in _PERCENTILE.finditer(line):
                rows.append(_row(tool, job, flow, _METRICS[match[1]], "us", figure(match[2], at) * scale, mode))
    rows = rows or list(_groups(lines, tool, device, mode, file))
    if asked := _asked(lines, mode):
        rows = [replace(row, how={**row.how, **asked}) for row in rows]
    check_rows(rows, Location(file))
    return ImportedResults(tool, tuple(rows))


def _asked(lines: Sequence[str], mode: str) -> dict[str, str]:
    """What the only command and the only job of a text say of syncs, a rate and whether libaio passes the cache by."""
    issued = [match for line in lines if (match := _ISSUED.match(line))]
    options = options_of(lines, "fio") if len(issued) == 1 else {}
    rate, sync = scaled(options.get("--rate", "").split(",")[0], 1024), options.get("--sync", "0")
    each = len(issued) == 1 and 0 < int(issued[0][2]) <= 2 * int(issued[0][3])
    samples = [match for line in lines if (match := _SAMPLES.match(line))]
    steady = len(samples) == 1 and int(samples[0][3]) >= _LEAST_SAMPLES
    steady = steady and scaled(samples[0][2], 1000) < _STEADY * scaled(samples[0][1], 1000)
    found = {
        "samples": "all alike" if steady else "",
        "asked for": f"{rate / 1e6:g} MB/s" if rate else "",
        "sync": "each write waits for the drive (fsync)" if each else "" if sync in ("0", "none") else f"sync={sync}",
        "cache": "not passed by" if options and mode != "direct" and "--direct" not in options else "",
    }
    return {key: value for key, value in found.items() if value}


def _groups(lines: Sequence[str], tool: str, device: str, mode: str, file: str) -> Iterator[Observation]:
    """The summaries of groups where no job is shown, each named by the line above it."""
    name = ""
    for number, line in enumerate(lines, 1):
        if match := _GROUP.match(line):
            end = device or "drive"
            flow = f"{end}->host0" if match[1] == "READ" else f"host0->{end}"
            cell = ToolValue(flow, flow, "goodput", "GB/s", "storage")
            rate = _speed(match, Location(file, number)) / 1e9
            yield observation(tool, name or "fio", cell, rate, {"mode": mode}, {})
        elif not _NO_NAME.match(line):
            name = line.strip(" #*:`>-")[:60]


def _rates(
    tool: str, job: _TextJob, flow: str, line: str, match: re.Match[str], at: Location, mode: str
) -> Iterator[Observation]:  # fmt: skip
    yield _row(tool, job, flow, "goodput", "GB/s", _speed(match, at) / 1e9, mode)
    if iops := _IOPS.search(line):
        yield _row(tool, job, flow, "iops", "1/s", figure(iops[1], at) * {"": 1.0, "k": 1e3, "M": 1e6}[iops[2]], mode)


def _speed(match: re.Match[str], at: Location) -> float:
    """The rate of a line in B/s, by its first figure.

    Units without the i are binary in version 2; in version 3 they are decimal where the brackets have binary ones
    (kb_base=1000), and bits with unit_base=1.
    """
    base = 1000.0 if match[6] and not match[4] else 1024.0
    return figure(match[2], at) * base ** _POWERS[match[3]] / (8 if match[5] == "bit" else 1)


def _row(tool: str, job: _TextJob, flow: str, metric: str, unit: str, value: float, mode: str) -> Observation:
    settings = {"depth": job.depth, "threads": job.threads, **({"bytes": job.size} if job.size else {})}
    cell = ToolValue(flow, flow, metric, unit, "storage")
    return observation(tool, job.name, cell, value, {**job.how, "mode": mode}, settings)


def _announced(lines: Sequence[str]) -> set[str]:
    """The names of the jobs that fio announces."""
    return {match[1] for line in lines if "(g=" in line and (match := _JOB.match(line.strip()))}


def _device(lines: Sequence[str]) -> str:
    """The file or disk that the text names, if it is one."""
    files = {match[1] for line in lines for match in _FILE.finditer(line)}
    disks = {match[1] for line in lines if (match := _DISK.match(line))}
    return next(iter(files), "") if len(files) == 1 else next(iter(disks), "") if len(disks) == 1 and not files else ""


def _mode(lines: Sequence[str]) -> str:
    """Whether a command line or job file says that the page cache was passed by."""
    said = {match[1] for line in lines if (match := re.search(r"\bdirect[= ]([01])\b", line))}
    return {"1": "direct", "0": "cached"}.get(next(iter(said)), "") if len(said) == 1 else ""
