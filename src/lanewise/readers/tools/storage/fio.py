"""fio's JSON (json and json+, versions 2 and 3): rates, I/Os per second and completion latencies of each job.

fio's bw is KiB/s, bw_bytes B/s; clat_ns is nanoseconds, the clat of version 2 microseconds. Source: fio's HOWTO.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lanewise import late_re as re
from lanewise import units
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, observation
from lanewise.results.observation import Observation

_SIZE = re.compile(r"(\d{1,15})([kmg]?)i?b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 10, "m": 20, "g": 30}
_PERCENTILES = {"50.000000": "latency_p50", "99.000000": "latency_p99", "99.900000": "latency_p99.9"}


def is_json(data: Any) -> bool:
    """Whether a JSON object is fio's."""
    return isinstance(data, dict) and "fio version" in data


def read_json(data: Mapping[str, Any], file: str) -> ImportedResults:
    """Every job, and the total of each group of several; FormatError that names what is missing."""
    tool = str(data["fio version"]).replace("-", " ", 1)
    common = _mapping(data.get("global options"))
    jobs = data.get("jobs", data.get("client_stats"))
    if not isinstance(jobs, list) or not jobs:
        hint = "let fio finish, or give the whole file"
        raise FormatError("fio's JSON without jobs", location=Location(file), hint=hint)
    rows: list[Observation] = []
    notes: list[str] = []
    groups: dict[str, list[_Job]] = {}
    for entry in jobs:
        job = _Job(tool, entry, common, file)
        if job.data.get("error"):
            notes.append(f"{file}: fio's job {job.name} ended with error {job.data['error']}")
        rows += job.observations()
        groups.setdefault(str(job.data.get("groupid", 0)), []).append(job)
    for number, members in groups.items():
        if len(members) > 1:
            rows += _total(tool, number, members)
    return ImportedResults(tool, tuple(rows), notes=tuple(notes))


class _Job:
    """One entry of fio's list of jobs: a job, or a group that fio summed up itself."""

    def __init__(self, tool: str, data: Any, common: Mapping[str, Any], file: str) -> None:
        if not isinstance(data, dict) or "jobname" not in data:
            cause = "fio's JSON has a job without a name"
            raise FormatError(cause, location=Location(file), hint="give the whole file")
        self.tool = tool
        self.file = file
        self.data = data
        self.name = str(data["jobname"])
        self.options: Mapping[str, Any] = {**common, **_mapping(data.get("job options"))}
        parts = {direction: data.get(direction) for direction in ("read", "write")}
        # As far as any bytes moved.
        self.directions: Mapping[str, Mapping[str, Any]] = {
            direction: part
            for direction, part in parts.items()
            if isinstance(part, dict) and part.get("io_bytes", part.get("io_kbytes", 0))
        }

    def observations(self) -> Iterator[Observation]:
        """Rate, I/Os per second and percentiles of each direction."""
        flows = ", ".join(map(self.flow, self.directions))
        for direction, part in self.directions.items():
            settings = self.settings(direction)
            for metric, unit, value in self.figures(part):
                cell = ToolValue(self.flow(direction), flows, metric, unit, "storage")
                yield observation(self.tool, self.name, cell, value, self.how(), settings)

    def figures(self, part: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
        """Metric, unit and value of what one direction reports."""
        rate = self.number(part, "bw_bytes") if "bw_bytes" in part else self.number(part, "bw") * 1024
        yield "goodput", "GB/s", rate / 1e9
        if "iops" in part:
            yield "iops", "1/s", self.number(part, "iops")
        for key, scale in (("clat_ns", 1e-3), ("clat", 1.0)):
            latencies = part.get(key)
            percentiles = latencies.get("percentile") if isinstance(latencies, dict) else None
            for name, metric in _PERCENTILES.items():
                if isinstance(percentiles, dict) and name in percentiles:
                    yield metric, "us", self.number(percentiles, name) * scale

    def number(self, part: Mapping[str, Any], key: str) -> float:
        value = part.get(key, 0)
        hint = "give the file as fio wrote it"
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            cause = f"{key} of fio's job {self.name} is not a number"
            raise FormatError(cause, location=Location(self.file), hint=hint)
        try:
            return figure(value, Location(self.file))
        except FormatError:
            cause = f"{key} of fio's job {self.name} is negative or too large"
            raise FormatError(cause, location=Location(self.file), hint=hint) from None

    def flow(self, direction: str) -> str:
        """The file or device by its base name, the job's name where there are several."""
        path = str(self.options.get("filename", ""))
        base = path.rstrip("/").rsplit("/", 1)[-1] if path and ":" not in path else self.name
        name = re.sub(r"[^\w.\-]", "_", base)
        return f"{name}->host0" if direction == "read" else f"host0->{name}"

    def settings(self, direction: str) -> dict[str, int]:
        """Bytes of an I/O, queue depth and number of threads, as far as the options say."""
        sizes = str(self.options.get("bs", self.options.get("blocksize", "4k"))).split(",")
        size = _SIZE.fullmatch(sizes[min(("read", "write").index(direction), len(sizes) - 1)].strip())
        several = {"bssplit", "bsrange", "blocksize_range"} & self.options.keys()
        settings = {"bytes": int(size[1]) << _POWERS[size[2].lower()]} if size and not several else {}
        for name, option in (("depth", "iodepth"), ("threads", "numjobs")):
            settings[name] = units.whole(str(self.options.get(option))) or 1
        return settings

    def how(self) -> dict[str, str]:
        direct = str(self.options.get("direct", "0")) not in ("0", "")
        engine = str(self.options.get("ioengine", ""))
        pattern = str(self.options.get("rw", self.options.get("readwrite", "")))
        return {"mode": "direct" if direct else "cached", "engine": engine, "pattern": pattern}


def _mapping(data: object) -> Mapping[str, Any]:
    return data if isinstance(data, dict) else {}


def _total(tool: str, number: str, members: Sequence[_Job]) -> Iterator[Observation]:
    """All bytes of a group's jobs over the longest of their runs, as fio's own group line counts."""
    for direction in ("read", "write"):
        parts = [(job, job.directions[direction]) for job in members if direction in job.directions]
        seconds = max((job.number(part, "runtime") for job, part in parts), default=0.0) / 1e3
        if len(parts) < 2 or seconds <= 0:
            continue
        moved = sum(job.number(part, "io_bytes") for job, part in parts)
        flows = ", ".join(dict.fromkeys(job.flow(direction) for job, _ in parts))
        cell = ToolValue(flows, flows, "total", "GB/s", "storage", "all bytes of the group over its longest job")
        yield observation(tool, f"group {number} {direction}", cell, moved / seconds / 1e9, parts[0][0].how(), {})
