"""SPDK's perf (spdk_nvme_perf): requests per second, rate and latency of each drive. Its MiB is 2^20 bytes.

The command line says size, depth and pattern (-o, -q, -w), the table does not.
Source: the tool's own sources (github.com/spdk/spdk, app/spdk_nvme_perf).
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import count, figure
from lanewise.readers.tool_results import MIB, ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "SPDK perf"
_HEAD = re.compile(r"Device Information\s*:\s+IOPS\s+(?:MiB|MB)/s\s+Average")
_ROW = re.compile(
    r"\s*(?P<device>\S.{0,120}?)\s+from core\s+\d{1,4}\s*:\s*(?P<iops>\d[\d.]{0,15})\s+(?P<rate>\d[\d.]{0,15})"
    r"\s+(?P<latency>\d[\d.]{0,15})\s"
)
_COMMAND = re.compile(r"(?:\b|_)perf\b.{0,300}\s-(?:[qow]\s|-io-)")
_OPTION = re.compile(r"\s-(?:([qow])|-io-(depth|size|pattern)=?)\s*(\w{1,12})")
_SHORT = {"depth": "q", "size": "o", "pattern": "w"}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a table of SPDK's perf."""
    return any("Device Information" in line and _HEAD.search(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Rate, requests per second and mean latency of each drive on each core; FormatError with the line."""
    rows: list[Observation] = []
    options: dict[str, str] = {}
    table = False
    for number, line in enumerate(lines, 1):
        if _COMMAND.search(line):
            options = {match[1] or _SHORT[match[2]]: match[3] for match in _OPTION.finditer(line)}
        if _HEAD.search(line):
            table = True
        elif table and (match := _ROW.match(line)):
            rows += _observations(match.groupdict(), options, Location(file, number))
            check_rows(rows, Location(file, number))
        elif line.lstrip().startswith("Total"):
            table = False
    return ImportedResults(TOOL, tuple(rows))


def _observations(fields: dict[str, str], options: dict[str, str], at: Location) -> list[Observation]:
    name = re.sub(r"[^\w.\-]+", "_", fields["device"]).strip("_")
    pattern = options.get("w", "")
    flow = f"host0->{name}" if "write" in pattern else f"{name}->host0"
    numbers = {"bytes": options.get("o", ""), "depth": options.get("q", "")}
    settings = {key: count(text, at) for key, text in numbers.items() if text.isdigit()}
    how = {"mode": "direct", "pattern": pattern, "engine": "SPDK"}
    values = (
        ("goodput", "GB/s", figure(fields["rate"], at) * MIB / 1e9), ("iops", "1/s", figure(fields["iops"], at)),
        ("latency_mean", "us", figure(fields["latency"], at)),
    )  # fmt: skip
    return [
        observation(TOOL, pattern or "perf", ToolValue(flow, flow, metric, unit, "storage"), value, how, settings)
        for metric, unit, value in values
    ]
