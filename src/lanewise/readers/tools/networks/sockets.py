"""qperf, netperf, sockperf and nuttcp: rates and latencies between two hosts. A GB is 1e9 bytes, a megabit 1e6 bits.

Sources: the manual pages of the tools; sockperf's latency is half a round trip (its README, "ping-pong").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure, grouped_figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, observation
from lanewise.readers.tools.repeated_tables import labels_above, told_apart
from lanewise.results.observation import Observation

_TEST = re.compile(r"((?:tcp|udp|sctp|sdp|rc|uc|ud|xrc|ver)_[a-z0-9_]{2,30}):$")
_QPERF = re.compile(r"\s{0,8}(bw|recv_bw|latency)\s{1,12}=\s{1,16}(\d[\d.,]{0,14}) ([KMG]?B/sec|[KMG]?b/sec|ns|us|ms)")
_NETPERF_HEAD = re.compile(r"(MIGRATED )?((?:TCP|UDP)_(?:STREAM|MAERTS|SENDFILE)) TEST from ")
_NETPERF = re.compile(r"\s*\d{1,9}\s{1,8}\d{1,9}\s{1,8}\d{1,9}\s{1,8}\d[\d.]{0,8}\s{1,8}(\d[\d.]{0,12})\s*$")
# One sender's result: '337.0 MB /   3.01 sec =  937.9 Mbps 2 %TX 2 %RX 0 retrans 0.25 msRTT'.
_NUTTCP = re.compile(
    r"\s*\d[\d.]{0,14} MB /\s{1,16}\d[\d.]{0,8} sec =\s{1,16}(\d[\d.]{0,14}) Mbps .{0,30}?%RX"
    r"(?: (\d{1,9}) retrans)?(?: (\d[\d.]{0,8}) msRTT)?"
)
_SOCKPERF = re.compile(r"\s*(?:sockperf: )?Summary: (?:Round trip|Latency) is (\d[\d.]{0,14}) usec")
_SOCKPERF_RANK = re.compile(r"\s*(?:sockperf: )?---> percentile (50|99)\.0{1,3} =\s{1,16}(\d[\d.]{0,14})\s*$")
_SOCKPERF_RUN = re.compile(r"\bsockperf (?:ping-pong|pp|under-load|ul|playback)\b|sockperf: == version ")
# The size of each message as the command or the words above say it.
_SIZE = re.compile(
    r"(?:qperf|sockperf)\s.{0,120}?\s-m (\d{1,7})([KM]?)\b|\bmessages? of (\d{1,7}) ?([KM]?)i?(?:B\b|bytes?)|"
    r"\b(\d{1,7})[ -]?([KM]?)i?(?:B|bytes?)[ -]messages?\b"
)
_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20}
_UNITS = {"B/sec": 1.0, "b/sec": 0.125}
_POWERS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_TIMES = {"ns": 1e-3, "us": 1.0, "ms": 1e3}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold results of one of these tools."""
    tests = any(_TEST.match(line.strip()) for line in lines) and any(map(_QPERF.match, lines))
    others = any(("Mbps" in line and _NUTTCP.match(line)) or _SOCKPERF.match(line) for line in lines)
    return tests or others or any("TEST from" in line and _NETPERF_HEAD.match(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """A row for each test; FormatError with the line of a figure that is none."""
    sizes = {_bytes(match) for line in lines for match in _SIZE.finditer(line)}
    settings = {"bytes": sizes.pop()} if len(sizes) == 1 else {}
    rows = (*_qperf(lines, file, settings), *_netperf(lines, file), *_nuttcp(lines, file),
            *_sockperf(lines, file, settings))  # fmt: skip
    return ImportedResults(", ".join(dict.fromkeys(row.how["tool"] for row in rows)), rows)


def _bytes(match: re.Match[str]) -> int:
    size, scale = [group for group in match.groups() if group is not None]
    return int(size) * _SCALE[scale]


def _nuttcp(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """The receiver's rate, with what the sender's kernel says of the connection."""
    for number, line in enumerate(lines, 1):
        if match := _NUTTCP.match(line):
            kind = ToolValue("host0->host1", "host0->host1", path="network")
            rate = figure(match[1], Location(file, number)) * 1e6 / 8 / 1e9
            how = {"round trip": f"{match[3]} ms" if match[3] else ""}
            yield observation("nuttcp", "nuttcp", kind, rate, how, {})


def _sockperf(lines: Sequence[str], file: str, settings: dict[str, int]) -> Iterator[Observation]:
    """The mean of one way, half a round trip, and its median and 99th percentile, of each run."""
    runs: list[tuple[list[str], list[Observation]]] = [([], [])]
    for number, line in enumerate(lines, 1):
        if _SOCKPERF_RUN.search(line) and (runs[-1][1] or not runs[-1][0]):
            runs.append((labels_above(lines, number - 1), []))
        mean, rank = _SOCKPERF.match(line), _SOCKPERF_RANK.match(line)
        if mean or rank:
            metric = "latency_mean" if mean else f"latency_p{rank[1]}" if rank else ""
            text = mean[1] if mean else rank[2] if rank else ""
            kind = ToolValue("host0->host1", "host0->host1", metric, "us", "network")
            row = observation("sockperf", "sockperf", kind, figure(text, Location(file, number)), {}, settings)
            runs[-1][1].append(row)
    yield from told_apart([run for run in runs if run[1]])


def _qperf(lines: Sequence[str], file: str, settings: dict[str, int]) -> Iterator[Observation]:
    """One row a test of each run: what the receiver got where both are shown, or the latency."""
    test = ""
    runs: list[tuple[list[str], dict[str, Observation]]] = [(labels_above(lines, _first_test(lines)), {})]
    for number, line in enumerate(lines, 1):
        rows = runs[-1][1]
        if match := _TEST.match(line.strip()):
            test = match[1]
            if test in rows:  # a second run
                rows = {}
                runs.append((labels_above(lines, number - 1), rows))
        elif test and (match := _QPERF.match(line)):
            value, unit = grouped_figure(match[2], Location(file, number)), match[3]
            if unit in _TIMES:
                kind = ToolValue("host0->host1", "host0->host1", "latency_mean", "us", "network")
                rows[test] = observation("qperf", test, kind, value * _TIMES[unit], {}, settings)
            else:
                power, base = unit[:-5], unit[-5:]
                kind = ToolValue("host0->host1", "host0->host1", path="network")
                rate = value * _POWERS[power] * _UNITS[base] / 1e9
                rows[test] = observation("qperf", test, kind, rate, {}, settings)
    yield from told_apart([(labels, list(rows.values())) for labels, rows in runs])


def _first_test(lines: Sequence[str]) -> int:
    return next((at for at, line in enumerate(lines) if _TEST.match(line.strip())), 0)


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
