"""qperf and netperf: rates and latencies between two hosts. qperf's GB is 1e9 bytes, netperf's megabits are 1e6.

Sources: the manual pages of both tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, observation
from lanewise.results.observation import Observation

_TEST = re.compile(r"((?:tcp|udp|sctp|sdp|rc|uc|ud|xrc|ver)_[a-z0-9_]{2,30}):$")
_QPERF = re.compile(r"\s{1,8}(bw|recv_bw|latency) {1,12}= {1,6}(\d[\d.,]{0,14}) ([KMG]?B/sec|[KMG]?b/sec|ns|us|ms)")
_NETPERF_HEAD = re.compile(r"(MIGRATED )?((?:TCP|UDP)_(?:STREAM|MAERTS|SENDFILE)) TEST from ")
_NETPERF = re.compile(r"\s*\d{1,9} {1,8}\d{1,9} {1,8}\d{1,9} {1,8}\d[\d.]{0,8} {1,8}(\d[\d.]{0,12})\s*$")
_UNITS = {"B/sec": 1.0, "b/sec": 0.125}
_POWERS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_TIMES = {"ns": 1e-3, "us": 1.0, "ms": 1e3}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold results of qperf or netperf."""
    tests = any(_TEST.match(line.strip()) for line in lines) and any(map(_QPERF.match, lines))
    return tests or any("TEST from" in line and _NETPERF_HEAD.match(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """A row for each test; FormatError with the line of a figure that is none."""
    rows = (*_qperf(lines, file), *_netperf(lines, file))
    return ImportedResults(", ".join(dict.fromkeys(row.how["tool"] for row in rows)), rows)


def _qperf(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """One row a test: what the receiver got where both are shown, or the latency."""
    test = ""
    found: dict[str, Observation] = {}
    for number, line in enumerate(lines, 1):
        if match := _TEST.match(line.strip()):
            test = match[1]
        elif test and (match := _QPERF.match(line)):
            value, unit = figure(match[2].replace(",", ""), Location(file, number)), match[3]
            if unit in _TIMES:
                kind = ToolValue("host0->host1", "host0->host1", "latency_mean", "us", "network")
                found[test] = observation("qperf", test, kind, value * _TIMES[unit], {}, {})
            else:
                power, base = unit[:-5], unit[-5:]
                kind = ToolValue("host0->host1", "host0->host1", path="network")
                rate = value * _POWERS[power] * _UNITS[base] / 1e9
                found[test] = observation("qperf", test, kind, rate, {}, {})
    yield from found.values()


def _netperf(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """The throughput in 1e6 bits/s, the last column of the only line of figures of a stream test."""
    test = ""
    for number, line in enumerate(lines, 1):
        if match := _NETPERF_HEAD.match(line):
            test = match[2]
        elif test and (match := _NETPERF.match(line)):
            kind = ToolValue("host0->host1", "host0->host1", path="network")
            rate = figure(match[1], Location(file, number)) * 1e6 / 8 / 1e9
            yield observation("netperf", test, kind, rate, {}, {})
            test = ""
