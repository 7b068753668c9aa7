"""iperf and iperf3: the last line of a run, what the receiver got of one connection or of all. Gbits are 1e9 bits.

Source of what is read: the tools' own sources (github.com/esnet/iperf, sourceforge.net/projects/iperf2).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, observation
from lanewise.results.posted import PostedFacts, Statement

_LINE = re.compile(
    r"\[(?P<id>SUM|\s{0,4}\d{1,6})\](?:\[[RT]X-[CS]\])?\s{1,4}(?P<start>\d[\d.]{0,9})-\s?(?P<end>\d[\d.]{0,9}) {1,4}sec"
    r" {1,4}\d[\d.]{0,9} \w?Bytes {1,4}(?P<rate>\d[\d.]{0,12}) (?P<unit>[MG])bits/sec(?P<rest>.{0,60})"
)
# Segments (B) of packets of 1500 B. Of a path with 0.1 ms of delay a loss of 1e-3 leaves a connection 3.7 Gb/s:
# segment / delay * sqrt(1.5 / loss), Mathis et al., CCR 27(3), 1997.
_SEGMENT, _MANY_REPEATS = 1448, 1e-3
_GIGABYTES = {"M": 1e-3 / 8, "G": 1.0 / 8}  # a second


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold rates of iperf or iperf3."""
    return any("bits/sec" in line and _LINE.search(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The rate over the longest interval, of all connections where there is a sum, as the receiver saw it."""
    matches = [(number, match) for number, line in enumerate(lines, 1) if (match := _LINE.search(line))]
    lengths = [_seconds(match, Location(file, number)) for number, match in matches]
    longest = max(lengths)
    whole = [each for each, length in zip(matches, lengths, strict=True) if length >= 0.9 * longest]
    sums = [each for each in whole if each[1]["id"] == "SUM"]
    received = [each for each in sums or whole if "receiver" in each[1]["rest"]] or sums or whole
    connections = len({match["id"] for _, match in matches} - {"SUM"})
    tool = "iperf3" if any("iperf3" in line or "Retr" in line or "receiver" in line for line in lines) else "iperf"
    number, match = received[-1]
    rate = figure(match["rate"], Location(file, number)) * _GIGABYTES[match["unit"]]
    value = ToolValue("host0->host1", "host0->host1", unit="GB/s", path="network")
    row = observation(tool, tool, value, rate, {}, {"connections": connections})
    return ImportedResults(tool, (row,), posted=_repeats(sums or whole, file))


def _seconds(match: re.Match[str], at: Location) -> float:
    """The length of a line's interval; 0 where it ends before it starts."""
    return max(0.0, figure(match["end"], at) - figure(match["start"], at))


def _repeats(lines: Sequence[tuple[int, re.Match[str]]], file: str) -> PostedFacts:
    """How many segments the sender repeated, if that is more than one in a thousand of those sent."""
    for number, match in lines:
        repeats = re.match(r"\s{1,24}(\d{1,10})\s{1,24}sender", match["rest"])
        at = Location(file, number)
        sent = figure(match["rate"], at) * _GIGABYTES[match["unit"]] * 1e9 * _seconds(match, at)
        if repeats and int(repeats[1]) > _MANY_REPEATS * sent / _SEGMENT:
            return PostedFacts(statements=(Statement("lost packets", f"{repeats[1]} retransmits", f"{file}:{number}"),))
    return PostedFacts()
