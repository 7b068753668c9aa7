"""iperf and iperf3: the last line of each run, what the receiver got of one connection or of all. Gbits are 1e9 bits.

Source of what is read: the tools' own sources (github.com/esnet/iperf, sourceforge.net/projects/iperf2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, merge, observation
from lanewise.readers.tools.commands import options_of, scaled
from lanewise.results.posted import PostedFacts, Statement

_LINE = re.compile(
    r"\[(?P<id>SUM|\s{0,4}\d{1,6})\](?:\[(?P<way>[RT]X)-[CS]\])?\s{1,16}(?P<start>\d[\d.]{0,9})-\s?"
    r"(?P<end>\d[\d.]{0,9})\s{1,16}sec\s{1,16}\d[\d.]{0,9} \w?Bytes\s{1,16}"
    r"(?P<rate>\d[\d.]{0,12}) (?P<unit>[KMGT]?(?:bits|Bytes))/sec(?P<rest>.{0,60})"
)
# Segments (B) of packets of 1500 B. Of a path with 0.1 ms of delay a loss of 1e-3 leaves a connection 3.7 Gb/s:
# segment / delay * sqrt(1.5 / loss), Mathis et al., CCR 27(3), 1997.
_SEGMENT, _MANY_REPEATS = 1448, 1e-3
# What a run begins with; a second heading stands above its summary.
_BEGINS = re.compile(r"Connecting to host|Client connecting to|Accepted connection from|\biperf3? .{0,200}-c\b")
_HEADING = re.compile(r"\[ ?ID\] ?Interval")
# Lines of the tool and of shells, which name no run.
_OWN = re.compile(
    r"^\s*(?:\[|- -|---|```|$)|[Cc]onnect(?:ing|ed) to|iperf Done|[Ss]erver listening|Accepted connection|TCP window|"
    r"Reverse mode|Starting Test|Cookie|MSS|(?:snd|rcv)_tcp_congestion|CPU Utilization|^\s*\S{0,60}[$#] |iperf3? "
)
_ABOVE, _LONGEST_LABEL = 6, 60
_LOST = re.compile(r"(\d{1,12})/\s{0,8}(\d{1,12}) \(")
_WINDOW = re.compile(r"TCP window size: .{1,30}requested")
_CPU = re.compile(r"CPU Utilization: local/\w{6,8} (\d[\d.]{0,6})% .{0,40}remote/\w{6,8} (\d[\d.]{0,6})%")
# iperf 2 with -e: of a connection its segment and first round trip (us), of an interval the repeated segments.
_FIRST_TRIP = re.compile(r"icwnd/mss/irtt=\d{1,9}/(\d{1,5})/(\d{1,9})\)")
_ENHANCED = re.compile(r"\s{1,12}\d{1,12}/\d{1,12}\s{1,16}(\d{1,10})\s{1,16}-?\d{1,9}K/\d")
_SEGMENTS = re.compile(r"\s*TCP MSS: (\d{1,5}) ")
# Bits count by 1000, bytes (-f M) by 1024: units.c.
_GIGABYTES = {f"{letter}bits": 1e-9 / 8 * 1000**power for power, letter in enumerate(("", *"KMGT"))} | {
    f"{letter}Bytes": 1e-9 * 1024**power for power, letter in enumerate(("", *"KMGT"))
}  # a second


@dataclass
class _Run:
    """Lines of one run: its rates with their line numbers, what stands above them and below."""

    rates: list[tuple[int, re.Match[str]]] = field(default_factory=list)
    above: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    reverse: bool = False
    iperf3: bool = False


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold rates of iperf or iperf3."""
    return any("/sec" in line and _LINE.search(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """A row for each run of the text; of several each is named by the line above it, where it says something."""
    runs = list(_runs(lines))
    results = [_read_run(run, file, _label(run, at) if len(runs) > 1 else "") for at, run in enumerate(runs, 1)]
    rows = tuple(row for result in results for row in result.observations)
    posted = tuple(statement for result in results for statement in result.posted.statements)
    return ImportedResults(results[-1].tool, rows, posted=PostedFacts(statements=posted))


def _runs(lines: Sequence[str]) -> Iterator[_Run]:
    """The runs of a text: one ends with what the receiver got, and the next begins with a heading or a connection."""
    run, ended, rated = _Run(), False, False
    for number, line in enumerate(lines, 1):
        begins = _BEGINS.search(line) is not None
        if rated and (begins or ended) and (begins or _HEADING.search(line)):
            yield run
            run, ended, rated = _Run(above=run.below), False, False
        run.reverse = run.reverse or "Reverse mode" in line
        if match := _LINE.search(line):
            run.rates.append((number, match))
            run.below.clear()
            rated, ended = True, "receiver" in match["rest"]
        else:
            (run.below if rated else run.above).append(line)
        run.iperf3 = run.iperf3 or any(word in line for word in ("iperf3", "Retr", "receiver"))
    if rated:
        yield run


def _label(run: _Run, at: int) -> str:
    """What a text calls one of its runs: the nearest line above it that is none of the tool's own."""
    words = [line.strip(" `#*:>-") for line in [*filter(str.strip, run.above)][-_ABOVE:] if not _OWN.search(line)]
    said = [word for word in words if re.search(r"[^\W\d_]{2}", word)]
    return said[-1][-_LONGEST_LABEL:] if said else f"run {at}"


def _read_run(run: _Run, file: str, label: str) -> ImportedResults:
    """The rate of a run, or those of both directions at once."""
    ways = [[each for each in run.rates if each[1]["way"] == way] for way in ("TX", "RX")]
    if all(ways):
        return merge([_read_way(replace(run, rates=rates, reverse=bool(at)), file, label)
                      for at, rates in enumerate(ways)])  # fmt: skip
    return _read_way(run, file, label)


def _read_way(run: _Run, file: str, label: str) -> ImportedResults:
    """The rate over the longest interval, of all connections where there is a sum, as the receiver saw it."""
    matches = run.rates
    lengths = [_seconds(match, Location(file, number)) for number, match in matches]
    longest = max(lengths)
    whole = [each for each, length in zip(matches, lengths, strict=True) if length >= 0.9 * longest]
    sums = [each for each in whole if each[1]["id"] == "SUM"]
    received = [each for each in sums or whole if "receiver" in each[1]["rest"]] or sums or whole
    connections = len({match["id"] for _, match in matches} - {"SUM"})
    tool = "iperf3" if run.iperf3 else "iperf"
    number, match = received[-1]
    rate = figure(match["rate"], Location(file, number)) * _GIGABYTES[match["unit"]]
    flow = "host1->host0" if run.reverse else "host0->host1"
    value = ToolValue(flow, flow, unit="GB/s", path="network")
    how = _circumstances(run, received[-1][1])
    row = observation(tool, label or tool, value, rate, how, {"connections": connections} if connections else {})
    return ImportedResults(tool, (row,), posted=_repeats(sums or whole, file))


def _circumstances(run: _Run, result: re.Match[str]) -> dict[str, str]:
    """What the command, the head and the result of a run say of how it sent."""
    options = options_of(run.above, r"iperf3?")
    udp = "-u" in options or "--udp" in options or any("atagrams" in line for line in (*run.above, *run.below))
    asked = options.get("-b", options.get("--bandwidth", options.get("--bitrate", "")))
    sent = scaled(options.get("-l", options.get("--length", "")), 1024)
    window = options.get("-w", options.get("--window", ""))
    segments = [match[1] for line in run.above if (match := _SEGMENTS.match(line))]
    segments += [text for key in ("-M", "--set-mss", "--mss") if (text := options.get(key, "")).isdigit()]
    cores = [match for line in run.below if (match := _CPU.match(line))]
    first = [match for line in run.above if (match := _FIRST_TRIP.search(line))]
    segments += [first[-1][1]] if first else []
    lost = _LOST.search(result["rest"])
    repeats = [match["rest"].split()[0] for _, match in run.rates if match["rest"].rstrip().endswith("sender")
               and not udp and match["rest"].split()[0].isdigit()]  # fmt: skip
    return {
        "protocol": "UDP" if udp else "",
        "asked for": f"{scaled(asked, 1000) / 1e6:g} Mb/s" if scaled(asked, 1000) else "",
        "bytes a call": f"{sent:.0f}" if sent else "",
        "window": window or ("requested" if any(map(_WINDOW.search, run.above)) else ""),
        "segment": segments[-1] if segments else "",
        "round trip": f"{first[-1][2]} us" if first else "",
        "lost": f"{int(lost[1]) / max(1, int(lost[2])):.3f}" if lost and udp else "",
        "stalled": "yes" if _stalls(run.rates) else "",
        "local core": cores[0][1] if cores else "",
        "remote core": cores[0][2] if cores else "",
        "repeats": repeats[-1] if repeats else "",
    }


def _stalls(rates: Sequence[tuple[int, re.Match[str]]]) -> bool:
    """Whether a connection was made, and nothing at all passed after its first interval."""
    intervals = [match["rate"] for _, match in rates if not match["rest"].rstrip().endswith(("sender", "receiver"))]
    return len(intervals) > 2 and not any(rate.strip("0.") for rate in intervals[1:])


def _seconds(match: re.Match[str], at: Location) -> float:
    """The length of a line's interval; 0 where it ends before it starts."""
    return max(0.0, figure(match["end"], at) - figure(match["start"], at))


def _repeats(lines: Sequence[tuple[int, re.Match[str]]], file: str) -> PostedFacts:
    """How many segments the sender repeated, if that is more than one in a thousand of those sent."""
    for number, match in lines:
        repeats = re.match(r"\s{1,24}(\d{1,10})\s{1,24}sender", match["rest"]) or _ENHANCED.match(match["rest"])
        at = Location(file, number)
        sent = figure(match["rate"], at) * _GIGABYTES[match["unit"]] * 1e9 * _seconds(match, at)
        if repeats and int(repeats[1]) > _MANY_REPEATS * sent / _SEGMENT:
            return PostedFacts(statements=(Statement("lost packets", f"{repeats[1]} retransmits", f"{file}:{number}"),))
    return PostedFacts()
